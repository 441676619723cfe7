"""Which program each block of a cluster does at a step: neighbours, as long as there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir

from tilec.ir.dialects import arith
from tilec.layout.neighbours import Cluster
from tilec.ops.order import count_of, grouped, number_as


@dataclass(frozen=True)
class Step:
    """What one block does.

    Types:    `program` are numbers, one an axis; `is_together` (i1): the cluster's programs are
              neighbours along its sides; `is_program` (i1): it is not another block's program
    """

    program: tuple[ir.Value, ...]
    is_together: ir.Value
    is_program: ir.Value


@dataclass(frozen=True)
class _Part:
    """Programs of the grid side by side: so many along each axis, from the first one on.

    Types:    numbers, one an axis
    """

    extents: tuple[ir.Value, ...]
    first: tuple[ir.Value, ...]

    @property
    def count(self) -> ir.Value:
        return count_of(self.extents)


def steps_of(grid: Sequence[ir.Value], cluster: Cluster) -> ir.Value:
    """How many steps clusters take for all programs, together."""
    groups, *rest = _parts(grid, cluster)
    left = _sum([part.count for part in rest])
    return arith.addi(groups.count, arith.ceildivui(left, number_as(left, cluster.blocks)))


def step_of(
    number: ir.Value, grid: Sequence[ir.Value], rows: int, cluster: Cluster, rank: ir.Value
) -> Step:
    """Step `number` of block `rank` of its cluster; `rows` rows of groups are walked together.

    First groups of neighbours. The programs that no group has, fewer than a group along one axis or
    another, are walked one after the other; where these end within a step, the last one is done
    again. Each program has one step and block (`tests/codegen/test_order.py`).
    """
    blocks = number_as(number, cluster.blocks)
    groups, *rest = _parts(grid, cluster)
    whole, left = groups.count, _sum([part.count for part in rest])
    is_together = arith.cmpi(arith.CmpIPredicate.slt, number, whole)
    single = arith.addi(arith.muli(arith.subi(number, whole), blocks), rank)
    is_left = arith.cmpi(arith.CmpIPredicate.slt, single, left)
    last = arith.subi(left, number_as(left, 1))
    alone, place = _part_of(arith.minsi(single, last), rest)
    place = arith.select(is_together, number, place)
    extents = _either(is_together, groups.extents, alone.extents)
    program = list(grouped(place, extents, rows))
    beside, further = list(program), list(map(arith.addi, program, alone.first))
    for number_of_side, side in enumerate(cluster.sides):
        own, along = _place_along(number_of_side, cluster, rank), number_as(rank, side.blocks)
        beside[side.axis] = arith.addi(arith.muli(program[side.axis], along), own)
    one = arith.constant(ir.IntegerType.get_signless(1), 1)
    return Step(
        _either(is_together, beside, further),
        is_together,
        arith.select(is_together, one, is_left),
    )


def _parts(grid: Sequence[ir.Value], cluster: Cluster) -> list[_Part]:
    """The groups of neighbours, and then for each side the programs that no group has: those behind
    the last group along it, of which none is behind the last group along a side before."""
    groups, first = list(grid), [number_as(grid[0], 0)] * len(grid)
    done, rest = list(grid), []
    for side in cluster.sides:
        axis, blocks = side.axis, number_as(grid[0], side.blocks)
        groups[axis] = arith.divui(grid[axis], blocks)
        in_groups = arith.muli(groups[axis], blocks)
        behind = [*done]
        behind[axis] = arith.subi(grid[axis], in_groups)
        begin = [*first]
        begin[axis] = in_groups
        rest.append(_Part(tuple(behind), tuple(begin)))
        done[axis] = in_groups
    return [_Part(tuple(groups), tuple(first)), *rest]


def _part_of(number: ir.Value, parts: Sequence[_Part]) -> tuple[_Part, ir.Value]:
    """The part in which the program of this number is, and its number there."""
    part, *others = parts
    if not others:
        return part, number
    is_here = arith.cmpi(arith.CmpIPredicate.slt, number, part.count)
    other, place = _part_of(arith.subi(number, part.count), others)
    either = _Part(
        _either(is_here, part.extents, other.extents), _either(is_here, part.first, other.first)
    )
    return either, arith.select(is_here, number, place)


def _place_along(number: int, cluster: Cluster, rank: ir.Value) -> ir.Value:
    """Which of the blocks along a side a rank is."""
    step = cluster.steps[number]
    place = rank if step == 1 else arith.divui(rank, number_as(rank, step))
    blocks = number_as(rank, cluster.sides[number].blocks)
    return place if number == 0 else arith.remui(place, blocks)


def _either(
    condition: ir.Value, these: Sequence[ir.Value], those: Sequence[ir.Value]
) -> tuple[ir.Value, ...]:
    return tuple(
        this if this == that else arith.select(condition, this, that)
        for this, that in zip(these, those, strict=True)
    )


def _sum(values: Sequence[ir.Value]) -> ir.Value:
    return reduce(arith.addi, values)
