"""Which programs take longest: the axis of the grid along which trip counts grow or shrink."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.artifact.expression import Expression, ExpressionError, evaluate
from tilec.ir.walk import operations
from tilec.ops.build import integer
from tilec.ops.lowering import ROWS_TOGETHER, give_longest
from tilec.ops.order import Longest
from tilec.schedule.reason import Reason
from tilec.schedule.turns import index_name, turns_by_program

_AXES = 3  # of a grid, at the most
# Trip counts are compared at the first so many indices: where they change at all they do there.
_COMPARED = 8
_LEAST_DIFFERENCE = 2  # of their iterations: less is the rest of a division
# Rows of programs that are walked together where nothing else says how many: they read much of the
# same, and long ones of several rows come before short ones.
_ROWS_TOGETHER = 8


def longest_programs(function: ir.OpView) -> Longest | None:
    """The programs whose loops have most iterations; None if all are as long, or it is unknown.

    Of several axes, the one along which trip counts differ most.
    """
    known = map(turns_by_program, _outer_loops(function))
    counts = [count for count in known if count is not None]
    found: dict[int, int] = {}
    for axis in range(_AXES):
        steps = list(_steps(counts, axis))
        if all(step >= 0 for step in steps) or all(step <= 0 for step in steps):
            found[axis] = sum(steps)
    axis = max(found, key=lambda one: abs(found[one]), default=0)
    if abs(found.get(axis, 0)) < _LEAST_DIFFERENCE:
        return None
    return Longest(axis, at_end=found[axis] > 0)


def _outer_loops(function: ir.OpView) -> Iterator[ir.OpView]:
    """The loops that are in no other."""
    inner: set[ir.OpView] = set()
    for op in operations(function):
        if op.operation.name == "scf.for" and op not in inner:
            inner.update(operations(op))
            yield op


def _steps(counts: list[Expression], axis: int) -> Iterator[int]:
    """By how many iterations each program has more than its neighbour before it."""
    before: int | None = None
    for index in range(_COMPARED):
        values = {index_name(other): 0 for other in range(_AXES)} | {index_name(axis): index}
        try:
            turns = sum(max(0, int(evaluate(count, values))) for count in counts)
        except ExpressionError:
            return
        if before is not None:
            yield turns - before
        before = turns


def why_longest(longest: Longest) -> Reason:
    """What is done with programs that take unequally long, and why."""
    end = "last" if longest.at_end else "first"
    why = f"loops have most iterations at the {end} index of axis {longest.axis} of the grid"
    return Reason("long programs first", why)


def walk_longest_first(function: ir.OpView, longest: Longest) -> None:
    """Writes down the order of the programs of a function without roles."""
    give_longest(function, longest)
    if ROWS_TOGETHER not in function.attributes:
        function.attributes[ROWS_TOGETHER] = integer(_ROWS_TOGETHER)
