"""Rings of slots that the threads of a block fill some turns ahead of the loop that reads them.

A tile is filled by `cp.async`, which goes on by itself, or through registers: then the elements of
one part are loaded while products of the part before are under way, and stored after them. Both are
spread over the products of a turn: what is begun is kept in `Lowering.meanwhile`, from which
products take.

Source:   PTX ISA, "cp.async"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, scf
from tilec.layout import Layout, blocked, unique_holders
from tilec.layout.costs import ARITHMETIC
from tilec.layout.shared_access import ThreadAccesses
from tilec.layout.staged import StagedTile
from tilec.layout.swizzled import Slot, SwizzledTile
from tilec.layout.traffic import of_reads, of_writes
from tilec.ops.between_threads import Address, to_memory
from tilec.ops.bounds import bounds_of
from tilec.ops.build import number_of
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import bit_width, byte_offset, i32, index, pack, zero
from tilec.ops.global_memory import Use, load_masked, words_of
from tilec.ops.lower_layout import Held, read_where_used
from tilec.ops.lowering import (
    RING,
    RINGS,
    SLOT_AHEAD,
    SLOTS,
    Lowered,
    Lowering,
    View,
    first_place,
)
from tilec.ops.memory_layout import memory_layout
from tilec.ops.notes import Moved
from tilec.ops.rules import AccessShape, OpRules, Places, Placing, shape_of
from tilec.ops.thread_access import Access, Group

ASYNC, REGISTERS = "cp.async", "registers"
# Units: bytes; what one `cp.async` moves.
COPY_BYTES = (4, 8, 16)
_WORD_BYTES = 4
# How many elements a thread loads at once. Smaller parts leave more registers, and are slower by a
# third: each waits for memory.
_ELEMENTS_OF_PART = 32


@dataclass(frozen=True)
class Ring:
    """A ring, known while compiling; `buffer` (ptr<3>) is the first slot."""

    depth: int
    slot: Slot
    buffer: ir.Value
    fill: str
    # Whether the product of a turn reads the first of what the next turn multiplies before it ends.
    rotates: bool = False
    # Where the loop begins, once its first tiles were begun.
    places: list[ir.InsertionPoint] = field(default_factory=list)

    def after(self, slot: ir.Value) -> ir.Value:
        """The slot (index) that the next turn reads."""
        is_last = arith.cmpi(arith.CmpIPredicate.eq, slot, index(self.depth - 1))
        return arith.select(is_last, index(0), arith.addi(slot, index(1)))

    def wait(self) -> None:
        """Until what the next turn reads has come, all copies of this one being in groups."""
        if self.fill == ASYNC:
            nvvm.cp_async_wait_group(self.depth - 2)

    def commit(self) -> None:
        if self.fill == ASYNC:
            nvvm.cp_async_commit_group()

    def address(self, slot: ir.Value, tile: int, ahead: int) -> ir.Value:
        """Where a tile of a slot begins (ptr<3>): of the slot that is read `ahead` turns later."""
        number = arith.index_cast(ir.IntegerType.get_signless(32), slot)
        offset = arith.muli(number, i32(self.slot.bytes))
        if self.slot.offsets[tile]:
            offset = arith.addi(offset, i32(self.slot.offsets[tile]))
        address = byte_offset(self.buffer, offset)
        kind = ir.IntegerType.get_signless(64)
        address.owner.attributes[SLOT_AHEAD] = ir.IntegerAttr.get(kind, ahead % self.depth)
        return address


@dataclass(frozen=True)
class StagedFactor:
    """Tile `number` of a slot (index): products read it where they need it."""

    ring: Ring
    slot: ir.Value
    number: int
    tile: StagedTile
    layout: Layout
    element: ir.Type

    def reader(self, lowering: Lowering) -> Callable[[int], Held]:
        """Registers of the layout by their numbers, each read when it is asked for, once."""
        accesses = self.tile.reads(self.layout)
        self._note(accesses, lowering)
        address = self.ring.address(self.slot, self.number, 0)
        return read_where_used(address, accesses, self.element, lowering)

    def reader_of_next(self, lowering: Lowering) -> Callable[[int], Held]:
        """The same of what the next turn reads."""
        address = self.ring.address(self.ring.after(self.slot), self.number, 1)
        return read_where_used(address, self.tile.reads(self.layout), self.element, lowering)

    def reader_of_first(
        self, registers: Sequence[int], lowering: Lowering
    ) -> Callable[[int], Held]:
        """The same of these registers, of what the first turn reads; emitted before the loop."""
        accesses = self.tile.reads(self.layout)
        wanted = tuple(one for one in accesses.accesses if set(registers) & set(one.registers))
        some = replace(accesses, accesses=wanted)
        self._note(some, lowering)
        address = self.ring.address(index(0), self.number, 0)
        return read_where_used(address, some, self.element, lowering)

    def _note(self, accesses: ThreadAccesses, lowering: Lowering) -> None:
        moved = of_reads(accesses, self.tile.memory.element_bytes)
        names = (str(self.element),)
        lowering.note(Moved("slot", names, self.layout, self.layout, moved))


def tile_of(kind: ir.Type) -> SwizzledTile:
    """The tile of a slot, by its type in a `stage.ring_of`."""
    memref = ir.MemRefType(kind)
    tile = SwizzledTile.of(tuple(memref.shape), bit_width(memref.element_type) // 8)
    assert tile is not None, f"{kind} is no tile of a ring"
    return tile


def _numbers(op: ir.OpView, name: str) -> tuple[int, ...]:
    return tuple(ir.IntegerAttr(n).value for n in ir.ArrayAttr(op.attributes[name]))


class _RingOf(OpRules):
    name = "stage.ring_of"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        depth = number_of(op, "depth")
        tiles = tuple(tile_of(ir.TypeAttr(x).value) for x in ir.ArrayAttr(op.attributes["tiles"]))
        slot = Slot(tiles)
        buffer = lowering.shared_bytes(depth * slot.bytes)
        buffer.owner.attributes[SLOTS] = op.attributes["depth"]
        buffer.owner.attributes[RING] = op.attributes["number"]
        fill = ir.StringAttr(op.attributes["fill"]).value
        return [Ring(depth, slot, buffer, fill, rotates="rotates" in op.attributes)]


# ---- reads ---------------------------------------------------------------------------------------


class _Tile(OpRules):
    name = "stage.tile"
    flexible = True
    lies_in_shared = True

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        return Places((None, None), (placing.default(shape_of(op.results[0])),))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        return (None, None)

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        [layout] = places.results
        assert layout is not None, "every tile has a layout"
        return ARITHMETIC * layout.registers

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        from tilec.ops.registry import rules

        ring, slot = operands
        assert isinstance(ring, Ring) and isinstance(slot, ir.Value)
        number, kind = number_of(op, "tile"), op.results[0].type
        layout = layout_of(kind)
        tile = StagedTile(ring.slot.tiles[number], layout.shape, _numbers(op, "axes"))
        element = ir.VectorType(lowering.type_of(kind)).element_type
        factor = StagedFactor(ring, slot, number, tile, layout, element)
        uses = list(op.results[0].uses)
        if all(rules()[use.owner.operation.name].reads_shared(use) for use in uses):
            return [factor]
        assert not ring.rotates, "one product reads what is read ahead"
        read = factor.reader(lowering)
        return [pack([read(register).value for register in range(layout.registers)])]


# ---- fills ---------------------------------------------------------------------------------------


class _Begin(OpRules):
    name = "stage.begin"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        ring, slot, present, view, *indices = operands
        assert isinstance(ring, Ring) and isinstance(view, View)
        assert isinstance(slot, ir.Value) and isinstance(present, ir.Value)
        number, shape = number_of(op, "tile"), _numbers(op, "shape")
        tile = StagedTile(ring.slot.tiles[number], shape, _numbers(op, "axes"))
        unit = ir.StringAttr(op.attributes["unit"]).value
        access = AccessShape(op.operands[3], op.operands[3], tuple(op.operands)[4:], shape, unit)
        placing = Placing(lowering.warps, lowering.vector_bytes)
        layout = memory_layout(access, bounds_of(op), placing)
        if ring.fill == REGISTERS:
            layout = _in_words(layout, view, placing)
        here = Access(lowering, view, layout, shape, indices, unit, bounds_of(op))
        here.note("load")
        target = ring.address(slot, number, number_of(op, "ahead"))
        fill = _Fill(here, tile, target, present)
        steps = fill.copies() if ring.fill == ASYNC else fill.through_registers()
        lowering.meanwhile += [partial(_at, ir.Location.current, step) for step in steps]
        return []


def _at(location: ir.Location, emit: Callable[[], None]) -> None:
    with location:
        emit()


def _in_words(layout: Layout, view: View, placing: Placing) -> Layout:
    """A layout whose threads have at least 32 bits of neighbours, to be stored at once."""
    assert view.contiguous is not None, "a tile of a ring has a contiguous axis"
    width = max(1, _WORD_BYTES * 8 // bit_width(view.element))
    order = [axis for axis in reversed(range(layout.rank)) if axis != view.contiguous]
    if placing.vector_bytes * 8 >= width * bit_width(view.element):
        return layout
    return blocked(layout.shape, placing.warps, (view.contiguous, *order), width)


@dataclass(frozen=True)
class _Fill:
    """How the threads of a block fill one tile of a slot at `target`, if it is `present` (i1)."""

    access: Access
    tile: StagedTile
    target: ir.Value
    present: ir.Value

    def copies(self) -> list[Callable[[], None]]:
        """One `cp.async` each. Of threads that hold copies one does it."""
        address = self._addresses([(g.registers, g.coordinate) for g in self.access.groups])
        unique = self.access.lowering.holds_unique(self.access.layout)
        return [
            partial(self._copy, group, place, unique)
            for group, place in zip(self.access.groups, address, strict=True)
        ]

    def _copy(self, group: Group, place: Callable[[], ir.Value], unique: ir.Value | None) -> None:
        size = self.access.width * self.access.element_bytes
        assert size in COPY_BYTES, f"no copy moves {size} bytes"
        kind = "cg" if size == COPY_BYTES[-1] else "ca"
        modifier = ir.Attribute.parse(f"#nvvm<load_cache_modifier {kind}>")
        source, count, target = self.access.address(group), self._count(group), place()
        if unique is None:
            nvvm.cp_async_shared_global(target, source, size, modifier, cp_size=count)
            return
        branch = scf.IfOp(unique)
        with ir.InsertionPoint(branch.then_block):
            nvvm.cp_async_shared_global(target, source, size, modifier, cp_size=count)
            scf.yield_([])

    def _count(self, group: Group) -> ir.Value:
        """How many bytes (i32) of a group there are; what is left of it becomes zero."""
        access = self.access
        size = access.width * access.element_bytes
        if access.ragged is None:
            return arith.select(self._here(access.mask(group)), i32(size), i32(0))
        inside = arith.minsi(access.elements_left(group), i32(access.width))
        count = arith.muli(inside, i32(access.element_bytes))
        return arith.select(self._here(access.element_mask(group, 0)), count, i32(0))

    def _here(self, mask: ir.Value | None) -> ir.Value:
        return self.present if mask is None else arith.andi(mask, self.present)

    def through_registers(self) -> list[Callable[[], None]]:
        """Loads of each part, then its stores."""
        groups = list(self._runs())
        address = self._addresses([(run[0].registers, run[0].coordinate) for run in groups])
        most = max(1, _ELEMENTS_OF_PART // max(1, len(groups[0])))
        parts = [
            _Part(self, groups[i : i + most], address[i : i + most])
            for i in range(0, len(groups), most)
        ]
        return [step for part in parts for step in (part.load, part.store)]

    def _runs(self) -> Iterator[list[Group]]:
        """Groups that are neighbours in memory, as many as one store takes."""
        axis, access = self.access.view.contiguous, self.access
        assert axis is not None, "a tile of a ring has a contiguous axis"
        by_place = {group.coordinate: group for group in access.groups}
        width = max(access.width, _WORD_BYTES // access.element_bytes)
        for group in access.groups:
            start = group.coordinate
            if start[axis] % width:
                continue
            places = [
                (*start[:axis], start[axis] + step, *start[axis + 1 :])
                for step in range(0, width, access.width)
            ]
            if all(place in by_place for place in places):
                yield [by_place[place] for place in places]
            else:
                yield from ([by_place[p]] for p in places if p in by_place)

    def _addresses(
        self, groups: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
    ) -> list[Callable[[], ir.Value]]:
        """Where the first elements of groups go (ptr<3>), each computed when it is asked for."""
        access = self.access
        plan = self.tile.accesses(access.layout, groups)
        holders = unique_holders(access.layout)
        writes = replace(plan, lane_mask=holders.lane, warp_mask=holders.warp)
        moved = of_writes(writes, access.element_bytes)
        names = (str(access.element),)
        access.lowering.note(Moved("slot", names, access.layout, access.layout, moved))
        address = Address(self.target, plan, access.element_bytes, access.lowering)
        return [partial(address.of, one.xor, one.add) for one in plan.accesses]


class _Part:
    """Elements that a thread loads at once, and stores later."""

    def __init__(
        self,
        fill: _Fill,
        runs: Sequence[Sequence[Group]],
        addresses: Sequence[Callable[[], ir.Value]],
    ) -> None:
        self._fill = fill
        self._runs = runs
        self._addresses = addresses
        self._loaded: list[list[ir.Value]] = []

    def load(self) -> None:
        access = self._fill.access
        assert access.ragged is None, "what registers are filled with is not cut within a group"
        fills = [zero(access.element)] * access.width
        words, use = words_of(fills), Use(is_read_only=access.view.read_only)
        for run in self._runs:
            loaded: list[ir.Value] = []
            for group in run:
                mask = self._fill._here(access.mask(group))
                loaded += load_masked(access.address(group), mask, fills, use, words)
            self._loaded.append(loaded)

    def store(self) -> None:
        access = self._fill.access
        unique = access.lowering.holds_unique(access.layout)
        addresses = [address() for address in self._addresses]
        if unique is None:
            self._store(addresses)
            return
        branch = scf.IfOp(unique)
        with ir.InsertionPoint(branch.then_block):
            self._store(addresses)
            scf.yield_([])

    def _store(self, addresses: Sequence[ir.Value]) -> None:
        size = self._fill.access.element_bytes
        for elements, address in zip(self._loaded, addresses, strict=True):
            stored = pack([to_memory(element) for element in elements])
            llvm.store(stored, address, alignment=len(elements) * size)


class _Commit(OpRules):
    name = "stage.commit"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [ring] = operands
        assert isinstance(ring, Ring)
        if ring.rotates and RINGS in op.operation.parent.attributes:
            return []  # the product has done it
        lowering.do_meanwhile()
        ring.commit()
        if ring.rotates:
            ring.places.append(first_place())
        return []


class _Arrived(OpRules):
    name = "stage.arrived"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [ring] = operands
        assert isinstance(ring, Ring)
        if ring.fill == ASYNC and not ring.rotates:
            nvvm.cp_async_wait_group(number_of(op, "pending"))
        return []


RULES: tuple[OpRules, ...] = (_RingOf(), _Tile(), _Begin(), _Commit(), _Arrived())
