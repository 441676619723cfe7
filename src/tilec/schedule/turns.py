"""How often a loop turns, as launchers can compute it: for costs, so a fair guess is enough.

What callers pass is exact. A program's own index counts as the middle of the grid, the counter of
a loop around as the middle of its range, an integer argument as `SCALAR`, and where nothing is
known, as with data from memory, a loop has `UNKNOWN` turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from tilec.artifact.expression import Expression
from tilec.ops.facts import KnownFacts
from tilec.ops.registry import rules

SCALAR = 1024
# The same where programs are compared: large, so that what is shared among them is not used up by
# the first.
_LARGE = 1 << 20
UNKNOWN = 8


class _UnknownError(Exception):
    """Nobody can say what a value is about."""


def turns_of(loop: ir.OpView, grid: Sequence[Expression], dims: Sequence[str]) -> Expression:
    """The turns of a loop of a program whose grid has these extents, over `dims` alone."""
    if loop.operation.name != "scf.for":  # nobody counts the turns of other loops
        return UNKNOWN
    extents = [_of_dims(extent, dims, SCALAR) for extent in grid]

    def middle(axis: int) -> Expression:
        return _quotient(extents[axis] if axis < len(extents) else 1, 2)

    found = _turns(loop, _Values(middle, dims))
    return UNKNOWN if found is None else found


def turns_by_program(loop: ir.OpView) -> Expression | None:
    """The turns of a `scf.for` by the program's index along each axis (`index_name`), with a large
    number for whatever else callers pass; None if it is unknown."""
    return _turns(loop, _Values(index_name, (), is_by_program=True))


def index_name(axis: int) -> str:
    """What the program's index along an axis is called in `turns_by_program`."""
    return f"program {axis}"


def _turns(loop: ir.OpView, values: _Values) -> Expression | None:
    try:
        lower, upper, step = (values.of(value) for value in list(loop.operands)[:3])
    except _UnknownError:
        return None
    return _quotient(_difference(upper, lower), step)


class _Values:
    """Values as callers can compute them, where the program's `index` along an axis is as given,
    and what loops count is in the middle of its range."""

    def __init__(
        self,
        index: Callable[[int], Expression],
        dims: Sequence[str],
        *,
        is_by_program: bool = False,
    ) -> None:
        self._index = index
        self._dims = dims
        self._is_by_program = is_by_program
        self._scalar = _LARGE if is_by_program else SCALAR
        self._facts = KnownFacts()

    def of(self, value: ir.Value) -> Expression:
        if isinstance(value.owner, ir.Block):
            return self._of_argument(value)
        op = value.owner.opview
        rule = rules()[op.operation.name]
        found = rule.host(op, value.result_number, self.of)
        if found is not None:
            return found
        makers = [operand.owner for operand in op.operands]
        of_program = rule.of_program or any(
            not isinstance(maker, ir.Block) and rules()[maker.name].of_program for maker in makers
        )
        if not of_program or "axis" not in op.attributes:
            raise _UnknownError
        axis = int(ir.IntegerAttr(op.attributes["axis"]).value)
        is_index = bool(rule.program_axes(op, frozenset()))
        if self._is_by_program and not is_index:  # how many programs there are
            return self._scalar
        return _product(self._index(axis), rule.divisor(op, self._facts))

    def _of_argument(self, value: ir.Value) -> Expression:
        op = value.owner.owner.opview
        found = rules()[op.operation.name].argument_host(op, value)
        if found is not None:
            return _of_dims(found, self._dims, self._scalar)
        if op.operation.name != "scf.for" or value != value.owner.arguments[0]:
            raise _UnknownError
        lower, upper = self.of(op.operands[0]), self.of(op.operands[1])
        return _quotient(("add", lower, upper), 2)


def _of_dims(expression: Expression, dims: Sequence[str], scalar: int) -> Expression:
    """The expression with a number for each argument."""
    if isinstance(expression, str):
        return expression if expression in dims else scalar
    if not isinstance(expression, tuple):
        return expression
    name, *operands = expression
    return (name, *(_of_dims(operand, dims, scalar) for operand in operands))


def _difference(a: Expression, b: Expression) -> Expression:
    if isinstance(a, int) and isinstance(b, int):
        return max(0, a - b)
    return a if b == 0 else ("sub", a, b)


def _product(a: Expression, b: int) -> Expression:
    if isinstance(a, int):
        return a * b
    return a if b == 1 else ("mul", a, b)


def _quotient(a: Expression, b: Expression) -> Expression:
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b) if b else 0
    return a if b == 1 else ("ceildiv", a, b)
