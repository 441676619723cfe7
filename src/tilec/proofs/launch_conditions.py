"""Conditions on arguments, over the names that users know them by.

They are read as integers of any size, and hold of every number of the arguments' types: launchers'
own division truncates, so a floored quotient of what may be below zero is written by one that
rounds up, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from tilec.integers.conditions import Comparison, Condition, Floor, Linear
from tilec.integers.polynomial import Unknown
from tilec.ops.rules import HostExpression

_Term = tuple[int, "Unknown | Floor"]


def expression_of(condition: Condition, names: Mapping[Unknown, str]) -> HostExpression:
    """The condition over the names of extents and scalars."""
    alternatives = [
        _joined("and", [_comparison(c, names) for c in comparisons], empty=True)
        for comparisons in condition
    ]
    return _joined("or", alternatives, empty=False)


def _joined(word: str, parts: Sequence[HostExpression], *, empty: bool) -> HostExpression:
    return reduce(lambda a, b: (word, a, b), parts) if parts else empty


def _comparison(comparison: Comparison, names: Mapping[Unknown, str]) -> HostExpression:
    """Positive terms on the left, negative ones on the right; `x % n == 0` where it says that."""
    value = comparison.value
    if comparison.is_equality:
        remainder = _remainder(value, names)
        if remainder is not None:
            return ("eq", *remainder)
    terms = [_rounded_up(term) for term in value.terms]
    left = [(c, t) for c, t in terms if c > 0]
    right = [(-c, t) for c, t in terms if c < 0]
    if not left:
        left, right = right, left
        relation = "eq" if comparison.is_equality else "le"
        sides = _sum(left, 0, names), _sum(right, value.constant, names)
    else:
        relation = "eq" if comparison.is_equality else "ge"
        sides = _sum(left, 0, names), _sum(right, -value.constant, names)
    return (relation, *sides)


def _remainder(value: Linear, names: Mapping[Unknown, str]) -> tuple[HostExpression, int] | None:
    """`a % n` and what it is, of an equality that says so: `a - n * floor(a / n) - k = 0`."""
    floors = [(c, t) for c, t in value.terms if isinstance(t, Floor)]
    if len(floors) != 1:
        return None
    [(coefficient, floor)] = floors
    if abs(coefficient) != floor.divisor or floor.dividend.low < 0:
        return None
    sign = -1 if coefficient > 0 else 1
    rest = tuple((sign * c, t) for c, t in value.terms if t is not floor)
    if rest != floor.dividend.terms:
        return None
    remainder = ("rem", _linear(floor.dividend, names), floor.divisor)
    return remainder, floor.dividend.constant - sign * value.constant


def _linear(value: Linear, names: Mapping[Unknown, str]) -> HostExpression:
    return _sum([_rounded_up(term) for term in value.terms], value.constant, names)


def _sum(terms: Sequence[_Term], constant: int, names: Mapping[Unknown, str]) -> HostExpression:
    found: HostExpression | None = None
    for coefficient, term in terms:
        size = abs(coefficient)
        text = names[term] if isinstance(term, Unknown) else _floor(term, names)
        one: HostExpression = text if size == 1 else ("mul", size, text)
        if found is None:
            found = one if coefficient > 0 else ("neg", one)
        else:
            found = ("add" if coefficient > 0 else "sub", found, one)
    if found is None:
        return constant
    if constant:
        found = ("add" if constant > 0 else "sub", found, abs(constant))
    return found


def _floor(floor: Floor, names: Mapping[Unknown, str]) -> HostExpression:
    if isinstance(floor, _Ceiling):
        return ("ceildiv", _linear(floor.dividend, names), floor.divisor)
    return ("div", _linear(floor.dividend, names), floor.divisor)


class _Ceiling(Floor):
    """`ceil(dividend / divisor)`, which launchers have for numbers below zero, too."""


def _rounded_up(term: _Term) -> _Term:
    """`floor(a / n)` is `-ceil(-a / n)`: a launcher's own division truncates."""
    coefficient, value = term
    if isinstance(value, Unknown) or value.dividend.low >= 0:
        return term
    turned = Linear(tuple((-c, t) for c, t in value.dividend.terms), -value.dividend.constant)
    return -coefficient, _Ceiling(turned, value.divisor)
