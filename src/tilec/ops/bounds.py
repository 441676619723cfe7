"""What is known of the place of an access, as attributes of its operation, and back.

`inside` is what was proved, before any rewrite; `bounds` is what code generation goes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from mlir import ir


class Inside(IntEnum):
    """Where it holds that an access does not leave its view on one side."""

    UNKNOWN = 0
    HERE = 1  # under the conditions and in the loops in which the access stands
    ANYWHERE = 2


@dataclass(frozen=True)
class Proved:
    """What was proved of one axis of an access, for every launch: of each of its ends, and of its
    first element."""

    low: Inside
    high: Inside
    first: Inside


def give_proved(op: ir.OpView, proved: Sequence[Proved]) -> None:
    """Write down what was proved, one row of three numbers an axis."""
    rows = [[int(p.low), int(p.high), int(p.first)] for p in proved]
    op.attributes[PROVED] = ir.Attribute.parse(str(rows))


def proved_of(op: ir.OpView) -> tuple[Proved, ...] | None:
    """What was proved of an access; None if nobody tried."""
    if PROVED not in op.attributes:
        return None
    rows = map(ir.ArrayAttr, ir.ArrayAttr(op.attributes[PROVED]))
    return tuple(Proved(*(Inside(ir.IntegerAttr(side).value) for side in row)) for row in rows)


def give_residual(op: ir.OpView) -> None:
    """Write down that the proofs leave an access to a check in the kernel, for checked builds."""
    op.attributes[RESIDUAL] = ir.UnitAttr.get()


def is_residual(op: ir.OpView) -> bool:
    return RESIDUAL in op.attributes


def moved_out(op: ir.OpView) -> None:
    """Forget what only holds where an access stood: it now runs where it may not have run."""
    proved = proved_of(op)
    if proved is not None:
        give_proved(op, [Proved(*map(_anywhere, (p.low, p.high, p.first))) for p in proved])


def _anywhere(side: Inside) -> Inside:
    return side if side is Inside.ANYWHERE else Inside.UNKNOWN


PROVED = "inside"
RESIDUAL = "residual"  # a unit attribute


@dataclass(frozen=True)
class Bounds:
    """What is known of one axis of an access."""

    inside: bool  # every element is inside, whatever the arguments
    nonnegative: bool  # no element is below zero
    begins: bool  # the first element is inside
    divisor: int  # the first element's coordinate in the tensor is a multiple of this (0: it is 0)
    extent_divisor: int  # the view's extent is a multiple of this


def give_bounds(op: ir.OpView, bounds: Sequence[Bounds]) -> None:
    """Write down what is known, one row of five numbers an axis."""
    rows = [
        [int(b.inside), int(b.nonnegative), int(b.begins), b.divisor, b.extent_divisor]
        for b in bounds
    ]
    op.attributes["bounds"] = ir.Attribute.parse(str(rows))


def bounds_of(op: ir.OpView) -> tuple[Bounds, ...]:
    """What `find_access_facts` wrote on an access."""
    rows = ir.ArrayAttr(op.attributes["bounds"])
    numbers = [[ir.IntegerAttr(n).value for n in ir.ArrayAttr(row)] for row in rows]
    return tuple(
        Bounds(bool(inside), bool(nonnegative), bool(begins), divisor, extent)
        for inside, nonnegative, begins, divisor, extent in numbers
    )
