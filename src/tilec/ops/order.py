"""The order of the programs of a grid.

Numbers are all of one integer type: index, or i32 where launchers see to it that they are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ops.fragments import index


def count_of(grid: Sequence[ir.Value]) -> ir.Value:
    """How many programs a grid has (index without axes)."""
    return reduce(arith.muli, grid) if grid else index(1)


def number_as(like: ir.Value, value: int) -> ir.Value:
    """A constant of the type that another number has."""
    return arith.constant(like.type, value)


def delinearised(number: ir.Value, grid: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
    """Row-major: the last axis runs fastest. The first needs no division; without axes, nothing."""
    ids: list[ir.Value] = []
    for extent in reversed(grid[1:]):
        ids.append(arith.remui(number, extent))
        number = arith.divui(number, extent)
    return (number, *reversed(ids))[: len(grid)]


def grouped(number: ir.Value, grid: Sequence[ir.Value], rows: int) -> tuple[ir.Value, ...]:
    """The program of this number, where `rows` rows of the last two axes are walked together.

    Column by column, so that programs that follow each other are a block of rows and columns: they
    use the same parts of what rows and columns are computed from. Each program has one number
    (`tests/codegen/test_order.py`).
    """
    if len(grid) < 2:
        return delinearised(number, grid)
    *outer, down, across = grid
    *batch, within = delinearised(number, [*outer, arith.muli(down, across)])
    size = arith.muli(across, number_as(across, rows))
    group, place = arith.divui(within, size), arith.remui(within, size)
    most = number_as(group, rows)
    first = arith.muli(group, most)
    # The last group has the rows that are left.
    height = arith.minsi(arith.subi(down, first), most)
    row = arith.addi(first, arith.remui(place, height))
    return (*batch, row, arith.divui(place, height))
