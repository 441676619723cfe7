"""Powers of two, and numbers that can be few constants: what operations on bits ask for."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.integers.formula import All, Any, Formula, IsZero, NotNegative, at_least, equal, within
from tilec.integers.number import Number, always
from tilec.integers.polynomial import Interval, Polynomial, Unknown, variable
from tilec.integers.ranges import ranges_of
from tilec.proofs.arithmetic import Arithmetic, interval_of

# A number of a larger range is not looked through for the values that it can have, and one that
# can have more of them is not taken apart by them.
_LOOKED_THROUGH = 64
_FEW = 4
_LARGEST_EXPONENT = 62


@dataclass
class Powers(Arithmetic, ABC):
    """Arithmetic that knows which numbers are powers of two."""

    # Of a number, what is 0 if it is a power of two or 0: `n & (n - 1)`.
    _tests: dict[Polynomial, Unknown] = field(default_factory=dict)
    _powers: dict[Polynomial, Polynomial] = field(default_factory=dict)

    def few_values(self, value: Number) -> Number:
        """The number by the constants that it can be, if facts leave few; else as it is."""
        only = value.only
        if only is None or only.is_constant:
            return value
        low, high = self._range_here(only)
        if high - low >= _LOOKED_THROUGH:
            return value
        left = [c for c in range(low, high + 1) if self.decide(equal(only, c)) is not False]
        if not 1 <= len(left) <= _FEW:
            return value
        found = always(left[-1])
        for constant in reversed(left[:-1]):
            found = self.choose(equal(only, constant), always(constant), found)
        return found

    def _range_here(self, value: Polynomial) -> Interval:
        facts = self.knowledge.context([], self._path, wide=True, about=value.unknowns)
        low, high = _range(value, facts)
        for choice in _choices(facts):
            found = [_range(value, [part]) for part in choice.parts]
            low = max(low, min(least for least, _ in found))
            high = min(high, max(most for _, most in found))
        return low, high

    def is_power_of_two(self, value: Number) -> bool:
        """Whether a number is certainly a power of two."""
        only = value.only
        if only is None:
            return False
        if only in self._powers.values():
            return True
        test = self._tests.get(only)
        return (
            test is not None
            and self.decide(equal(variable(test), 0)) is True
            and self.decide(at_least(only, 1)) is True
        )

    def tested_for_power(self, value: Number, op: ir.OpView) -> Number:
        """`n & (n - 1)`: 0 only for powers of two, and 0."""
        assert value.only is not None
        if value.only not in self._tests:
            self._tests[value.only] = self._opaque(interval_of(op.results[0].type), op)
        return always(variable(self._tests[value.only]))

    def two_to(self, exponent: Number, op: ir.OpView) -> Number | None:
        """A power of two by its exponent; None if that may be too large, or below 0."""
        only = exponent.only
        if only is None:
            return None
        if only.is_constant:
            return always(1 << only.constant)
        if self.decide(within(only, 0, _LARGEST_EXPONENT)) is not True:
            return None
        if only not in self._powers:
            uniform = all(u.uniform for u in only.unknowns)
            unknown = self.knowledge.unknown(
                "is a power of two",
                (1, 2**_LARGEST_EXPONENT),
                uniform=uniform,
                opaque=True,
                about=op,
            )
            # 2^s > s, and the larger the exponent, the larger the power: that much is said of it.
            self._powers[only] = self.knowledge.define(
                unknown, at_least(variable(unknown), only + 1)
            )
        return always(self._powers[only])


def _range(value: Polynomial, formulas: Sequence[Formula]) -> Interval:
    """What comparisons, all of which hold, leave of a number."""
    zero, not_negative = [], []
    waiting = list(formulas)
    while waiting:
        match waiting.pop():
            case NotNegative(polynomial):
                not_negative.append(polynomial)
            case IsZero(polynomial):
                zero.append(polynomial)
            case All(parts):
                waiting += parts
    monomials = {m for p in (*zero, *not_negative, value) for m in p.monomials}
    found = ranges_of(zero, not_negative, monomials)
    return value.interval if found.is_empty else found.interval(value)


def _choices(formulas: Sequence[Formula]) -> Iterator[Any]:
    """The alternatives among formulas that all hold."""
    for formula in formulas:
        if isinstance(formula, All):
            yield from _choices(formula.parts)
        elif isinstance(formula, Any) and formula.parts:
            yield formula
