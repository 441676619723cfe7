"""How views, parts and loans of them come from each other."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir


def is_view(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


def parents(value: ir.Value) -> Iterator[ir.Value]:
    """The views that a view is another way to.

    Of a call's result, that is whatever was lent to the call: the helper may hand on a piece of it.
    """
    if isinstance(value.owner, ir.Block):
        return
    op = value.owner
    if op.operation.name == "func.call":
        lent = (v for v in op.operands if is_view(v) and not isinstance(v.owner, ir.Block))
        yield from (v for v in lent if v.owner.operation.name == "tile.borrow")
        return
    yield from (operand for operand in op.operands if is_view(operand))


def ancestors(value: ir.Value) -> Iterator[ir.Value]:
    """A view, the views it comes from, and so on to the arguments of the function."""
    waiting = [value]
    seen: set[ir.Value] = set()
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        yield found
        waiting += parents(found)


def root(value: ir.Value) -> ir.Value:
    """Where a view comes from in its function: an argument, or what a call gave."""
    *_, last = ancestors(value)
    return last
