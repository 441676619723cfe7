"""Write on every access what is known of its place: which axes need no mask, and how it is aligned.

Before:   one function, helpers inlined
After:    each access has `bounds`, an array with four numbers an axis
(`tilec.ops.thread_access.Bounds`)

Algorithm:
1. Preconditions of the form `e % c == 0` give divisors of extents.
2. Divisors and signs of index values follow through the operations that make them
(`OpRules.divisor`). 3. An axis is inside when the access starts at the own index of a part (or at
its offset), in tiles of the
   part's block, and the view has the extent that the part's tensor has, and the block divides it.

Sound, since each step only says what holds for every value of the arguments that fulfils the
preconditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from mlir import ir

from tilec.ir.types import view_facts
from tilec.ir.walk import operations
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape

# An index whose product or sum could reach this bit may have wrapped.
_SIGN_BIT = 63


def find_access_facts(function: ir.OpView) -> None:
    """Sets `bounds` on each access of the function; needs a current context."""
    facts = _Facts(_assumed_divisors(function))
    for op in operations(function):
        access = rules()[op.operation.name].access(op)
        if access is not None:
            op.attributes["bounds"] = _bounds(access, facts)


# ---- what is known of one value -----------------------------------------------------------------


class _Facts:
    def __init__(self, assumed: dict[ir.Value, int]) -> None:
        self.assumed = assumed
        self._divisors: dict[ir.Value, int] = {}
        self._bits: dict[ir.Value, int | None] = {}

    def divisor(self, value: ir.Value) -> int:
        if value not in self._divisors:
            self._divisors[value] = 1  # while a loop's own variable is being looked at
            self._divisors[value] = self._find_divisor(value)
        return self._divisors[value]

    def _find_divisor(self, value: ir.Value) -> int:
        assumed = self.assumed.get(value, 1)
        if isinstance(value.owner, ir.Block):
            around = value.owner.owner.opview
            known = rules()[around.operation.name].argument_divisor(around, value, self)
        else:
            known = rules()[value.owner.name].divisor(value.owner.opview, self)
        return known * assumed // gcd(known, assumed) if known else 0

    def bits(self, value: ir.Value) -> int | None:
        if value not in self._bits:
            self._bits[value] = None
            if isinstance(value.owner, ir.Block):
                around = value.owner.owner.opview
                rule = rules()[around.operation.name]
                found = rule.argument_bits(around, value, self)
            else:
                found = rules()[value.owner.name].bits(value.owner.opview, self)
            self._bits[value] = found if found is not None and found < _SIGN_BIT else None
        return self._bits[value]


def _assumed_divisors(function: ir.OpView) -> dict[ir.Value, int]:
    found: dict[ir.Value, int] = {}
    for op in operations(function):
        for value, divisor in rules()[op.operation.name].assumed_divisors(op):
            known = found.get(value, 1)
            found[value] = known * divisor // gcd(known, divisor)
    return found


# ---- what that says of an access ----------------------------------------------------------------


def _bounds(access: AccessShape, facts: _Facts) -> ir.Attribute:
    numbers = []
    for axis, size in enumerate(access.shape):
        start = access.indices[axis]
        scale = size if access.unit == "tile" else 1
        extent = _extent_of(access.view, axis)
        divisor = gcd(facts.divisor(start) * scale, _start_divisor(access.view, axis, facts))
        extent_divisor = _extent_divisor(access.view, axis, extent, facts)
        inside = _inside(access, axis, extent, facts)
        numbers.append([int(inside), int(facts.bits(start) is not None), divisor, extent_divisor])
    return ir.Attribute.parse(str(numbers))


@dataclass(frozen=True)
class _Extent:
    """An extent: a number, or the value that gives it."""

    value: ir.Value | None
    number: int | None


def _extent_of(view: ir.Value, axis: int) -> _Extent | None:
    """The extent of a view of a whole tensor along an axis; None for a part, which is clipped."""
    if isinstance(view.owner, ir.Block):
        return None
    op = view.owner.opview
    number = ir.MemRefType(view.type).shape[axis]
    dynamic = number == ir.ShapedType.get_dynamic_size()
    value = rules()[view.owner.name].extent(op, axis)
    if value is None and dynamic:
        return None
    return _Extent(value if dynamic else None, None if dynamic else number)


def _extent_divisor(view: ir.Value, axis: int, extent: _Extent | None, facts: _Facts) -> int:
    if extent is None:
        return _part_extent_divisor(view, axis, facts)
    if extent.number is not None:
        return extent.number
    return facts.divisor(extent.value)


def _part_extent_divisor(view: ir.Value, axis: int, facts: _Facts) -> int:
    """min(block, extent - id * block) is a multiple of what divides both."""
    part = _part_behind(view)
    if part is None:
        return 1
    tensor = part.operands[0]
    return gcd(_block(view)[axis], _extent_divisor(tensor, axis, _extent_of(tensor, axis), facts))


def _start_divisor(view: ir.Value, axis: int, facts: _Facts) -> int:
    """What the view's own first element in its tensor is a multiple of; 0 for a whole tensor."""
    block = view_facts(view.type).block
    if block is None:
        return 0
    part = _part_behind(view)
    return block[axis] if part is not None else 1


def _part_behind(view: ir.Value) -> ir.OpView | None:
    """The operation that made this part of a kernel's parameter; None for a part of a part."""
    if isinstance(view.owner, ir.Block):
        return None
    return view.owner.opview if rules()[view.owner.name].cuts_grid else None


def _inside(access: AccessShape, axis: int, extent: _Extent | None, facts: _Facts) -> bool:
    size = access.shape[axis]
    start = access.indices[axis]
    if extent is None:
        part = _part_behind(access.view)
        whole = part is not None and _divides(size, part.operands[0], axis, facts)
        return whole and _block(access.view)[axis] == size and _is_zero(start, facts)
    if extent.number is not None and _is_zero(start, facts):
        return size <= extent.number
    origin = (
        None
        if isinstance(start.owner, ir.Block)
        else rules()[start.owner.name].origin(start.owner.opview)
    )
    if origin is None or origin.counts_tiles != (access.unit == "tile"):
        return False
    part = _part_behind(origin.part)
    if part is None or _block(origin.part)[origin.axis] != size:
        return False
    tensor = part.operands[0]
    return _extent_of(tensor, origin.axis) == extent and _divides(size, tensor, origin.axis, facts)


def _block(part: ir.Value) -> tuple[int, ...]:
    block = view_facts(part.type).block
    assert block is not None, "a part has a block"
    return block


def _divides(size: int, tensor: ir.Value, axis: int, facts: _Facts) -> bool:
    return _extent_divisor(tensor, axis, _extent_of(tensor, axis), facts) % size == 0


def _is_zero(value: ir.Value, facts: _Facts) -> bool:
    return facts.divisor(value) == 0
