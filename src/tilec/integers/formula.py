"""Conditions on integers: comparisons of polynomials, `and`, `or`; negation is pushed inwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from tilec.integers.polynomial import Polynomial, Unknown, number


@dataclass(frozen=True)
class NotNegative:
    """`polynomial >= 0`."""

    polynomial: Polynomial

    @property
    def unknowns(self) -> frozenset[Unknown]:
        return self.polynomial.unknowns


@dataclass(frozen=True)
class IsZero:
    """`polynomial == 0`."""

    polynomial: Polynomial

    @property
    def unknowns(self) -> frozenset[Unknown]:
        return self.polynomial.unknowns


@dataclass(frozen=True)
class _Parts:
    """Formulas that are joined. What is asked of them often is computed once.

    Conditions are made of conditions, so that one may be a part of many: what walks over formulas
    looks at each once.
    """

    parts: tuple[Formula, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def size(self) -> int:
        return sum(comparisons_in(part) for part in self.parts)

    @cached_property
    def _hash(self) -> int:
        return hash((isinstance(self, All), self.parts))

    @cached_property
    def unknowns(self) -> frozenset[Unknown]:
        return frozenset[Unknown]().union(*(part.unknowns for part in self.parts))

    @cached_property
    def polynomials(self) -> tuple[Polynomial, ...]:
        return tuple(dict.fromkeys(p for part in self.parts for p in polynomials(part)))

    @cached_property
    def negation(self) -> Formula:
        opposites = map(negated, self.parts)
        return either(*opposites) if isinstance(self, All) else both(*opposites)


class All(_Parts):
    """Every part holds; without parts it is true."""


class Any(_Parts):
    """Some part holds; without parts it is false."""


Formula: TypeAlias = "NotNegative | IsZero | All | Any"

FORMULAS = (NotNegative, IsZero, All, Any)

TRUE = All()
FALSE = Any()


def at_least(left: Polynomial, right: Polynomial | int) -> Formula:
    """`left >= right`."""
    difference = left - right
    low, high = difference.interval
    if low >= 0:
        return TRUE
    return FALSE if high < 0 else NotNegative(difference)


def less(left: Polynomial, right: Polynomial | int) -> Formula:
    """`left < right`."""
    return at_least(_polynomial(right), left + 1)


def equal(left: Polynomial, right: Polynomial | int) -> Formula:
    difference = left - right
    low, high = difference.interval
    if low == high == 0:
        return TRUE
    if low > 0 or high < 0:
        return FALSE
    # One sign, so that equal conditions are equal formulas.
    leading = difference.terms[-1][1]
    return IsZero(difference if leading > 0 else -difference)


def both(*parts: Formula) -> Formula:
    """Every part holds."""
    kept: dict[Formula, None] = {}
    for part in parts:
        if isinstance(part, All):
            kept.update(dict.fromkeys(part.parts))
        elif part == FALSE:
            return FALSE
        else:
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else All(tuple(kept))


def either(*parts: Formula) -> Formula:
    """Some part holds."""
    kept: dict[Formula, None] = {}
    for part in parts:
        if isinstance(part, Any):
            kept.update(dict.fromkeys(part.parts))
        elif part == TRUE:
            return TRUE
        else:
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else Any(tuple(kept))


def negated(formula: Formula) -> Formula:
    match formula:
        case NotNegative(polynomial):
            return at_least(-polynomial, 1)
        case IsZero(polynomial):
            return either(at_least(polynomial, 1), at_least(-polynomial, 1))
        case All() | Any():
            return formula.negation


def mapped(formula: Formula, change: Callable[[Polynomial], Polynomial]) -> Formula:
    """The same relations of other polynomials."""
    return _mapped(formula, change, {})


def _mapped(
    formula: Formula, change: Callable[[Polynomial], Polynomial], known: dict[Formula, Formula]
) -> Formula:
    """`known` is what has been changed already."""
    match formula:
        case NotNegative(polynomial):
            changed = change(polynomial)
            return formula if changed is polynomial else at_least(changed, 0)
        case IsZero(polynomial):
            changed = change(polynomial)
            return formula if changed is polynomial else equal(changed, 0)
        case All(parts) | Any(parts):
            if formula in known:
                return known[formula]
            others = [_mapped(part, change, known) for part in parts]
            if all(other is part for other, part in zip(others, parts, strict=True)):
                found: Formula = formula
            else:
                found = both(*others) if isinstance(formula, All) else either(*others)
            known[formula] = found
            return found


def renamed(formula: Formula, names: Mapping[Unknown, Unknown]) -> Formula:
    """The same over other unknowns; those that are not in `names` stay."""
    return _renamed(formula, names, {})


def _renamed(
    formula: Formula, names: Mapping[Unknown, Unknown], known: dict[Formula, Formula]
) -> Formula:
    if names.keys().isdisjoint(formula.unknowns):
        return formula
    match formula:
        case NotNegative(polynomial):
            return NotNegative(polynomial.renamed(names))
        case IsZero(polynomial):
            return IsZero(polynomial.renamed(names))
        case All(parts) | Any(parts):
            if formula not in known:
                others = tuple(_renamed(part, names, known) for part in parts)
                known[formula] = All(others) if isinstance(formula, All) else Any(others)
            return known[formula]


def holds(formula: Formula, values: Mapping[Unknown, int]) -> bool:
    """Whether it holds where each unknown has a value."""
    match formula:
        case NotNegative(polynomial):
            return polynomial.at(values.__getitem__) >= 0
        case IsZero(polynomial):
            return polynomial.at(values.__getitem__) == 0
        case All(parts):
            return all(holds(part, values) for part in parts)
        case Any(parts):
            return any(holds(part, values) for part in parts)


def polynomials(formula: Formula) -> tuple[Polynomial, ...]:
    """Every polynomial that is compared, once."""
    if isinstance(formula, (NotNegative, IsZero)):
        return (formula.polynomial,)
    return formula.polynomials


def comparisons_in(formula: Formula) -> int:
    """How many there are, those that are written several times as often."""
    return 1 if isinstance(formula, (NotNegative, IsZero)) else formula.size


def within(polynomial: Polynomial, low: int, high: int) -> Formula:
    """`low <= polynomial <= high`."""
    return both(at_least(polynomial, low), at_least(number(high), polynomial))


def _polynomial(value: Polynomial | int) -> Polynomial:
    return number(value) if isinstance(value, int) else value
