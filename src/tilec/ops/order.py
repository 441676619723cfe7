"""The order of the programs of a grid.

Numbers are all of one integer type: index, or i32 where launchers see to it that they are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Longest:
    """The programs that take longest: those at one end of an axis of the grid, the last index if
    `at_end`; they take less the farther they are from it."""

    axis: int
    at_end: bool


def longest_first(
    number: ir.Value, grid: Sequence[ir.Value], rows: int, longest: Longest
) -> tuple[ir.Value, ...]:
    """The program of this number: of `rows` rows of programs those that take longest first.

    A row has all programs along the axis. For blocks that start in this order, each when another
    one is done.
    """
    lines = _Lines(grid, rows, longest)
    line, rank = lines.place(number, lines.length)
    return lines.program(line, rank)


def balanced(
    number: ir.Value, blocks: ir.Value, grid: Sequence[ir.Value], rows: int, longest: Longest
) -> tuple[ir.Value, ...]:
    """The program of this number where block `number % blocks` does it: blocks take equally long.

    Of two programs in a row the lengths add up to the same if one is as far from one end of the
    axis as the other from the other end. A block does such pairs, a long program and then a short
    one, for as long as there is a pair for every block. What is left is done longest first, by the
    blocks in turn, from the last to the first and back.
    """
    lines = _Lines(grid, rows, longest)
    one, two = number_as(number, 1), number_as(number, 2)
    half = arith.divui(lines.length, two)
    pairs = arith.muli(lines.count, half)
    whole = arith.divui(pairs, blocks)  # pairs that every block does
    wave, block = arith.divui(number, blocks), arith.remui(number, blocks)
    is_paired = _less(wave, arith.muli(whole, two))
    done = arith.muli(whole, blocks)
    first = arith.addi(arith.muli(arith.divui(wave, two), blocks), block)
    is_second = arith.cmpi(_EQUAL, arith.remui(wave, two), one)

    # What is left: the long ones of pairs, those in the middle of rows, the short ones.
    start = arith.muli(wave, blocks)
    total = arith.muli(lines.count, lines.length)
    width = arith.minsi(blocks, arith.subi(total, start))
    back = arith.subi(arith.subi(width, one), block)
    # Waves come in twos before: the first one of the rest is even.
    begun = arith.subi(start, arith.muli(done, two))
    turn = arith.addi(begun, arith.select(is_second, block, back))
    left = arith.subi(pairs, done)
    middles = arith.muli(lines.count, arith.remui(lines.length, two))
    is_long = _less(turn, left)
    after = arith.subi(turn, left)
    is_middle = _less(after, middles)
    last = arith.subi(arith.subi(left, one), arith.subi(after, middles))
    rest = arith.addi(done, arith.select(is_long, turn, last))

    in_middle = arith.andi(arith.xori(arith.ori(is_paired, is_long), _true()), is_middle)
    pair = arith.select(is_paired, first, arith.select(in_middle, number_as(number, 0), rest))
    line, rank = lines.place(pair, half)
    is_short = arith.select(is_paired, is_second, arith.xori(is_long, _true()))
    mirrored = arith.subi(arith.subi(lines.length, one), rank)
    rank = arith.select(is_short, mirrored, rank)
    line = arith.select(in_middle, after, line)
    return lines.program(line, arith.select(in_middle, half, rank))


class _Lines:
    """Rows of programs along the axis of the longest; by rank, the longest of each first."""

    def __init__(self, grid: Sequence[ir.Value], rows: int, longest: Longest) -> None:
        self._longest = longest
        self._rows = rows
        self._others = [extent for axis, extent in enumerate(grid) if axis != longest.axis]
        self.length = grid[longest.axis]
        self.count = count_of(self._others) if self._others else number_as(self.length, 1)

    def place(self, number: ir.Value, ranks: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The row and the rank of a number: `rows` rows at a time, each with so many ranks."""
        most = number_as(number, self._rows)
        size = arith.maxsi(arith.muli(ranks, most), number_as(number, 1))
        group, within = arith.divui(number, size), arith.remui(number, size)
        first = arith.muli(group, most)
        height = arith.minsi(arith.subi(self.count, first), most)
        return arith.addi(first, arith.remui(within, height)), arith.divui(within, height)

    def program(self, line: ir.Value, rank: ir.Value) -> tuple[ir.Value, ...]:
        """The program in a row with this rank."""
        if self._longest.at_end:
            rank = arith.subi(arith.subi(self.length, number_as(rank, 1)), rank)
        ids = list(delinearised(line, self._others))
        ids.insert(self._longest.axis, rank)
        return tuple(ids)


_EQUAL = arith.CmpIPredicate.eq


def _less(one: ir.Value, other: ir.Value) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.slt, one, other)


def _true() -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(1), 1)
