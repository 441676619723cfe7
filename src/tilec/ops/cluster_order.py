"""Which program each block of a cluster does at a step: neighbours, as long as there are any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ops.lowering import Cluster
from tilec.ops.order import count_of, grouped, number_as


@dataclass(frozen=True)
class Step:
    """What one block does.

    Types:    `program` are numbers, one an axis; `is_together` (i1): the cluster's programs are
              neighbours along its axis; `is_program` (i1): it is not another block's program
    """

    program: tuple[ir.Value, ...]
    is_together: ir.Value
    is_program: ir.Value


def steps_of(grid: Sequence[ir.Value], cluster: Cluster) -> ir.Value:
    """How many steps clusters take for all programs, together."""
    _, whole, left = _parts(grid, cluster)
    return arith.addi(whole, arith.ceildivui(left, number_as(left, cluster.blocks)))


def step_of(
    number: ir.Value, grid: Sequence[ir.Value], rows: int, cluster: Cluster, rank: ir.Value
) -> Step:
    """Step `number` of block `rank` of its cluster, where `rows` rows are walked together.

    First groups of neighbours. The programs that no group has, fewer than a group along the axis,
    are walked one after the other; where these end within a step, the last one is done again. Each
    program has one step and block (`tests/codegen/test_order.py`).
    """
    axis, blocks = cluster.axis, number_as(number, cluster.blocks)
    groups, whole, left = _parts(grid, cluster)
    is_together = arith.cmpi(arith.CmpIPredicate.slt, number, whole)
    single = arith.addi(arith.muli(arith.subi(number, whole), blocks), rank)
    is_left = arith.cmpi(arith.CmpIPredicate.slt, single, left)
    last = arith.subi(left, number_as(left, 1))
    place = arith.select(is_together, number, arith.minsi(single, last))
    done = arith.muli(groups, blocks)
    extents = list(grid)
    extents[axis] = arith.select(is_together, groups, arith.subi(grid[axis], done))
    program = list(grouped(place, extents, rows))
    beside = arith.addi(arith.muli(program[axis], blocks), rank)
    program[axis] = arith.select(is_together, beside, arith.addi(done, program[axis]))
    one = arith.constant(ir.IntegerType.get_signless(1), 1)
    return Step(tuple(program), is_together, arith.select(is_together, one, is_left))


def _parts(grid: Sequence[ir.Value], cluster: Cluster) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Whole groups along the axis; how many there are in all; how many programs are in none."""
    extent = grid[cluster.axis]
    blocks, one = number_as(extent, cluster.blocks), number_as(extent, 1)
    others = count_of([one, *(other for axis, other in enumerate(grid) if axis != cluster.axis)])
    groups = arith.divui(extent, blocks)
    rest = arith.subi(extent, arith.muli(groups, blocks))
    return groups, arith.muli(groups, others), arith.muli(rest, others)
