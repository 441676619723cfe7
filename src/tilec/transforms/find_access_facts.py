"""Write on every access what is known of its place: which axes need no mask, and how it is aligned.

Before:   one function, helpers inlined
After:    each access has `bounds` (`tilec.ops.bounds`)

Algorithm:
1. Preconditions of the form `e % c == 0` give divisors of extents.
2. Divisors and signs of index values follow through the operations that make them
   (`OpRules.divisor`, `OpRules.bits`).
3. An axis is inside when the access starts at the own index of a part (or at its offset), in tiles
   of the part's block, and the view has the extent that the part's tensor has, and the block
   divides it; or when it starts at 0 of a static extent that is large enough.

Sound, since each step only says what holds for every value of the arguments that fulfils the
preconditions: launchers check those, and refuse extents and program counts above 2^40.
"""

from __future__ import annotations

from math import gcd

from mlir import ir

from tilec.ir.types import view_facts
from tilec.ir.walk import operations
from tilec.ops.bounds import Bounds, give_bounds
from tilec.ops.facts import KnownFacts
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape, Facts, Origin


def find_access_facts(function: ir.OpView) -> None:
    """Sets `bounds` on each access of the function; needs a current context."""
    facts = KnownFacts.of(function)
    for op in operations(function):
        access = rules()[op.operation.name].access(op)
        if access is not None:
            give_bounds(op, [_bounds(access, axis, facts) for axis in range(len(access.shape))])


def _bounds(access: AccessShape, axis: int, facts: Facts) -> Bounds:
    start = access.indices[axis]
    scale = access.shape[axis] if access.unit == "tile" else 1
    return Bounds(
        inside=_inside(access, axis, facts),
        nonnegative=facts.bits(start) is not None,
        divisor=gcd(facts.divisor(start) * scale, facts.start_divisor(access.view, axis)),
        extent_divisor=facts.extent_divisor(access.view, axis),
    )


def _inside(access: AccessShape, axis: int, facts: Facts) -> bool:
    size = access.shape[axis]
    start = access.indices[axis]
    extent = facts.extent(access.view, axis)
    if facts.divisor(start) == 0:  # it is zero
        if isinstance(extent, int):
            return size <= extent
        return _is_whole(access.view, axis, size, facts)
    origin = _origin(start)
    if extent is None or origin is None or origin.counts_tiles != (access.unit == "tile"):
        return False
    if not _is_whole(origin.part, origin.axis, size, facts):
        return False
    [tensor] = _maker(origin.part).operands
    return _is_same(facts.extent(tensor, origin.axis), extent)


def _is_same(left: ir.Value | int | None, right: ir.Value | int | None) -> bool:
    # MLIR's values do not compare with numbers.
    if isinstance(left, int) or isinstance(right, int):
        return isinstance(left, int) and isinstance(right, int) and left == right
    return left is not None and right is not None and left == right


def _origin(start: ir.Value) -> Origin | None:
    if isinstance(start.owner, ir.Block):
        return None
    return rules()[start.owner.name].origin(start.owner.opview)


def _is_whole(view: ir.Value, axis: int, size: int, facts: Facts) -> bool:
    """Whether it is a part of a parameter, of this size along the axis and never clipped."""
    if isinstance(view.owner, ir.Block) or not rules()[view.owner.name].cuts_grid:
        return False
    block = view_facts(view.type).block
    assert block is not None, "a part has a block"
    return block[axis] == size and facts.extent_divisor(view.owner.operands[0], axis) % size == 0


def _maker(view: ir.Value) -> ir.OpView:
    return view.owner.opview
