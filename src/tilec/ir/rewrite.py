"""Copies of operations, and loops with other initial values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from tilec.ir.dialects import scf
from tilec.ir.walk import operations


def cloned(
    op: ir.OpView, renamed: Mapping[ir.Value, ir.Value], place: ir.InsertionPoint
) -> ir.OpView:
    """A copy of an operation that uses other values, also in its regions."""
    copy = op.operation.clone(ip=place).opview
    for one in (copy, *operations(copy)):
        for number, value in enumerate(one.operands):
            if value in renamed:
                one.operands[number] = renamed[value]
    return copy


def loop_with(loop: ir.OpView, starts: Sequence[ir.Value]) -> ir.OpView:
    """A `scf.for` with these initial values, before another one whose body it takes over.

    The first block arguments replace the old ones; the terminator and the uses of the results are
    the caller's, who erases the old loop.
    """
    [body] = loop.regions[0].blocks
    lower, upper, step = list(loop.operands)[:3]
    with loop.location, ir.InsertionPoint(loop):
        made = scf.ForOp(lower, upper, step, list(starts))
    for old, new in zip(body.arguments, made.body.arguments, strict=False):
        old.replace_all_uses_with(new)
    for op in list(body.operations):
        made.body.append(op)
    return made
