"""What a program takes, by its operations on tiles: the data of which launchers choose members.

It is a model, and for a choice among instances of one kernel only: what they have in common may be
wrong. A unit of a multiprocessor is busy for what its rate says (`target/`). In a loop whose copies
and products overlap, a turn takes as long as its busiest unit. Elsewhere one thing comes after the
other: loads wait for memory, once for all that stand together, and reductions for other threads.

How good its choices are on an H100 is in docs/tuning.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from mlir import ir

from tilec.artifact.expression import Expression
from tilec.artifact.family import Cost, Part
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import shape_of
from tilec.schedule.bound import busy
from tilec.schedule.plan import NoSchedule, Schedule, is_in_loop
from tilec.schedule.split import Split
from tilec.schedule.stages import Stages
from tilec.schedule.turns import turns_of
from tilec.target.description import Rates, Target

# Instructions for an element: what does not stand here is one, and free if it moves nothing.
_INSTRUCTIONS = {
    "arith.constant": 0, "arith.divf": 8, "arith.remf": 20, "arith.divsi": 20, "arith.divui": 20,
    "arith.remsi": 20, "arith.remui": 20, "arith.ceildivsi": 20, "math.absf": 1, "math.fma": 1,
    "math.floor": 1, "math.ceil": 1, "linalg.reduce": 1, "tile.scan": 2, "tile.flip": 2,
}  # fmt: skip
_FUNCTION = 10  # of "math": a special function and what is around it
_FREE = ("tensor", "linalg", "tile", "warp", "scf", "memref", "func")  # views, copies, others
_EXCHANGES = ("linalg.reduce", "tile.scan")
_FMA = ("f32", "f64")  # factors that no tensor core multiplies as exactly
# Cycles, by the blocks of a program: measured at 512^3, where nothing else is slow (docs/notes.md).
_TOGETHER = {2: 2500, 4: 5000, 8: 7500}
_SECTOR_BYTES = 32  # moved for an element that an index chooses


@dataclass
class _Turn:
    """What one turn of a loop takes, or the program outside of its loops.

    Units:    cycles, but bytes from L2 and to it; `waits` pass while nothing else is done
    """

    turns: Expression
    overlaps: bool = False
    tensor: float = 0
    shared: float = 0
    threads: float = 0
    copied_bytes: int = 0
    moved_bytes: int = 0
    waits: int = 0
    loads: bool = False


@dataclass(frozen=True)
class Work:
    """What programs of a variant do, before there is machine code; without parts, nobody knows.

    `at_once` programs are on a multiprocessor at one time; None: as many as there is room for.
    """

    parts: tuple[Part, ...] = ()
    at_once: int | None = None
    blocks_per_program: int = 1


def work_of(
    function: ir.OpView,
    schedule: Schedule | NoSchedule,
    target: Target,
    grid: Sequence[Expression],
    dims: Sequence[str],
    warps: int,
    stages: Stages | None = None,
) -> Work:
    """What programs of `warps` warps do; nothing is known where the target has no rates.

    Assumes:  the function is as the schedule was planned for, whose operations are still there
    """
    if target.rates is None:
        return Work()
    walk = _Walk(schedule, target.rates, grid, dims, stages)
    [block] = function.regions[0].blocks
    walk.into(block, walk.turns[0])
    if isinstance(schedule, Schedule) and not schedule.is_persistent:
        walk.turns[0].waits += target.rates.load_latency  # until the first copies are there
    if isinstance(schedule, Schedule) and schedule.split is not None:
        _add_up(walk.turns[0], schedule.split, target.rates)
    first, *inner = (_part(one, warps, target.rates) for one in walk.turns)
    parts = (first, *(part for part in inner if part.alone_cycles))
    if isinstance(schedule, Schedule) and schedule.is_persistent:
        # Teams do a program each: what one does alone hides under what the other one does.
        return Work(parts, schedule.teams)
    blocks = schedule.split_blocks if isinstance(schedule, Schedule) else 1
    return Work((_of_one_block(first, blocks), *parts[1:]), blocks_per_program=blocks)


def cost_of(work: Work, blocks: int, spilled_bytes: int, target: Target) -> Cost:
    """The cost of a variant, where a multiprocessor has room for so many blocks.

    Units:    `spilled_bytes` are those of a block, in what is done most often
    """
    rates = target.rates
    if rates is None or not work.parts:
        return Cost()
    spilling = spilled_bytes // rates.shared_bytes  # goes the same way
    *others, last = work.parts
    last = replace(
        last,
        shared_cycles=last.shared_cycles + spilling,
        alone_cycles=last.alone_cycles + spilling,
    )
    at_once = max(1, blocks) if work.at_once is None else work.at_once
    return Cost(at_once, rates.load_latency, (*others, last), work.blocks_per_program)


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


def _part(turn: _Turn, warps: int, rates: Rates) -> Part:
    memory = turn.moved_bytes / rates.l2_bytes
    copies = turn.copied_bytes / rates.l2_bytes
    tensor = turn.tensor * 100 / rates.sustained_percent
    if turn.overlaps:
        alone = max(tensor, turn.shared, copies) + turn.threads + memory
    else:
        waits = turn.waits + turn.loads * rates.load_latency
        # A warp issues every other cycle, at best.
        few = max(1.0, 2 * rates.schedulers / warps)
        alone = tensor + turn.shared + copies + memory + turn.threads * few + waits
    cycles = (tensor, turn.shared, copies + memory, turn.threads, alone)
    return Part(turn.turns, *map(round, cycles))


class _Walk:
    """Sums up what stands in a function, loop by loop; what is in none comes first."""

    def __init__(
        self,
        schedule: Schedule | NoSchedule,
        rates: Rates,
        grid: Sequence[Expression],
        dims: Sequence[str],
        stages: Stages | None = None,
    ) -> None:
        self.turns = [_Turn(1)]
        self._rates = rates
        self._grid = grid
        self._dims = dims
        planned = schedule if isinstance(schedule, Schedule) else None
        self._split = planned.split if planned else None
        self._products = {one.op.operation: one for one in planned.products} if planned else {}
        self._copies = {
            load.load.operation: load.tile
            for channel in (planned.channels if planned else ())
            for load in channel.loads
        }
        rings = stages.rings if stages else ()
        self._copies |= {one.load.operation: one.tile for ring in rings for one in ring.loads}
        # What the blocks of a cluster share, each reads a part of.
        self._blocks = {
            load.load.operation: sharers.blocks
            for channel in (planned.channels if planned else ())
            for load, sharers in channel.shared
        }

    def into(self, block: ir.Block, turn: _Turn) -> None:
        for op in block.operations:
            rule = rules()[op.operation.name]
            if not rule.control:
                self._count(op, turn)
                continue
            inner = turn
            if rule.loop:
                turns = turns_of(op, self._grid, self._dims)
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
            tile = self._copies[operation]
            # L2 gives whole lines, however short the rows of a copy are.
            lines = max(1, self._rates.line_bytes // tile.swizzle)
            turn.copied_bytes += tile.bytes * lines // self._blocks.get(operation, 1)
            turn.shared += tile.bytes / self._rates.shared_bytes
            turn.overlaps |= is_in_loop(operation.block)
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
