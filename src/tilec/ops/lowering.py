"""What the lowering of one operation may use: thread coordinates, shared memory, views.

After `place_layouts` every tile has a layout. A thread's share of a tile, its *fragment*, is one
vector of as many elements as the layout has registers (`tilec.ops.fragments`); a scalar is itself;
a view is a `View`, known while compiling only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from mlir import ir

from tilec.artifact.abi import COUNT_LIMIT
from tilec.ir.dialects import arith, llvm, nvvm
from tilec.layout import LANE_BITS, LANES, Layout, unique_holders
from tilec.layout.neighbours import Cluster, Side
from tilec.layout.swizzled import Swizzle
from tilec.ops.fragments import i32, in_registers, index, llvm_ptr
from tilec.ops.notes import Note, Place, place_of

if TYPE_CHECKING:
    from tilec.ops.channel import Channel, SharedTile
    from tilec.ops.order import Longest
    from tilec.ops.pending import Pending
    from tilec.ops.split import Offered
    from tilec.ops.staged import Ring, StagedFactor
    from tilec.ops.start import Start
    from tilec.ops.teams import Turns

# A value, or what is known while compiling only: a view, a channel or ring, a tile in shared
# memory, what blocks offer, a tile that is computed later.
Lowered: TypeAlias = (
    "ir.Value | View | Channel | SharedTile | Ring | StagedFactor | Offered | Pending"
)

# Units: bytes; of the widest access (PTX ISA, "ld" and "st": .v4 of 32 bits; "ldmatrix").
SHARED_ALIGNMENT = 16
# The unit attribute of control flow that all threads of a block take alike (`dialects/warp`).
UNIFORM = "warp.uniform"
# The attribute of a kernel whose programs are walked in groups of so many rows.
ROWS_TOGETHER = "warp.rows_together"
# The attribute of a kernel whose programs take unequally long: along which axis of the grid, and
# whether those at its end take longest.
LONGEST = "warp.longest"
# The unit attribute of a kernel whose blocks do several programs.
PERSISTENT = "warp.persistent"
# Of rings of slots (`dialects/stage`): the numbers of those that a loop turns, as an attribute of
# the loop; the number and how many slots there are, of a buffer; and of an address in one, how many
# turns later its slot is read.
RINGS, RING, SLOTS, SLOT_AHEAD = "stage.rings", "stage.ring", "stage.slots", "stage.ahead"
# The unit attribute of a loop behind which no copy is under way.
WAITS = "stage.waits"
# The attribute of a kernel whose blocks work in clusters: of each side how many, along which axis
# of the grid.
CLUSTER = "warp.cluster"
# The attribute of a kernel whose programs are done by so many blocks each.
SPLIT = "warp.split"
# The attribute of a channel that tells along which sides of their cluster blocks share each of its
# tiles: a bit for each side.
SHARED = "shared"
# The attribute of a kernel whose math warps are so many teams, which do programs by turns.
TEAMS = "warp.teams"
# The type of a slot of a channel.
SLOT = "!warp.place"
# The attribute of the branch that tells roles apart: who comes to its `then` (`mark_team`).
ROLE = "warp.role"
# The unit attribute of a branch that one thread of each warp takes.
ELECTED = "warp.elected"


@dataclass(frozen=True)
class View:
    """A strided window on a tensor in global memory.

    Units:    strides, starts and extents in elements, as `index` values; `base` is element 0 of
              the tensor
    """

    base: ir.Value
    parameter: str  # the kernel's, by its name in the source
    element: ir.Type  # as tiles have it
    extents: tuple[ir.Value, ...]
    strides: tuple[ir.Value, ...]
    starts: tuple[ir.Value, ...]
    contiguous: int | None  # the axis whose stride is known to be 1
    ids: tuple[ir.Value, ...] = ()  # of a part
    read_only: bool = False

    @property
    def rank(self) -> int:
        return len(self.extents)

    def permuted(self, order: Sequence[int]) -> View:
        """Axis i of the result is axis `order[i]` of this."""
        assert not self.ids, "parts are not permuted"
        return replace(
            self,
            extents=tuple(self.extents[axis] for axis in order),
            strides=tuple(self.strides[axis] for axis in order),
            starts=tuple(self.starts[axis] for axis in order),
            contiguous=None if self.contiguous is None else order.index(self.contiguous),
        )


@dataclass(frozen=True)
class TensorMap:
    """What a launcher describes to the hardware: a parameter, and how tiles of it are copied.

    `rounds`: f32 is rounded to tf32 on the way.

    Shapes:   `box` has the extents of one copy, in the order of the tensor's axes
    Units:    `swizzle` in bytes
    """

    param: str
    box: tuple[int, ...]
    swizzle: Swizzle
    writes: bool = False  # to the tensor
    rounds: bool = False


def cluster_of(kernel: ir.OpView) -> Cluster | None:
    """The clusters of a kernel, by its attribute; None: each block is alone."""
    if CLUSTER not in kernel.attributes:
        return None
    numbers = list(ir.DenseI64ArrayAttr(kernel.attributes[CLUSTER]))
    return Cluster(tuple(Side(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)))


def split_of(kernel: ir.OpView) -> int:
    """How many blocks do a program of a kernel together, by its attribute."""
    return ir.IntegerAttr(kernel.attributes[SPLIT]).value if SPLIT in kernel.attributes else 1


@dataclass(frozen=True)
class Team:
    """Threads that meet at a barrier of their own, by its number; None: one thread, which needs
    none.

    `count` teams do the same, each for itself: their threads and barriers have numbers in a row.
    """

    barrier: int | None
    threads: int
    count: int = 1


class NoGpuCodeError(Exception):
    """An operation that has a meaning but no code on a GPU yet; becomes E0103 at its place."""

    def __init__(self, op: ir.Operation, what: str) -> None:
        super().__init__(what)
        self.location = op.location
        self.what = what


@dataclass
class Lowering:
    """The state of lowering one kernel. Everything is emitted at the current insertion point."""

    warps: int
    thread: ir.Value  # i32, 0 .. 32 * warps - 1
    program: tuple[ir.Value, ...]  # index, one an axis of the grid
    grid: tuple[ir.Value, ...]
    vector_bytes: int  # what pointers and outer strides may be taken to be multiples of
    top: ir.InsertionPoint  # the start of the function
    entry: ir.InsertionPoint  # where what depends on the thread only is put, once
    emit: Callable[[ir.Block, Sequence[Lowered]], list[Lowered]]  # a block, with these arguments
    # Units: bytes; what pointer and outer strides of a parameter were taken to be multiples of.
    alignments: dict[str, int] = field(default_factory=dict)
    notes: list[tuple[Place, Note]] = field(default_factory=list)
    tensor_maps: Mapping[TensorMap, ir.Value] = field(default_factory=dict)
    rows_together: int = 1
    longest: Longest | None = None
    cluster: Cluster | None = None
    # Of the program that is being lowered, in a cluster (`tilec.ops.cluster_order.Step`).
    is_together: ir.Value | None = None
    is_program: ir.Value | None = None
    split: int = 1  # the blocks that do a program together
    loops: int = 0  # around what is being lowered
    team: Team | None = None  # of the role that is being lowered; None: the whole block
    # What is to be emitted in this block, in order, and better between products than at once.
    meanwhile: list[Callable[[], None]] = field(default_factory=list)
    teams: int = 1  # that the math warps are
    turns: Turns | None = None  # of the teams, where there are several
    start: Start | None = None  # of a block with roles
    is_sending: bool = False  # hardware copies what was written to `sent_bytes`
    piece: int | None = None  # so many registers of a tile are lowered; None: all
    _coordinates: dict[tuple[int, ...], ir.Value] = field(default_factory=dict)
    _warpgroup: ir.Value | None = None

    def takes_aligned(self, parameter: str, size: int) -> None:
        """Note that this parameter is accessed in pieces of `size` bytes."""
        self.alignments[parameter] = max(size, self.alignments.get(parameter, 1))

    def note(self, note: Note) -> None:
        """Keep what the operation whose location is current became (`tilec.codegen.record`)."""
        self.notes.append((place_of(ir.Location.current), note))

    # ---- fragments -----------------------------------------------------------------------------

    def type_of(self, tile_level: ir.Type) -> ir.Type:
        """The type after lowering: a vector for an encoded tensor, i8 for f8, else the same."""
        from tilec.ops.encoding import layout_of

        if not isinstance(tile_level, ir.RankedTensorType):
            is_slot = str(tile_level) == SLOT
            return ir.IntegerType.get_signless(32) if is_slot else in_registers(tile_level)
        registers = layout_of(tile_level).registers if self.piece is None else self.piece
        return ir.VectorType.get(
            [registers], in_registers(ir.RankedTensorType(tile_level).element_type)
        )

    @contextmanager
    def in_piece(self, registers: int) -> Iterator[None]:
        """What is lowered inside is so many registers of each tile."""
        outer, self.piece = self.piece, registers
        yield
        self.piece = outer

    def do_meanwhile(self, left: int = 0) -> None:
        """Emit what is to be done meanwhile, but for so many."""
        count = max(0, len(self.meanwhile) - left)
        now, self.meanwhile[:] = self.meanwhile[:count], self.meanwhile[count:]
        for emit in now:
            emit()

    # ---- where a thread stands -----------------------------------------------------------------

    def thread_coordinate(self, layout: Layout, axis: int) -> ir.Value:
        """The coordinate (i32) along an axis of register 0 of this thread."""
        return self.thread_number(tuple(b[axis] for b in (*layout.lane, *layout.warp)))

    def thread_number(self, bases: tuple[int, ...]) -> ir.Value:
        """XOR (i32) of `bases[i]` over the set bits i of the thread, the lane's first."""
        if bases not in self._coordinates:
            with self.entry:
                self._coordinates[bases] = self._thread_sum(bases)
        return self._coordinates[bases]

    def coordinates(self, layout: Layout) -> list[list[ir.Value]]:
        """The coordinates (i32), one an axis, of each register of this thread."""
        assert_disjoint(layout)
        thread = [self.thread_coordinate(layout, axis) for axis in range(layout.rank)]
        return [
            [arith.addi(t, i32(c)) if c else t for t, c in zip(thread, row, strict=True)]
            for row in register_coordinates(layout)
        ]

    def _thread_sum(self, bases: tuple[int, ...]) -> ir.Value:
        # Runs of doubling bases are one shift and mask.
        total: ir.Value | None = None
        bit = 0
        while bit < len(bases):
            if bases[bit] == 0:
                bit += 1
                continue
            run = 1
            doubling = bases[bit] & (bases[bit] - 1) == 0
            while doubling and bit + run < len(bases) and bases[bit + run] == bases[bit] << run:
                run += 1
            term = self._bit_field(bit, run, bases[bit])
            total = term if total is None else arith.xori(total, term)
            bit += run
        return i32(0) if total is None else total

    def _bit_field(self, bit: int, count: int, scale: int) -> ir.Value:
        term = self.thread if bit == 0 else arith.shrui(self.thread, i32(bit))
        if bit + count < (LANES * self.warps).bit_length() - 1:
            term = arith.andi(term, i32((1 << count) - 1))
        assert scale > 0
        if scale & (scale - 1) == 0:
            return arith.shli(term, i32(scale.bit_length() - 1)) if scale > 1 else term
        # A base with several bits set (a swizzle): one bit at a time.
        assert count == 1, "only single bits have composite bases"
        return arith.muli(term, i32(scale))

    def holds_unique(self, layout: Layout) -> ir.Value | None:
        """Whether this thread is the one that stands for its elements (i1); None: all are."""
        holders = unique_holders(layout)
        mask = holders.lane | holders.warp << (LANE_BITS)
        if mask == 0:
            return None
        bits = arith.andi(self.thread, i32(mask))
        return arith.cmpi(arith.CmpIPredicate.eq, bits, i32(0))

    @property
    def is_in_loop(self) -> bool:
        """Whether what is lowered now may run several times, in a kernel without roles."""
        return self.loops > 0 and self.team is None

    @contextmanager
    def in_loop(self) -> Iterator[None]:
        """What is lowered inside may run several times."""
        self.loops += 1
        yield
        self.loops -= 1

    # ---- roles ---------------------------------------------------------------------------------

    @contextmanager
    def as_team(self, team: Team) -> Iterator[None]:
        """What is lowered inside is the work of these threads only."""
        outer = self.team, self.entry, self._coordinates, self.thread
        outer_group, self._warpgroup = self._warpgroup, None
        if team.count > 1:
            self.thread = arith.andi(self.thread, i32(team.threads - 1))
        # What depends on the thread is made anew: it stands where not all threads come.
        self.team, self.entry, self._coordinates = team, first_place(), {}
        yield
        self.team, self.entry, self._coordinates, self.thread = outer
        self._warpgroup = outer_group

    def warpgroup(self) -> ir.Value:
        """The number (i32) of this thread's warpgroup, which the assembler sees to be uniform."""
        if self._warpgroup is None:
            with self.entry:
                self._warpgroup = self._shuffled_warpgroup()
        return self._warpgroup

    def _shuffled_warpgroup(self) -> ir.Value:
        word = ir.IntegerType.get_signless(32)
        group = arith.shrui(self.thread, i32((LANES * 4).bit_length() - 1))
        return nvvm.shfl_sync(
            word, i32(-1), group, i32(0), i32(LANES - 1), ir.Attribute.parse("#nvvm<shfl_kind idx>")
        )

    def tensor_map(self, wanted: TensorMap) -> ir.Value:
        """The address (ptr) of the description that the launcher passes."""
        return self.tensor_maps[wanted]

    def variable(self) -> ir.Value:
        """The address (ptr) of an i32 of this thread, which LLVM makes a register."""
        word = ir.IntegerType.get_signless(32)
        with self.top:
            return llvm.alloca(ir.Type.parse("!llvm.ptr"), i32(1), word)

    # ---- shared memory -------------------------------------------------------------------------

    def ring(self, size: int, alignment: int, *, throughout: bool = False) -> ir.Value:
        """The address (i32) of `size` bytes that are there from the start, and ordered by channels.

        `throughout`: nothing else takes their place later on.
        """
        number = ir.IntegerType.get_signless(64)
        attributes: dict[str, ir.Attribute] = {
            "bytes": ir.IntegerAttr.get(number, size),
            "alignment": ir.IntegerAttr.get(number, alignment),
        }
        if throughout:
            attributes["throughout"] = ir.UnitAttr.get()
        op = ir.Operation.create("warp.alloc", results=[llvm_ptr(3)], attributes=attributes)
        return llvm.ptrtoint(ir.IntegerType.get_signless(32), op.results[0])

    def shared_bytes(
        self, size: int, *, by_warp: bool = False, throughout: bool = False
    ) -> ir.Value:
        """The address (ptr<3>) of `size` bytes, for as long as what is written there is read.

        Accesses take effect in program order: barriers are derived (`tilec.shared_memory`).
        `by_warp`: no warp touches what another one does. `throughout`: nothing else takes their
        place later on.
        """
        whole = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), size)
        attributes: dict[str, ir.Attribute] = {"bytes": whole}
        if by_warp:
            attributes["by_warp"] = ir.UnitAttr.get()
        if throughout:
            attributes["throughout"] = ir.UnitAttr.get()
        op = ir.Operation.create("warp.alloc", results=[llvm_ptr(3)], attributes=attributes)
        return op.results[0]

    def sent_bytes(self, size: int, alignment: int) -> ir.Value:
        """The address (ptr<3>) of `size` bytes from which hardware copies, and may go on doing so.

        No warp touches what another one does. Of barriers all is as in `shared_bytes`; fences, and
        waits until copies have read, are the caller's.
        """
        number = ir.IntegerType.get_signless(64)
        attributes: dict[str, ir.Attribute] = {
            "bytes": ir.IntegerAttr.get(number, size),
            "alignment": ir.IntegerAttr.get(number, alignment),
            "by_warp": ir.UnitAttr.get(),
            "sent": ir.UnitAttr.get(),
        }
        op = ir.Operation.create("warp.alloc", results=[llvm_ptr(3)], attributes=attributes)
        return op.results[0]

    def barrier(self) -> None:
        """All threads of the block, or role, have come here, and see each other's memory."""
        if self.team is not None and self.team.threads > 1:
            barrier_of(self.team)
        elif self.warps > 1:
            nvvm.barrier0()
        else:
            nvvm.bar_warp_sync(i32(-1))


def barrier_of(team: Team) -> ir.Operation:
    """Until all threads of a team have come, of which there is more than one."""
    assert team.barrier is not None, "one thread waits for no other"
    number = i32(team.barrier)
    if team.count > 1:
        number = arith.addi(number, team_number(team.threads))
    operands = [number, i32(team.threads)]
    sizes = ir.DenseI32ArrayAttr.get([1, 1, 0])
    return ir.Operation.create(
        "nvvm.barrier", operands=operands, attributes={"operandSegmentSizes": sizes}
    )


def team_number(threads: int) -> ir.Value:
    """Which team this thread is of (i32), where the first teams of the block have so many each."""
    thread = nvvm.read_ptx_sreg_tid_x(ir.IntegerType.get_signless(32))
    return arith.shrui(thread, i32(threads.bit_length() - 1))


def mark_team(branch: ir.OpView, team: Team) -> None:
    """Tell that what is inside of a branch is done by a team, or by several."""
    numbers = [team.barrier or 0, team.threads, team.count]
    branch.attributes[ROLE] = ir.DenseI32ArrayAttr.get(numbers)


def longest_of(kernel: ir.OpView) -> Longest | None:
    """Which programs of a kernel take longest, if it says so."""
    from tilec.ops.order import Longest

    if LONGEST not in kernel.attributes:
        return None
    axis, at_end = ir.DenseI64ArrayAttr(kernel.attributes[LONGEST])
    return Longest(int(axis), at_end=bool(at_end))


def give_longest(kernel: ir.OpView, longest: Longest) -> None:
    """Write down which programs of a kernel take longest."""
    numbers = [longest.axis, int(longest.at_end)]
    kernel.attributes[LONGEST] = ir.DenseI64ArrayAttr.get(numbers)


def teams_of(function: ir.OpView) -> int:
    """How many teams the math warps of a kernel are."""
    given = function.attributes
    return ir.IntegerAttr(given[TEAMS]).value if TEAMS in given else 1


def team_around(op: ir.OpView) -> Team | None:
    """The team that does an operation; None: all of the block."""
    around = op.operation.parent
    while around is not None:
        if ROLE in around.attributes:
            barrier, threads, count = ir.DenseI32ArrayAttr(around.attributes[ROLE])
            return Team(barrier or None, threads, count)
        around = around.operation.parent
    return None


def first_place() -> ir.InsertionPoint:
    """Where to put what is to come before all that is built here from now on."""
    word = ir.IntegerType.get_signless(32)
    return ir.InsertionPoint(ir.Operation.create("llvm.mlir.zero", results=[word]))


@lru_cache(maxsize=256)
def register_coordinates(layout: Layout) -> tuple[tuple[int, ...], ...]:
    """The coordinate that each register of thread 0 holds; other threads add their own."""
    return tuple(map(tuple, layout.table()[0, 0].tolist()))


def is_disjoint(layout: Layout) -> bool:
    """Whether no bit of a coordinate comes from a register and a thread both: XOR is addition."""
    for axis in range(layout.rank):
        registers = threads = 0
        for basis in layout.register:
            registers |= basis[axis]
        for basis in (*layout.lane, *layout.warp):
            threads |= basis[axis]
        if registers & threads:
            return False
    return True


def assert_disjoint(layout: Layout) -> None:
    """No bit of a coordinate comes from a register and a thread both, so that XOR is addition."""
    assert is_disjoint(layout), f"{layout} mixes registers and threads"


# Beyond this an index is outside every tensor, and its product with a tile's extent is exact.
_FAR = 2 * COUNT_LIMIT


def within_reach(value: ir.Value) -> ir.Value:
    """The index, or one that is outside just as well and far from overflow."""
    return arith.maxsi(arith.minsi(value, index(_FAR)), index(-_FAR))


def lower_elementwise(
    op: ir.OpView, operands: Sequence[ir.Value], lowering: Lowering
) -> Sequence[ir.Value]:
    """The same operation on fragments."""
    results = [lowering.type_of(r.type) for r in op.results]
    attributes = {name: op.attributes[name] for name in op.attributes}
    done = ir.Operation.create(
        op.operation.name, results=results, operands=list(operands), attributes=attributes
    )
    return list(done.results)
