"""What is known of the place of an access: the attribute `bounds` of its operation, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir


@dataclass(frozen=True)
class Bounds:
    """What is known of one axis of an access."""

    inside: bool  # every element is inside, whatever the arguments
    nonnegative: bool  # the index is not below zero
    divisor: int  # the first element's coordinate in the tensor is a multiple of this (0: it is 0)
    extent_divisor: int  # the view's extent is a multiple of this


def give_bounds(op: ir.OpView, bounds: Sequence[Bounds]) -> None:
    """Write down what is known, one row of four numbers an axis."""
    rows = [[int(b.inside), int(b.nonnegative), b.divisor, b.extent_divisor] for b in bounds]
    op.attributes["bounds"] = ir.Attribute.parse(str(rows))


def bounds_of(op: ir.OpView) -> tuple[Bounds, ...]:
    """What `find_access_facts` wrote on an access."""
    rows = ir.ArrayAttr(op.attributes["bounds"])
    numbers = [[ir.IntegerAttr(n).value for n in ir.ArrayAttr(row)] for row in rows]
    return tuple(
        Bounds(bool(inside), bool(nonnegative), divisor, extent)
        for inside, nonnegative, divisor, extent in numbers
    )
