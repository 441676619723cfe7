"""Integers of a kernel as linear functions of scalars, tiles with the range of their elements.

An operation gives its result from its operands (`OpRules.linear`) as if nothing wrapped. Sums,
differences and products of integers modulo 2ⁿ are those of the exact numbers, so that a value is
the linear function wherever that fits its type: `fits` says where.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlir import ir

from tilec.ir.types import is_tile
from tilec.ops.registry import rules
from tilec.ops.rules import Facts

# Scalars whose magnitude is not known to have fewer bits are no terms: what is computed from
# linear functions must not overflow 64 bits.
_TERM_BITS = 48


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · scalar, plus a number from `low` to `high` in each element."""

    terms: Mapping[ir.Value, int] = field(default_factory=dict)
    low: int = 0
    high: int = 0

    @property
    def constant(self) -> int | None:
        """The one number that it always is, if there is one."""
        return self.low if not self.terms and self.low == self.high else None

    def plus(self, other: Linear) -> Linear:
        """The sum."""
        terms = dict(self.terms)
        for value, coefficient in other.terms.items():
            terms[value] = terms.get(value, 0) + coefficient
        kept = {value: number for value, number in terms.items() if number}
        return Linear(kept, self.low + other.low, self.high + other.high)

    def times(self, factor: int) -> Linear:
        """The product with a constant."""
        if factor == 0:
            return Linear()
        ends = sorted((self.low * factor, self.high * factor))
        return Linear({value: n * factor for value, n in self.terms.items()}, *ends)

    def minus(self, other: Linear) -> Linear:
        """The difference; where both have a range, the elements are taken to be unrelated."""
        return self.plus(other.times(-1))


def product(one: Linear, other: Linear) -> Linear | None:
    """The product, if one of them is a constant."""
    if one.constant is not None:
        return other.times(one.constant)
    return None if other.constant is None else one.times(other.constant)


class LinearForms:
    """The linear forms of one function's values; scalars that are none become terms."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[ir.Value, Linear | None] = {}

    def of(self, value: ir.Value) -> Linear | None:
        """The form of a value; None where a tile has none, or a scalar may be too large."""
        if value not in self._known:
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: ir.Value) -> Linear | None:
        if not isinstance(value.owner, ir.Block):
            op = value.owner.opview
            operands = [self.of(one) if _is_integer(one) else None for one in op.operands]
            found = rules()[op.operation.name].linear(op, operands)
            if found is not None:
                return found
        if is_tile(value) or not _is_integer(value) or self.range_of(value) is None:
            return None
        return Linear({value: 1})

    def range_of(self, scalar: ir.Value) -> tuple[int, int] | None:
        """What a scalar lies between, as far as its type and the facts say; None if it may have
        more than 48 bits."""
        if str(scalar.type) != "index":
            is_narrow = ir.IntegerType(scalar.type).width <= _TERM_BITS
            return signed_range(scalar.type) if is_narrow else None
        bits = self._facts.bits(scalar)
        if bits is not None:
            return (0, (1 << bits) - 1) if bits <= _TERM_BITS else None
        if isinstance(scalar.owner, ir.Block) or scalar.owner.name != "arith.index_cast":
            return None
        return self.range_of(scalar.owner.operands[0])

    def bounds(self, form: Linear) -> tuple[int, int]:
        """The least and the greatest number that a form may be."""
        low, high = form.low, form.high
        for value, coefficient in form.terms.items():
            known = self.range_of(value)
            assert known is not None, "terms are of known size"
            ends = sorted(coefficient * end for end in known)
            low, high = low + ends[0], high + ends[1]
        return low, high


def signed_range(kind: ir.Type) -> tuple[int, int]:
    """The numbers that an integer type has, with a sign."""
    half = 1 << ((64 if str(kind) == "index" else ir.IntegerType(kind).width) - 1)
    return -half, half - 1


def _is_integer(value: ir.Value) -> bool:
    kind = ir.RankedTensorType(value.type).element_type if is_tile(value) else value.type
    return isinstance(kind, (ir.IndexType, ir.IntegerType))
