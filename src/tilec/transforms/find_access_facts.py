"""Write on every access what is known of its place: which axes need no mask, and how it is aligned.

Before:   one function, helpers inlined; what was proved of accesses is written on them
After:    each access has `bounds` (`tilec.ops.bounds`); operations that give neighbours of an axis
          the same result say how many (`GRANULARITY`)

Algorithm:
1. An axis is inside where that was proved of both of its ends, or where the program vouches for it
   (`unchecked`).
2. Preconditions of the form `e % c == 0` give divisors of extents.
3. Divisors and signs of index values follow through the operations that make them
   (`OpRules.divisor`, `OpRules.bits`).

Sound, since each step only says what holds for every value of the arguments that fulfils the
preconditions: launchers check those, and refuse extents and program counts above 2^40.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.bounds import Bounds, Inside, Proved, give_bounds, proved_of
from tilec.ops.build import integer
from tilec.ops.facts import KnownFacts
from tilec.ops.registry import rules
from tilec.ops.rules import GRANULARITY, AccessShape, Facts, IndexedShape

_NOTHING = Proved(*[Inside.UNKNOWN] * 3)
_INSIDE = Proved(*[Inside.ANYWHERE] * 3)


def find_access_facts(function: ir.OpView, multiples: Mapping[ir.Value, int] | None = None) -> None:
    """Sets `bounds` on each access of the function, and what else follows; needs a current context.

    `multiples` are divisors that are taken of some values."""
    facts = KnownFacts.of(function, multiples)
    for op in operations(function):
        rule = rules()[op.operation.name]
        if (neighbours := rule.granularity(op, facts)) > 1:
            op.attributes[GRANULARITY] = integer(neighbours)
        access, indexed = rule.access(op), rule.indexed(op)
        if access is not None:
            proved = _proved(op, access)
            axes = range(len(access.shape))
            give_bounds(op, [_bounds(access, axis, proved[axis], facts) for axis in axes])
        elif indexed is not None:
            axes = range(len(indexed.starts))
            give_bounds(op, [_bounds_where(op, indexed, axis, facts) for axis in axes])


def _proved(op: ir.OpView, access: AccessShape) -> tuple[Proved, ...]:
    if "unchecked" in op.attributes:
        return (_INSIDE,) * len(access.shape)
    return proved_of(op) or (_NOTHING,) * len(access.shape)


def _bounds(access: AccessShape, axis: int, proved: Proved, facts: Facts) -> Bounds:
    start = access.indices[axis]
    scale = access.shape[axis] if access.unit == "tile" else 1
    return Bounds(
        inside=bool(proved.low and proved.high),
        nonnegative=bool(proved.low) or facts.bits(start) is not None,
        begins=bool(proved.low and (proved.high or proved.first)),
        divisor=gcd(facts.divisor(start) * scale, facts.start_divisor(access.view, axis)),
        extent_divisor=facts.extent_divisor(access.view, axis),
    )


def _bounds_where(op: ir.OpView, access: IndexedShape, axis: int, facts: Facts) -> Bounds:
    """Of an axis along which indices choose, only that the program vouches for them."""
    start, view = access.starts[axis], access.view
    inside, extent = "unchecked" in op.attributes, facts.extent_divisor(access.view, axis)
    if start is None:
        return Bounds(inside, nonnegative=inside, begins=inside, divisor=1, extent_divisor=extent)
    return Bounds(
        inside,
        nonnegative=inside or facts.bits(start) is not None,
        begins=inside,
        divisor=gcd(facts.divisor(start), facts.start_divisor(view, axis)),
        extent_divisor=extent,
    )
