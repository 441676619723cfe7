"""Channels: rings of slots in shared memory that one thread has the hardware fill for others.

Each slot has two barriers in memory: *full*, which counts the bytes that have come, and *empty*, on
which every warpgroup that reads arrives once, or every warp where threads read tiles themselves.
Both roles go round the ring and count the turns in their *cursor*: a slot's number and the parity
of the phase that they wait for. A lowered slot is its number (i32), -1 for none.

A tile that blocks of a cluster share is in the same place of the same slot in each of them: every
one copies its share of it to all that share it. So a slot is empty once the warpgroups of all
blocks of the cluster have read it, and they arrive in each block. Barriers count the same where
blocks do programs that share nothing: then each copies all shares to itself.

Source:   PTX ISA, "mbarrier", "cp.async.bulk.tensor"; Tawa's asynchronous references
          (arXiv 2510.14719)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, scf
from tilec.layout import LANES
from tilec.layout.neighbours import Cluster, Sharers
from tilec.layout.shares import Shares
from tilec.layout.swizzled import Copy, Slot, SwizzledTile
from tilec.layout.wgmma import WARPGROUP_WARPS
from tilec.ops import cluster
from tilec.ops.build import number_of
from tilec.ops.fragments import bit_width, i32, index, llvm_ptr
from tilec.ops.lowering import SHARED, Lowered, Lowering, TensorMap, View, cluster_of, within_reach
from tilec.ops.rules import OpRules

BARRIER_BYTES = 8
_NO_SLOT = -1
# The unit attribute of a channel that threads read themselves.
BY_WARP = "by_warp"
# Units: elements; the coordinates of a copy are 32 bits, and so far out nothing is inside.
_FAR = 2**31 - 2**16


@dataclass(frozen=True)
class Cursor:
    """Where a role is in a ring: pointers to the slot's number and to the parity, each an i32."""

    slot: ir.Value
    parity: ir.Value


@dataclass(frozen=True)
class Channel:
    """A channel, known while compiling.

    Units:    addresses are i32, in bytes of shared memory
    """

    depth: int
    slot: Slot
    slots: ir.Value  # the address of the first slot
    barriers: ir.Value  # those of all full barriers, then of all empty ones
    filling: Cursor
    reading: Cursor
    readers: int  # threads that share one arrival: those of a warpgroup or of a warp
    rounding: frozenset[int]  # the tiles that copies round to tf32
    shared: Mapping[int, Sharers] = field(default_factory=dict)  # of a tile: who share it
    blocks: int = 1  # that empty its slots

    def full(self, slot: ir.Value) -> ir.Value:
        return _shared(_at(self.barriers, slot, BARRIER_BYTES, 0))

    def empty(self, slot: ir.Value) -> ir.Value:
        return _shared(_at(self.barriers, slot, BARRIER_BYTES, self.depth * BARRIER_BYTES))

    def address(self, slot: ir.Value, tile: int) -> ir.Value:
        """Where a tile of a slot begins (i32)."""
        return _at(self.slots, slot, self.slot.bytes, self.slot.offsets[tile])


@dataclass(frozen=True)
class SharedTile:
    """A tile in a slot. Units: `address` (i32) in bytes of shared memory."""

    address: ir.Value
    tile: SwizzledTile


def tiles_of(op: ir.OpView) -> tuple[SwizzledTile, ...]:
    """The tiles of a slot, by the types in a `warp.channel`."""
    return tuple(tile_of(ir.TypeAttr(kind).value) for kind in ir.ArrayAttr(op.attributes["tiles"]))


def params_of(op: ir.OpView) -> tuple[str, ...]:
    """The names of the parameters that a `warp.channel` is filled from, one a tile."""
    return tuple(ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes["params"]))


def shared_of(op: ir.OpView) -> dict[int, Sharers]:
    """Which tiles of a `warp.channel` the blocks of its cluster share, by their numbers."""
    if SHARED not in op.attributes:
        return {}
    cluster = _cluster_around(op)
    sides = enumerate(ir.DenseI64ArrayAttr(op.attributes[SHARED]))
    return {number: Sharers.of_bits(cluster, bits) for number, bits in sides if bits}


def _rounding(op: ir.OpView) -> frozenset[int]:
    """Which tiles of a `warp.channel` are rounded to tf32, by their numbers."""
    kinds = (
        ir.MemRefType(ir.TypeAttr(kind).value) for kind in ir.ArrayAttr(op.attributes["tiles"])
    )
    return frozenset(
        number
        for number, kind in enumerate(kinds)
        if isinstance(kind.element_type, ir.FloatTF32Type)
    )


def is_copied_as(source: ir.Type, element: ir.Type) -> bool:
    """Whether copies bring elements of a tensor as those of a tile in a slot."""
    return element == source or (
        isinstance(source, ir.F32Type) and isinstance(element, ir.FloatTF32Type)
    )


def shares_of(tile: SwizzledTile, blocks: int) -> Shares:
    """As so many blocks copy a tile that they share."""
    found = Shares.of(tile, blocks)
    assert found is not None, f"{tile} has no {blocks} shares"
    return found


def tile_of(kind: ir.Type) -> SwizzledTile:
    """The tile in a slot that a type stands for."""
    memref = ir.MemRefType(kind)
    tile = SwizzledTile.of(tuple(memref.shape), bit_width(memref.element_type) // 8)
    assert tile is not None, f"{kind} is no tile of a channel"
    return tile


# ---- lowering ------------------------------------------------------------------------------------


class _Create(OpRules):
    name = "warp.channel"

    def tensor_maps(self, op: ir.OpView) -> Sequence[TensorMap]:
        shared, found = shared_of(op), []
        rounding = _rounding(op)
        for number, (param, tile) in enumerate(zip(params_of(op), tiles_of(op), strict=True)):
            box = shares_of(tile, shared[number].blocks).box if number in shared else tile.box
            found.append(TensorMap(param, box, tile.swizzle, rounds=number in rounding))
        return found

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        depth, slot = number_of(op, "depth"), Slot(tiles_of(op))
        filling, reading = (Cursor(lowering.variable(), lowering.variable()) for _ in range(2))
        assert lowering.start is not None, "a kernel with channels has roles"
        with lowering.start.places:
            slots = lowering.ring(depth * slot.bytes, slot.alignment)
            barriers = lowering.ring(2 * depth * BARRIER_BYTES, BARRIER_BYTES, throughout=True)
        # Products are of a whole warpgroup: one thread of it speaks for all. What threads read is
        # read by each warp for itself.
        readers = LANES if BY_WARP in op.attributes else LANES * WARPGROUP_WARPS
        shared = shared_of(op)
        blocks = _cluster_around(op).blocks if shared else 1
        channel = Channel(
            depth, slot, slots, barriers, filling, reading, readers, _rounding(op), shared, blocks
        )
        self._begin(channel)
        with lowering.start.making:
            self._make(channel, lowering)
        return [channel]

    def _begin(self, channel: Channel) -> None:
        for cursor in (channel.filling, channel.reading):
            for variable in (cursor.slot, cursor.parity):
                llvm.store(i32(0), variable)

    def _make(self, channel: Channel, lowering: Lowering) -> None:
        arrivals = lowering.warps * LANES // channel.readers * channel.blocks
        for slot in range(channel.depth):
            nvvm.mbarrier_init(channel.full(i32(slot)), i32(1))
            nvvm.mbarrier_init(channel.empty(i32(slot)), i32(arrivals))


class _Acquire(OpRules):
    name = "warp.acquire"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [channel] = operands
        assert isinstance(channel, Channel)
        slot, parity = advanced(channel.filling, channel.depth)
        # All slots are empty at first, as if the phase before had ended.
        until_over(channel.empty(slot), arith.xori(parity, i32(1)))
        nvvm.mbarrier_arrive_expect_tx(None, channel.full(slot), i32(channel.slot.copied_bytes))
        return [slot]


class _Fill(OpRules):
    name = "warp.fill"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        channel, slot, view, *indices = operands
        assert isinstance(channel, Channel) and isinstance(view, View)
        assert isinstance(slot, ir.Value)
        number = number_of(op, "tile")
        tile = channel.slot.tiles[number]
        by_tile = ir.StringAttr(op.attributes["unit"]).value == "tile"
        starts = [
            copy_coordinate(i, extent if by_tile else 1)
            for i, extent in zip(indices, tile.shape, strict=True)
        ]
        address = channel.address(slot, number)
        sharers = channel.shared.get(number)
        box = tile.box if sharers is None else shares_of(tile, sharers.blocks).box
        source = lowering.tensor_map(_map(channel, number, view, box))
        filling = _Filling(source, channel.full(slot), address, starts)
        if sharers is None:
            filling.copy(tile.copies)
        else:
            assert lowering.is_together is not None, "a program was said"
            _fill_shared(filling, tile, sharers, lowering.is_together)
        return []


def _map(channel: Channel, tile: int, view: View, box: tuple[int, ...]) -> TensorMap:
    """What describes the tensor that a tile is copied from."""
    swizzle = channel.slot.tiles[tile].swizzle
    return TensorMap(view.parameter, box, swizzle, rounds=tile in channel.rounding)


@dataclass(frozen=True)
class _Filling:
    """Copies of a tensor map (ptr) to an address (i32), counted at `full`; `starts` are i32."""

    source: ir.Value
    full: ir.Value
    address: ir.Value
    starts: Sequence[ir.Value]

    def copy(self, copies: Sequence[Copy], mask: ir.Value | None = None) -> None:
        """Begin copies; to the same place of all blocks of the cluster that a mask (i16) has."""
        for copy in copies:
            place = [
                arith.addi(start, i32(near)) if near else start
                for start, near in zip(self.starts, copy.start, strict=True)
            ]
            offset = copy.offset
            target = arith.addi(self.address, i32(offset)) if offset else self.address
            # The hardware has the innermost axis first.
            nvvm.cp_async_bulk_tensor_shared_cluster_global(
                _of_cluster(target), self.source, place[::-1], self.full, [], multicast_mask=mask
            )

    def moved(self, shares: Shares, number: ir.Value) -> _Filling:
        """The same of the share of this number (i32)."""
        starts = list(self.starts)
        further = arith.muli(number, i32(shares.extent))
        starts[shares.axis] = arith.addi(starts[shares.axis], further)
        address = arith.addi(self.address, arith.muli(number, i32(shares.stride)))
        return replace(self, address=address, starts=starts)


def _fill_shared(
    filling: _Filling, tile: SwizzledTile, sharers: Sharers, is_together: ir.Value
) -> None:
    """Its share to all blocks where they do programs that share the tile, else all of it here."""
    shares = shares_of(tile, sharers.blocks)
    branch = scf.IfOp(is_together, has_else=True)
    with ir.InsertionPoint(branch.then_block):
        own = filling.moved(shares, cluster.number_among(sharers))
        own.copy(shares.copies, cluster.all_among(sharers))
        scf.yield_([])
    with ir.InsertionPoint(branch.else_block):
        for number in range(sharers.blocks):
            filling.moved(shares, i32(number)).copy(shares.copies)
        scf.yield_([])


class _Close(OpRules):
    name = "warp.close"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [channel] = operands
        assert isinstance(channel, Channel)
        # As if all slots were to be filled once more.
        for _ in range(channel.depth):
            slot, parity = advanced(channel.filling, channel.depth)
            until_over(channel.empty(slot), arith.xori(parity, i32(1)))
        return []


class _Publish(OpRules):
    """The barrier counts bytes: a slot is full by itself."""

    name = "warp.publish"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return []


class _Get(OpRules):
    name = "warp.get"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [channel] = operands
        assert isinstance(channel, Channel)
        slot, parity = advanced(channel.reading, channel.depth)
        until_over(channel.full(slot), parity)
        return [slot]


class _NoSlot(OpRules):
    name = "warp.no_slot"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [i32(_NO_SLOT)]


class _Tile(OpRules):
    name = "warp.tile"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        channel, slot = operands
        assert isinstance(channel, Channel) and isinstance(slot, ir.Value)
        number = number_of(op, "tile")
        return [SharedTile(channel.address(slot, number), channel.slot.tiles[number])]


class _Release(OpRules):
    name = "warp.release"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        channel, slot = operands
        assert isinstance(channel, Channel) and isinstance(slot, ir.Value)
        if channel.readers == LANES:
            nvvm.bar_warp_sync(i32(-1))
        is_slot = arith.cmpi(arith.CmpIPredicate.sge, slot, i32(0))
        if channel.blocks == 1:
            arrive(channel.empty(slot), arith.andi(speaks(lowering, channel.readers), is_slot))
            return []
        # One thread for each block. What it says has an order in that block; were that asked for in
        # the cluster (`.release.cluster`), all memory of the GPU would be waited for.
        place = arith.andi(lowering.thread, i32(channel.readers - 1))
        others = cluster.in_block(channel.empty(slot), place, channel.blocks)
        speaks_to = arith.cmpi(arith.CmpIPredicate.ult, place, i32(channel.blocks))
        arrive(others, arith.andi(speaks_to, is_slot), space="cluster")
        return []


def _cluster_around(op: ir.OpView) -> Cluster:
    """The cluster of the kernel that an operation is in."""
    found = cluster_of(op.operation.parent.opview)
    assert found is not None, "only a cluster shares tiles"
    return found


def speaks(lowering: Lowering, threads: int = LANES * WARPGROUP_WARPS) -> ir.Value:
    """Whether this thread is the one that does what its warpgroup, or so many, do once (i1)."""
    place = arith.andi(lowering.thread, i32(threads - 1))
    return arith.cmpi(arith.CmpIPredicate.eq, place, i32(0))


def arrive(barrier: ir.Value, where: ir.Value, space: str = "cta") -> None:
    """Arrive at a barrier, if `where` (i1) says so."""
    text = f"mbarrier.arrive.shared::{space}.b64 _, [{{$r0}}];"
    nvvm.inline_ptx([], [barrier], [], text, predicate=where)


def advanced(cursor: Cursor, depth: int) -> tuple[ir.Value, ir.Value]:
    """The slot and parity at a cursor, which moves on."""
    word = ir.IntegerType.get_signless(32)
    slot, parity = llvm.load(word, cursor.slot), llvm.load(word, cursor.parity)
    after = arith.addi(slot, i32(1))
    is_round = arith.cmpi(arith.CmpIPredicate.eq, after, i32(depth))
    llvm.store(arith.select(is_round, i32(0), after), cursor.slot)
    llvm.store(arith.xori(parity, arith.extui(word, is_round)), cursor.parity)
    return slot, parity


def until_over(barrier: ir.Value, parity: ir.Value) -> None:
    """Until the phase of this parity is over."""
    loop = scf.WhileOp([], [])
    before, after = loop.before.blocks.append(), loop.after.blocks.append()
    bit = ir.IntegerType.get_signless(1)
    with ir.InsertionPoint(before):
        done = nvvm.mbarrier_try_wait(bit, barrier, parity)
        scf.condition(arith.xori(done, arith.constant(bit, 1)), [])
    with ir.InsertionPoint(after):
        scf.yield_([])


def copy_coordinate(value: Lowered, scale: int) -> ir.Value:
    """The first element (i32) of a copy, or one that is outside just as well."""
    assert isinstance(value, ir.Value)
    first = within_reach(value)
    if scale != 1:
        first = arith.muli(first, index(scale))
    near = arith.maxsi(arith.minsi(first, index(_FAR)), index(-_FAR))
    return arith.index_cast(ir.IntegerType.get_signless(32), near)


def _at(base: ir.Value, number: ir.Value, size: int, offset: int) -> ir.Value:
    place = arith.addi(base, arith.muli(number, i32(size)))
    return arith.addi(place, i32(offset)) if offset else place


def _shared(address: ir.Value) -> ir.Value:
    return llvm.inttoptr(llvm_ptr(3), address)


def _of_cluster(address: ir.Value) -> ir.Value:
    return llvm.inttoptr(llvm_ptr(7), address)


RULES: tuple[OpRules, ...] = (
    _Create(),
    _Acquire(),
    _Fill(),
    _Publish(),
    _Close(),
    _Get(),
    _NoSlot(),
    _Tile(),
    _Release(),
)
