"""What is known of integers and views of a kernel, from the operations that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm

from mlir import ir

from tilec.artifact.abi import COUNT_LIMIT
from tilec.ir.walk import operations
from tilec.ops.registry import rules

# Extents and program counts are below 2 to this: launchers refuse larger ones.
COUNT_BITS = COUNT_LIMIT.bit_length()
# An index whose product or sum could have more bits than this may have wrapped.
NUMBER_BITS = 63


def do_count(tile: ir.Value) -> bool:
    """Whether a tile is 0, 1, 2, … along an axis, and the same elsewhere (`OpRules.counts`)."""
    if isinstance(tile.owner, ir.Block):
        return False
    return rules()[tile.owner.name].counts(tile.owner.opview)


class KnownFacts:
    """What follows from the operations of one function, and from its preconditions."""

    def __init__(self, assumed: dict[ir.Value, int] | None = None) -> None:
        self.assumed = assumed or {}
        self._divisors: dict[ir.Value, int] = {}
        self._bits: dict[ir.Value, int | None] = {}

    @staticmethod
    def of(function: ir.OpView, multiples: Mapping[ir.Value, int] | None = None) -> KnownFacts:
        """The facts of a function, its preconditions among them; `multiples` are divisors that are
        taken of some values."""
        found = dict(multiples or {})
        for op in operations(function):
            stated = rules()[op.operation.name].precondition(op)
            if stated is not None:
                for value, divisor in _divisors_where(stated.condition, 1):
                    found[value] = lcm(found.get(value, 1), divisor)
        return KnownFacts(found)

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
        return lcm(known, assumed) if known else 0

    def extent(self, view: ir.Value, axis: int) -> ir.Value | int | None:
        if isinstance(view.owner, ir.Block):
            return None
        return rules()[view.owner.name].extent(view.owner.opview, axis, self)

    def extent_divisor(self, view: ir.Value, axis: int) -> int:
        if isinstance(view.owner, ir.Block):
            return 1
        return rules()[view.owner.name].extent_divisor(view.owner.opview, axis, self)

    def start_divisor(self, view: ir.Value, axis: int) -> int:
        if isinstance(view.owner, ir.Block):
            return 1
        return rules()[view.owner.name].start_divisor(view.owner.opview, axis, self)

    def bits(self, value: ir.Value) -> int | None:
        if value not in self._bits:
            self._bits[value] = None
            if isinstance(value.owner, ir.Block):
                around = value.owner.owner.opview
                rule = rules()[around.operation.name]
                found = rule.argument_bits(around, value, self)
            else:
                found = rules()[value.owner.name].bits(value.owner.opview, self)
            self._bits[value] = found if found is not None and found <= NUMBER_BITS else None
        return self._bits[value]


def _divisors_where(value: ir.Value, number: int) -> Sequence[tuple[ir.Value, int]]:
    if isinstance(value.owner, ir.Block):
        return ()
    op = value.owner.opview
    return rules()[op.operation.name].divisors_where(op, number, _divisors_where)
