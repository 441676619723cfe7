"""Whether two smaller parts of one part certainly have no element in common."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.artifact.expression import ExpressionError, evaluate
from tilec.ir.views import BORROW, MOVE, SUB, Views
from tilec.ops.host_expression import NoHostExpressionError, host_expression

# The numbers from the first up to the second.
_Range = tuple[int, int]


class Apart:
    """The question, with what was found of each smaller part."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._known: dict[ir.Value, tuple[_Range | None, ...]] = {}

    def __call__(self, left: ir.Value, right: ir.Value) -> bool:
        """Whether two views come from smaller parts of one part that lie apart."""
        return any(
            _owner_of(a) == _owner_of(b) and self._are_apart(a, b)
            for a in self._subs(left)
            for b in self._subs(right)
        )

    def is_known(self, left: ir.Value, right: ir.Value) -> bool:
        """Whether constants tell where two smaller parts of one part lie."""
        both = (*self._ranges(left), *self._ranges(right))
        return _owner_of(left) == _owner_of(right) and None not in both

    def _subs(self, view: ir.Value) -> Iterator[ir.Value]:
        """The smaller parts that a view is, or lies in whatever a call gave back."""
        while True:
            if not isinstance(view.owner, ir.Block) and view.owner.name == SUB:
                yield view
            parents = list(self._views.parents(view))
            if len(parents) != 1:
                return
            [view] = parents

    def _are_apart(self, left: ir.Value, right: ir.Value) -> bool:
        ranges = zip(self._ranges(left), self._ranges(right), strict=True)
        return any(a and b and (a[1] <= b[0] or b[1] <= a[0]) for a, b in ranges)

    def _ranges(self, sub: ir.Value) -> tuple[_Range | None, ...]:
        """The elements of a smaller part along each axis, counted in its part; None: unknown."""
        if sub not in self._known:
            op = sub.owner.opview
            extents = [ir.IntegerAttr(e).value for e in ir.ArrayAttr(op.attributes["block"])]
            _, *indices = op.operands
            pairs = zip(indices, extents, strict=True)
            self._known[sub] = tuple(_range(index, extent) for index, extent in pairs)
        return self._known[sub]


def _range(index: ir.Value, extent: int) -> _Range | None:
    try:
        number = evaluate(host_expression(index), {})
    except (NoHostExpressionError, ExpressionError):
        return None
    assert isinstance(number, int), "an index is an integer"
    return number * extent, (number + 1) * extent


def _owner_of(sub: ir.Value) -> ir.Value:
    """The part that a smaller one is cut from, by the first of its names."""
    view = sub.owner.operands[0]
    while not isinstance(view.owner, ir.Block) and view.owner.name in (MOVE, BORROW):
        view = view.owner.operands[0]
    return view
