"""What a program takes, by its operations on tiles: the data of which launchers choose members.

It is a model, and for a choice among instances of one kernel only: what they have in common may be
wrong. A unit of a multiprocessor is busy for what its rate says (`target/`). In a loop whose copies
and products overlap, a turn takes as long as its busiest unit. Elsewhere one thing comes after the
other: loads wait for memory, once for all that stand together, and reductions for other threads.

How good its choices are on an H100 is in docs/tuning.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod

from mlir import ir

from tilec.artifact.expression import Expression
from tilec.artifact.family import Cost, Part
from tilec.layout.swizzled import SwizzledTile
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import shape_of
from tilec.ops.staged import REGISTERS
from tilec.schedule.bound import busy
from tilec.schedule.plan import NoSchedule, Schedule, is_in_loop
from tilec.schedule.products import Copied
from tilec.schedule.split import Split
from tilec.schedule.stages import StagedLoad, Stages
from tilec.schedule.turns import turns_of
from tilec.target.description import Rates, Target

# Instructions for an element: what does not stand here is one, and free if it moves nothing.
_INSTRUCTIONS = {
    "arith.constant": 0, "arith.divf": 8, "arith.remf": 20, "arith.divsi": 20, "arith.divui": 20,
    "arith.remsi": 20, "arith.remui": 20, "arith.ceildivsi": 20, "math.absf": 1, "math.fma": 1,
    "math.floor": 1, "math.ceil": 1, "arith.sitofp": 3, "arith.uitofp": 3,
    "linalg.reduce": 1, "tile.scan": 2, "tile.flip": 2,
}  # fmt: skip
_FUNCTION = 10  # of "math": a special function and what is around it
_FREE = ("tensor", "linalg", "tile", "warp", "scf", "memref", "func")  # views, copies, others
_EXCHANGES = ("linalg.reduce", "tile.scan")
_FMA = ("f32", "f64")  # factors that no tensor core multiplies as exactly
# Cycles, by the blocks of a program: measured where there are few programs (docs/notes.md).
_TOGETHER = {2: 4000, 4: 5000, 8: 7500}
_SECTOR_BYTES = 32  # moved for an element that an index chooses
# Instructions of threads that move elements one by one, for each: to a slot, where addresses and
# masks are computed, and of a result that leaves by rows. Measured (docs/notes.md).
_INTO_SLOT = 16
_BY_ROWS = 10
_COPY_ALIGNMENT = 16  # rows of copies begin at multiples of so many bytes (PTX ISA)
_WARP, _WORD = 32, 4
_MOST_CONDITIONS = 3  # tensors whose rows are told apart by where they begin


@dataclass
class _Turn:
    """What one turn of a loop takes, or the program outside of its loops.

    Units:    cycles, but bytes from L2 and to it; `waits` pass while nothing else is done

    Copies go to rings of `depth` slots; 0: there are none. `crossing` is what more is copied where
    a condition holds: bytes of lines that are touched by two rows of a tile.
    """

    turns: Expression
    overlaps: bool = False
    tensor: float = 0
    shared: float = 0
    threads: float = 0
    copied_bytes: float = 0
    moved_bytes: int = 0
    waits: int = 0
    loads: bool = False
    depth: int = 0
    crossing: dict[Expression, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """What callers know: the extents of the grid of programs, and those of each tensor."""

    grid: tuple[Expression, ...]
    dims: tuple[str, ...]
    tensors: Mapping[str, tuple[str | int, ...]]


@dataclass(frozen=True)
class Work:
    """What programs of a variant do, before there is machine code; without parts, nobody knows.

    `at_once` programs are on a multiprocessor at one time; None: as many as there is room for.
    `spilling` is the part in which registers run out, `threads` do a program: 0 for all of a block.
    All programs together read `read_bytes` from memory, and wait for `first_cycles` for what nobody
    read before, if that is known.
    """

    parts: tuple[Part, ...] = ()
    at_once: int | None = None
    blocks_per_program: int = 1
    spilling: int = -1
    threads: int = 0
    read_bytes: Expression = 0
    first_cycles: Expression = 0


def work_of(
    function: ir.OpView,
    schedule: Schedule | NoSchedule,
    target: Target,
    launch: Launch,
    warps: int,
    stages: Stages | None = None,
) -> Work:
    """What programs of `warps` warps do; nothing is known where the target has no rates.

    Assumes:  the function is as the schedule was planned for, whose operations are still there
    """
    if target.rates is None:
        return Work()
    walk = _Walk(schedule, target.rates, launch, stages)
    [block] = function.regions[0].blocks
    walk.into(block, walk.turns[0])
    if not isinstance(schedule, Schedule):
        return Work(walk.parts(warps))
    if not schedule.is_persistent:
        walk.turns[0].waits += target.rates.load_latency  # until the first copies are there
    if schedule.split is not None:
        _add_up(walk.turns[0], schedule.split, target.rates)
    first, *others = walk.parts(warps)
    # Products that are under way leave threads of a loop nothing to do, and nothing to spill.
    spilling = -1 if any(turn.threads for turn in walk.turns[1:]) else 0
    threads = warps * _WARP
    memory = walk.read_bytes(), walk.first_cycles()
    work = Work((first, *others), None, 1, spilling, threads, *memory)
    if schedule.is_persistent:
        # Teams do a program each: what one does alone hides under what the other one does.
        return replace(work, at_once=schedule.teams)
    blocks = schedule.split_blocks
    parts = (_of_one_block(first, blocks), *others)
    return replace(work, parts=parts, blocks_per_program=blocks)


def cost_of(work: Work, blocks: int, threads: int, spilled_bytes: int, target: Target) -> Cost:
    """The cost of a variant, where a multiprocessor has room for so many blocks of `threads`.

    Units:    `spilled_bytes` are those of a thread, in the part that says so
    """
    rates = target.rates
    if rates is None or not work.parts:
        return Cost()
    threads = work.threads or threads
    # They go the way to shared memory, and are waited for, beside the other warps of a scheduler.
    moving = spilled_bytes * threads // rates.shared_bytes
    warps = max(1, threads // _WARP // rates.schedulers)
    waiting = spilled_bytes // _WORD * rates.spill_latency // warps
    parts = list(work.parts)
    spills = parts[work.spilling]
    parts[work.spilling] = replace(
        spills,
        shared_cycles=spills.shared_cycles + moving,
        alone_cycles=spills.alone_cycles + moving + waiting,
    )
    at_once = max(1, blocks) if work.at_once is None else work.at_once
    floor = _quotient(work.read_bytes, rates.memory_bytes)
    return Cost(
        at_once,
        rates.load_latency,
        tuple(parts),
        work.blocks_per_program,
        floor,
        work.first_cycles,
    )


def _add_up(turn: _Turn, split: Split, rates: Rates) -> None:
    """What blocks take to begin together, and to add up sums once they have theirs."""
    sums = sum(prod(shape_of(one)) * _element_bytes(one.type) for one in split.loop.results)
    moved = sums if split.blocks == 2 else 2 * sums
    turn.waits += _TOGETHER[split.blocks] + round(moved / rates.l2_bytes)


def _of_one_block(part: Part, blocks: int) -> Part:
    """What is done once a program, and by one of its blocks. Of what they take to begin together no
    more than half is hidden by other blocks."""
    if blocks == 1:
        return part
    waits = _TOGETHER[blocks] // 2
    tensor, shared, memory, threads = (cycles // blocks + waits for cycles in part.busy_cycles)
    return Part(part.turns, tensor, shared, memory, threads, part.alone_cycles)


def _parts(turn: _Turn, warps: int, rates: Rates) -> Iterator[Part]:
    """What a turn takes; and what it takes more, the more of its conditions hold.

    The more is copied, the more likely it is what all wait for: so what several conditions add
    together is what they add one by one, and more.
    """
    yield _part(turn, warps, rates)
    if not turn.overlaps:
        return
    conditions = sorted(turn.crossing, key=lambda one: -turn.crossing[one])[:_MOST_CONDITIONS]

    def alone(held: Sequence[Expression]) -> int:
        more = sum(turn.crossing[one] for one in held)
        return _part(
            replace(turn, copied_bytes=turn.copied_bytes + more), warps, rates
        ).alone_cycles

    added: dict[tuple[Expression, ...], int] = {(): alone(())}
    for count in range(1, len(conditions) + 1):
        for held in combinations(conditions, count):
            less = [known for known in added if set(known) < set(held)]
            added[held] = max(0, alone(held) - sum(added[known] for known in less))  # but rounding
            rate = rates.l2_bytes * rates.sustained_percent / 100
            memory = round(turn.crossing[held[0]] / rate) if count == 1 else 0
            turns = turn.turns
            for condition in held:
                turns = turns if condition is True else ("select", condition, turns, 0)
            if memory or added[held]:
                yield Part(turns, 0, 0, memory, 0, added[held])


def _part(turn: _Turn, warps: int, rates: Rates) -> Part:
    memory = turn.moved_bytes / rates.l2_bytes
    tensor, copies = _tensor(turn, rates), _copies(turn, rates)
    # A warp issues every other cycle, at best.
    threads = turn.threads * max(1.0, 2 * rates.schedulers / warps)
    if turn.overlaps:
        ring = _slot(turn, rates, rates.copy_latency)
        alone = max(_busiest(turn, rates), ring) + threads + memory + turn.waits
    else:
        waits = turn.waits + turn.loads * rates.load_latency
        alone = tensor + turn.shared + copies + memory + threads + waits
    cycles = (tensor, turn.shared, copies + memory, turn.threads, alone)
    return Part(turn.turns, *map(round, cycles))


def _tensor(turn: _Turn, rates: Rates) -> float:
    return turn.tensor * 100 / rates.sustained_percent


def _copies(turn: _Turn, rates: Rates) -> float:
    return turn.copied_bytes / rates.l2_bytes * 100 / rates.sustained_percent


def _busiest(turn: _Turn, rates: Rates) -> float:
    """What a turn takes in which copies and products overlap, if nobody waits."""
    return max(_tensor(turn, rates), turn.shared, _copies(turn, rates))


def _slot(turn: _Turn, rates: Rates, latency: int) -> float:
    """How often one of the slots of a ring is full: each is filled, and then used."""
    return (latency + _busiest(turn, rates)) / turn.depth if turn.depth else 0


class _Walk:
    """Sums up what stands in a function, loop by loop; what is in none comes first."""

    def __init__(
        self,
        schedule: Schedule | NoSchedule,
        rates: Rates,
        launch: Launch,
        stages: Stages | None = None,
    ) -> None:
        self.turns = [_Turn(1)]
        self._copied: list[tuple[Copied, _Turn]] = []
        self._rates = rates
        self._launch = launch
        planned = schedule if isinstance(schedule, Schedule) else None
        self._split = planned.split if planned else None
        self._products = {one.op.operation: one for one in planned.products} if planned else {}
        channels = planned.channels if planned else ()
        self._copies = {one.load.operation: one for channel in channels for one in channel.loads}
        self._depths = {
            one.load.operation: channel.depth for channel in channels for one in channel.loads
        }
        rings = stages.rings if stages else ()
        self._staged = {one.load.operation: one for ring in rings for one in ring.loads}
        # What the blocks of a cluster share, each reads a part of.
        cluster = planned.cluster.blocks if planned and planned.cluster else 1
        self._blocks = {
            one.load.operation: cluster for channel in channels for one in channel.shared
        }
        if planned and planned.results_by == "rows":
            stored = sum(prod(shape_of(one.op.operands[1])) for one in planned.results)
            self.turns[0].threads += stored * _BY_ROWS / rates.lanes

    def parts(self, warps: int) -> tuple[Part, ...]:
        """What is done once a program, then the loops in which anything takes time."""
        [first], *loops = [list(_parts(turn, warps, self._rates)) for turn in self.turns]
        inner = [part for loop in loops for part in loop]
        return (first, *(one for one in inner if one.alone_cycles or one.memory_cycles))

    def read_bytes(self) -> Expression:
        """Of the tensors that are copied, each once and as a whole."""
        found: Expression = 0
        sizes = {
            one.param: _element_bytes(one.load.results[0].type) for one in self._copies.values()
        }
        for param, size in sizes.items():
            whole: Expression = size
            for extent in self._launch.tensors[param]:
                whole = _times(whole, extent)
            found = whole if found == 0 else ("add", found, whole)
        return found

    def first_cycles(self) -> Expression:
        """Waits for slots with a tile that nobody read before: of the tensor that has most."""
        found: Expression = 0
        for copied, turn in self._copied:
            extents = self._launch.tensors[copied.param]
            if not turn.overlaps or len(extents) != len(copied.tile.shape):
                continue
            waits: Expression = round(_slot(turn, self._rates, self._rates.memory_latency))
            for extent, side in zip(extents, copied.tile.shape, strict=True):
                waits = _times(waits, _quotient(extent, side))
            found = waits if found == 0 else ("max", found, waits)
        return found

    def into(self, block: ir.Block, turn: _Turn) -> None:
        for op in block.operations:
            rule = rules()[op.operation.name]
            if not rule.control:
                self._count(op, turn)
                continue
            inner = turn
            if rule.loop:
                turns = turns_of(op, self._launch.grid, self._launch.dims)
                if self._split is not None and op == self._split.loop:
                    turns = _quotient(turns, self._split.blocks)
                inner = _Turn(_times(turn.turns, turns))
                self.turns.append(inner)
            for region in op.regions:
                for inside in region.blocks:
                    self.into(inside, inner)

    def _count(self, op: ir.OpView, turn: _Turn) -> None:
        rule, operation = rules()[op.operation.name], op.operation
        access, indexed = rule.access(op), rule.indexed(op)
        if operation in self._copies:
            self._copy(self._copies[operation], turn)
        elif operation in self._staged:
            self._stage(self._staged[operation], turn)
        elif operation in self._products:
            took = busy([self._products[operation]], 0, self._rates)
            turn.tensor += took.tensor
            turn.shared += took.shared
            self._hand_over(op)
        elif access is not None:
            turn.moved_bytes += prod(access.shape) * _element_bytes(access.view.type)
            turn.loads |= access.tile in list(op.results)
        elif indexed is not None:
            count = prod(shape_of(indexed.tile)) if _is_tile(indexed.tile) else 1
            turn.moved_bytes += count * _SECTOR_BYTES
            turn.loads |= indexed.tile in list(op.results)
        elif rule.multiplied(op) is not None:
            self._multiply(op, turn)
        else:
            self._compute(op, turn)

    def _copy(self, copied: Copied, turn: _Turn) -> None:
        tile = copied.tile
        # L2 gives whole lines, however short rows are; to shared memory the rest is lost by half.
        lines = tile.bytes // tile.swizzle * max(tile.swizzle, self._rates.line_bytes)
        share = lines / self._blocks.get(copied.load.operation, 1)
        turn.copied_bytes += share
        turn.shared += (tile.bytes + lines) / 2 / self._rates.shared_bytes
        turn.overlaps |= is_in_loop(copied.block)
        turn.depth = self._depths[copied.load.operation]
        self._copied.append((copied, turn))
        crossing = self._crosses(copied.param, tile)
        if crossing is not False:
            two = max(0, tile.swizzle - _COPY_ALIGNMENT) / self._rates.line_bytes
            turn.crossing[crossing] = turn.crossing.get(crossing, 0.0) + two * share

    def _crosses(self, param: str, tile: SwizzledTile) -> Expression:
        """Whether rows of a packed tensor begin anywhere in lines of L2."""
        extents = self._launch.tensors[param]
        if len(extents) < 2 or tile.rows == 1:
            return False
        size, line = tile.element_bytes, self._rates.line_bytes
        row = extents[-1]
        if isinstance(row, int):
            return row * size % line != 0
        return ("ne", ("rem", row, max(1, line // size)), 0)

    def _stage(self, staged: StagedLoad, turn: _Turn) -> None:
        tile = staged.tile
        turn.copied_bytes += tile.bytes
        turn.shared += tile.bytes / self._rates.shared_bytes
        turn.overlaps = True
        if staged.fill == REGISTERS:
            turn.threads += tile.bytes // tile.element_bytes * _INTO_SLOT / self._rates.lanes
            turn.waits = max(turn.waits, self._rates.load_latency)

    def _multiply(self, op: ir.OpView, turn: _Turn) -> None:
        elements = rules()[op.operation.name].multiplied(op)
        assert elements is not None, "it is a product"
        left = op.operands[0]
        products = prod(shape_of(op.results[0])) * shape_of(left)[-1]
        if elements[0] in _FMA:
            turn.threads += products / self._rates.lanes
            return
        size = _element_bytes(left.type)
        turn.tensor += (
            products * size * 100 / (self._rates.product_bytes * self._rates.fragment_percent)
        )
        read = sum(prod(shape_of(one)) * size for one in list(op.operands)[:2])
        turn.shared += 2 * read / self._rates.shared_bytes  # written, and read at least once
        turn.waits += self._rates.exchange_latency
        self._hand_over(op)

    def _hand_over(self, op: ir.OpView) -> None:
        """Sums are waited for, and change hands in shared memory, before anybody stores them."""
        moved = 2 * prod(shape_of(op.results[0])) * _element_bytes(op.results[0].type)
        self.turns[0].shared += moved / self._rates.shared_bytes
        self.turns[0].waits += self._rates.load_latency

    def _compute(self, op: ir.OpView, turn: _Turn) -> None:
        name = op.operation.name
        values = [one for one in (*op.results, *op.operands) if _is_tile(one)]
        if not values:
            return
        kind = name.partition(".")[0]
        each = _INSTRUCTIONS.get(name, _FUNCTION if kind == "math" else 0 if kind in _FREE else 1)
        turn.threads += max(prod(shape_of(one)) for one in values) * each / self._rates.lanes
        if name in _EXCHANGES:
            turn.waits += self._rates.exchange_latency


def _times(outer: Expression, inner: Expression) -> Expression:
    if isinstance(outer, int) and isinstance(inner, int):
        return outer * inner
    return inner if outer == 1 else ("mul", outer, inner)


def _quotient(turns: Expression, blocks: int) -> Expression:
    return -(-turns // blocks) if isinstance(turns, int) else ("ceildiv", turns, blocks)


def _is_tile(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _element_bytes(kind: ir.Type) -> int:
    return max(1, bit_width(ir.ShapedType(kind).element_type) // 8)
