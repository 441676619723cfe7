"""Formulas without unknowns of which one end is always best.

Where every comparison that an unknown occurs in gets easier as the unknown gets smaller, the
formulas can hold together exactly if they can with the least number that the unknown can be; the
same for the greatest. (There is no negation in formulas.) So it becomes that number. An extent that
only bounds things from above, and the counter of a loop that nothing depends on, go away like this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from tilec.integers.budget import spend
from tilec.integers.formula import (
    FALSE,
    All,
    Any,
    Formula,
    IsZero,
    NotNegative,
    mapped,
    polynomials,
)
from tilec.integers.polynomial import Monomial, Polynomial, Unknown, polynomial

# Of so many formulas is kept how they get easier.
_KEPT = 20_000

_DOWN, _UP = 1, 2  # how a comparison gets easier: as the unknown gets smaller, or larger


def without_monotone(formulas: Sequence[Formula]) -> tuple[Formula, ...]:
    """Formulas that can hold together exactly if the given ones can, with fewer unknowns."""
    found = _conjuncts(formulas)
    while True:
        values = _best_values(found)
        if not values:
            return found
        found = _conjuncts([at_values(formula, values) for formula in found])


def _conjuncts(formulas: Sequence[Formula]) -> tuple[Formula, ...]:
    """Each formula once, `and` taken apart."""
    found: dict[Formula, None] = {}
    waiting = list(reversed(formulas))
    while waiting:
        formula = waiting.pop()
        if isinstance(formula, All):
            waiting += reversed(formula.parts)
        elif formula == FALSE:
            return (FALSE,)
        else:
            found[formula] = None
    return tuple(found)


def _best_values(formulas: Sequence[Formula]) -> dict[Unknown, int]:
    """Unknowns with the number that is best for every comparison, whatever the others are."""
    ways: dict[Unknown, int] = {}
    for formula in formulas:
        spend(1)
        for unknown, way in _ways(formula):
            ways[unknown] = ways.get(unknown, 0) | way
    return {
        unknown: unknown.low if way == _DOWN else unknown.high
        for unknown, way in ways.items()
        if way != _DOWN | _UP
    }


@lru_cache(_KEPT)
def _ways(formula: Formula) -> list[tuple[Unknown, int]]:
    """How each unknown makes it easier; it may be asked for each of many questions."""
    match formula:
        case NotNegative(value):
            return [
                (unknown, way)
                for monomial, coefficient in value.terms
                for unknown, way in _of_term(monomial, coefficient)
            ]
        case IsZero(value):
            return [(unknown, _DOWN | _UP) for unknown in value.unknowns]
        case All(parts) | Any(parts):
            return [found for part in parts for found in _ways(part)]


def _of_term(monomial: Monomial, coefficient: int) -> list[tuple[Unknown, int]]:
    if len(monomial) == 1:
        return [(monomial[0], _UP if coefficient > 0 else _DOWN)]
    found = []
    for unknown in monomial:
        others = [other for other in monomial if other is not unknown]
        is_clear = unknown.low >= 0 and all(other.low >= 0 for other in others)
        way = _UP if coefficient > 0 else _DOWN
        found.append((unknown, way if is_clear else _DOWN | _UP))
    return found


def at_values(formula: Formula, values: Mapping[Unknown, int]) -> Formula:
    """The formula where some unknowns are numbers."""
    if values.keys().isdisjoint(formula.unknowns):
        return formula

    def change(value: Polynomial) -> Polynomial:
        spend(len(value.terms))
        terms: list[tuple[Monomial, int]] = []
        for monomial, coefficient in value.terms:
            rest = []
            for unknown in monomial:
                if unknown in values:
                    coefficient *= values[unknown]
                else:
                    rest.append(unknown)
            terms.append((tuple(rest), coefficient))
        return polynomial(terms)

    return mapped(formula, change)


def components(formulas: Sequence[Formula]) -> list[tuple[Formula, ...]]:
    """Formulas by what unknowns they share: those of different groups have none in common."""
    groups: list[tuple[set[Unknown], list[Formula]]] = []
    for formula in formulas:
        unknowns, members = set(formula.unknowns), [formula]
        apart = []
        for group in groups:
            if group[0].isdisjoint(unknowns):
                apart.append(group)
            else:
                unknowns |= group[0]
                members = [*group[1], *members]
        groups = [*apart, (unknowns, members)]
    return [tuple(members) for _, members in groups]


def size_of(formulas: Sequence[Formula]) -> int:
    """How many terms are compared."""
    return sum(len(p.terms) for formula in formulas for p in polynomials(formula))
