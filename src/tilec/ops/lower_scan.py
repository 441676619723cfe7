"""A scan on a GPU: in the thread, between lanes, between warps, as its plan says.

Several values can be scanned together: one plan serves them all, since they have one layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith
from tilec.layout import LANE_BITS
from tilec.layout.scan import BetweenLanes, BetweenWarps, InThread, LaneStep, Level, ScanPlan
from tilec.layout.traffic import of_scan
from tilec.ops.between_threads import (
    from_memory,
    read_shared,
    shuffle_from,
    to_memory,
    write_shared,
)
from tilec.ops.fragments import bit_width, i32, in_memory
from tilec.ops.lower_reduce import Combine, Row
from tilec.ops.lowering import Lowering
from tilec.ops.notes import Moved


def lower_scan(
    plan: ScanPlan,
    rows: Sequence[Row],
    starts: Sequence[Row],
    combine: Combine,
    lowering: Lowering,
) -> list[Row]:
    """The registers of the results.

    Shapes:   `rows[r]` is register r of each value, in the plan's layout; `starts[b]` is what is
              before block b of the last level
    """
    elements = [v.type for v in rows[0]]
    moved = of_scan(plan, tuple(bit_width(e) // 8 for e in elements))
    named = tuple(map(str, elements))
    lowering.note(Moved("scan", named, plan.layout, plan.layout, moved))
    if not plan.levels:
        return [combine(start, row) for start, row in zip(starts, rows, strict=True)]
    emit = _Emit(combine, lowering)
    levels: list[_Scanned] = []
    blocks = list(rows)
    for number, level in enumerate(plan.levels):
        is_last = number == len(plan.levels) - 1
        levels.append(emit.level(level, blocks, is_first=number == 0, is_last=is_last))
        blocks = levels[-1].totals
    before = list(starts)
    for scanned in reversed(levels[1:]):
        before = [
            emit.before(before[parent], own, scanned.has_before)
            for parent, own in zip(scanned.parents, scanned.blocks, strict=True)
        ]
    first = levels[0]
    return [
        combine(before[parent], _certain(own))
        for parent, own in zip(first.parents, first.blocks, strict=True)
    ]


@dataclass(frozen=True)
class _Scanned:
    """A level: of each block what is before it within the level, of the first level with itself.

    None where nothing is before a block in any thread; in those threads alone, unless `has_before`
    (i1). `parents` are the blocks of the next level, whose values are the `totals`.
    """

    blocks: list[Row | None]
    has_before: ir.Value | None
    parents: list[int]
    totals: list[Row]


class _Emit:
    def __init__(self, combine: Combine, lowering: Lowering) -> None:
        self.combine, self.lowering = combine, lowering

    def before(self, whole: Row, own: Row | None, has_before: ir.Value | None) -> Row:
        """What is before a block, from what is before its parent and before it within that."""
        if own is None:
            return whole
        both = self.combine(whole, own)
        return both if has_before is None else _chosen(has_before, both, whole)

    def level(self, level: Level, blocks: list[Row], *, is_first: bool, is_last: bool) -> _Scanned:
        match level:
            case InThread():
                return self._in_thread(level, blocks, is_first)
            case BetweenLanes():
                return self._between_lanes(level, blocks, is_first)
            case BetweenWarps():
                return self._between_warps(level, blocks, is_first, is_last)

    def _in_thread(self, level: InThread, blocks: list[Row], is_first: bool) -> _Scanned:
        found: list[Row | None] = [None] * len(blocks)
        parents = [0] * len(blocks)
        totals = []
        for parent, run in enumerate(level.runs):
            total: Row | None = None
            for block in run:
                parents[block] = parent
                found[block] = total
                total = blocks[block] if total is None else self.combine(total, blocks[block])
                if is_first:
                    found[block] = total
            totals.append(_certain(total))
        return _Scanned(found, None, parents, totals)

    def _between_lanes(self, level: BetweenLanes, blocks: list[Row], is_first: bool) -> _Scanned:
        lanes = _Lanes(level, self.lowering)
        value = blocks
        for step in level.steps:
            takes, source = lanes.step(step)
            offered = [_shuffled(row, source) for row in value]
            value = [
                _chosen(takes, self.combine(other, mine), mine)
                for other, mine in zip(offered, value, strict=True)
            ]
        totals = [_shuffled(row, lanes.last) for row in value] if level.spreads else value
        parents = list(range(len(blocks)))
        if is_first:
            return _Scanned(list(value), None, parents, totals)
        before = [_shuffled(row, lanes.before) for row in value]
        return _Scanned(list(before), lanes.has_before, parents, totals)

    def _between_warps(
        self, level: BetweenWarps, blocks: list[Row], is_first: bool, is_last: bool
    ) -> _Scanned:
        lowering = self.lowering
        partials = _exchanged(level, blocks, lowering)
        position = lowering.thread_number((*[0] * LANE_BITS, *level.position))
        here = {
            partial: arith.cmpi(arith.CmpIPredicate.eq, position, i32(partial))
            for partial in level.order[1:]
        }
        found: list[Row] = []
        totals = []
        for rows in partials:
            total = before = rows[level.order[0]]
            for partial in level.order[1:]:
                if partial != level.order[1]:
                    before = _chosen(here[partial], total, before)
                if partial != level.order[-1] or not is_last:
                    total = self.combine(total, rows[partial])
            found.append(before)
            totals.append(total)
        first = i32(level.order[0])
        has_before = arith.cmpi(arith.CmpIPredicate.ne, position, first)
        parents = list(range(len(blocks)))
        if is_first:
            found = [
                _chosen(has_before, self.combine(before, own), own)
                for before, own in zip(found, blocks, strict=True)
            ]
            return _Scanned(list(found), None, parents, totals)
        return _Scanned(list(found), has_before, parents, totals)


class _Lanes:
    """Which lanes a thread takes from (i32), found once for each kernel."""

    def __init__(self, level: BetweenLanes, lowering: Lowering) -> None:
        self._level, self._lowering = level, lowering
        with lowering.entry:
            lane = arith.andi(lowering.thread, i32((1 << LANE_BITS) - 1))
            self._place = _flipped(lane, level.flip)

    def step(self, step: LaneStep) -> tuple[ir.Value, ir.Value]:
        """Whether this lane takes part (i1), and from which lane."""
        with self._lowering.entry:
            bit = arith.andi(self._place, i32(step.bit))
            takes = arith.cmpi(arith.CmpIPredicate.ne, bit, i32(0))
            cleared = arith.andi(self._place, i32(~step.bit))
            return takes, _flipped(arith.ori(cleared, i32(step.below)), step.flip)

    @property
    def has_before(self) -> ir.Value:
        with self._lowering.entry:
            own = arith.andi(self._place, i32(self._level.mask))
            return arith.cmpi(arith.CmpIPredicate.ne, own, i32(0))

    @property
    def before(self) -> ir.Value:
        """The lane before this one; any lane for the first."""
        mask = self._level.mask
        with self._lowering.entry:
            own = arith.andi(self._place, i32(mask))
            earlier = arith.andi(arith.addi(own, i32(-1)), i32(mask))
            others = arith.andi(self._place, i32(~mask))
            return _flipped(arith.ori(others, earlier), self._level.flip)

    @property
    def last(self) -> ir.Value:
        with self._lowering.entry:
            return _flipped(arith.ori(self._place, i32(self._level.mask)), self._level.flip)


def _flipped(lane: ir.Value, flip: int) -> ir.Value:
    return arith.xori(lane, i32(flip)) if flip else lane


def _shuffled(row: Row, lane: ir.Value) -> Row:
    return tuple(shuffle_from(value, lane) for value in row)


def _chosen(condition: ir.Value, one: Row, other: Row) -> Row:
    return tuple(arith.select(condition, a, b) for a, b in zip(one, other, strict=True))


def _certain(row: Row | None) -> Row:
    assert row is not None, "a run has blocks, and a block of the first level has itself"
    return row


def _exchanged(
    level: BetweenWarps, blocks: Sequence[Row], lowering: Lowering
) -> list[dict[int, Row]]:
    """For each block the totals of all warps, by their place in memory."""
    elements = [v.type for v in blocks[0]]
    buffers = [lowering.shared_bytes(level.elements * bit_width(e) // 8) for e in elements]
    for number, buffer in enumerate(buffers):
        column = [to_memory(row[number]) for row in blocks]
        write_shared(buffer, level.write, column, lowering)
    read = [
        read_shared(buffer, level.read, in_memory(element), lowering)
        for buffer, element in zip(buffers, elements, strict=True)
    ]
    found = []
    for block in range(len(blocks)):
        columns = [
            [from_memory(v, element) for v in values[block]]
            for values, element in zip(read, elements, strict=True)
        ]
        found.append(dict(enumerate(zip(*columns, strict=True))))
    return found
