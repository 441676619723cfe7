"""What is true of products, as formulas that are linear in them: said where a point ignores it.

For products of one factor n >= 0 (x n and y n, where x or y may be 0) and any number d:

    x - y = d  and  x n - y n = d n,   or
    x - y > d  and  x n - y n >= (d + 1) n,   or
    x - y < d  and  x n - y n <= (d - 1) n

Of a factor below zero it is true of the products' opposites. With d = 0 it says that products order
as their factors do, which is what delinearisation needs. With d from a point it excludes the point.
This is incremental linearisation (Cimatti et al., "Incremental Linearization for Satisfiability and
Verification Modulo Nonlinear Arithmetic", 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from tilec.integers.budget import spend
from tilec.integers.formula import (
    FALSE,
    All,
    Any,
    Formula,
    IsZero,
    NotNegative,
    at_least,
    both,
    equal,
)
from tilec.integers.polynomial import ZERO, Monomial, Polynomial, Unknown, number, variable

# What it takes to compare two multiples of a factor at a point.
_COMPARED = 10


@dataclass(frozen=True)
class _Multiple:
    """A product seen as a multiple of one of its factors."""

    times: Polynomial
    product: Polynomial


Truth = tuple[Formula, ...]  # alternatives, of which one holds


def ignored_truths(
    products: tuple[Monomial, ...], values: Mapping[Monomial, int]
) -> Iterator[Truth]:
    """Truths about products that a point ignores, those about order first.

    There are none only if every product is what it says.
    """
    if all(_is_right(product, values) for product in products):
        return
    families = _families(products)
    for ordered in (True, False):
        for factor, multiples in families.items():
            yield from _of_family(_one(factor), multiples, values, ordered=ordered)


def fixing_factors(products: tuple[Monomial, ...]) -> tuple[Unknown, ...]:
    """Unknowns which, once they are numbers, leave one factor of each product at most.

    What all programs share is taken first: sizes are few, and small where something goes wrong.
    """
    found: list[Unknown] = []
    for product in products:
        rest = [unknown for unknown in product if unknown not in found]
        rest.sort(key=lambda unknown: (not unknown.uniform, unknown.number))
        found += dict.fromkeys(rest[: len(rest) - 1])
    return tuple(dict.fromkeys(found))


def fixed_at(unknown: Unknown, value: int, products: tuple[Monomial, ...]) -> list[Formula]:
    """That an unknown is a number, and what its products are then: multiples of the rest."""
    found = [_equals(variable(unknown), number(value))]
    for product in products:
        if unknown in product:
            rest = list(product)
            rest.remove(unknown)
            found.append(_equals(_one(product), _one(tuple(rest)).scaled(value)))
    return found


def _equals(left: Polynomial, right: Polynomial) -> Formula:
    """As `equal`, but never decided by what the factors can be: products stand for themselves."""
    return IsZero(left - right)


def _of_family(
    factor: Polynomial,
    multiples: list[_Multiple],
    values: Mapping[Monomial, int],
    *,
    ordered: bool,
) -> Iterator[Truth]:
    """Truths about two multiples of a factor: of their order, or of their distance."""
    sign = 1 if _value(factor, values) >= 0 else -1
    factor = factor.scaled(sign)
    for left, right in combinations([*multiples, _Multiple(ZERO, ZERO)], 2):
        times, product = left.times - right.times, (left.product - right.product).scaled(sign)
        at, reached = _value(times, values), _value(product, values)
        distance = 0 if ordered else at
        if _is_ignored(_value(factor, values), at, reached, distance):
            yield _truth(factor, times, product, distance)


def _is_ignored(factor: int, times: int, product: int, distance: int) -> bool:
    """Whether numbers fit no alternative of a truth; it is not made only to be thrown away."""
    spend(_COMPARED)
    if times == distance:
        return product != factor * distance
    if times > distance:
        return product < factor * (distance + 1)
    return product > factor * (distance - 1)


def _truth(factor: Polynomial, times: Polynomial, product: Polynomial, distance: int) -> Truth:
    above, below = factor.scaled(distance + 1), factor.scaled(distance - 1)
    alternatives = (
        both(equal(times, distance), equal(product, factor.scaled(distance))),
        both(at_least(times, distance + 1), at_least(product, above)),
        both(at_least(-times, 1 - distance), at_least(below, product)),
        at_least(-factor, 1),
    )
    return tuple(alternative for alternative in alternatives if alternative != FALSE)


def _families(products: tuple[Monomial, ...]) -> dict[Monomial, list[_Multiple]]:
    """For each factor its multiples: a product is one of every part of it."""
    found: dict[Monomial, dict[_Multiple, None]] = {}
    for product in products:
        for factor, times in _splits(product):
            found.setdefault(factor, {})[_Multiple(_one(times), _one(product))] = None
    # The factor itself is one, too.
    for factor, multiples in found.items():
        multiples.setdefault(_Multiple(_one(()), _one(factor)), None)
    return {factor: list(multiples) for factor, multiples in found.items()}


def _splits(product: Monomial) -> Iterator[tuple[Monomial, Monomial]]:
    places = range(len(product))
    for size in range(1, len(product)):
        for chosen in combinations(places, size):
            factor = tuple(product[i] for i in chosen)
            yield factor, tuple(product[i] for i in places if i not in chosen)


def _one(monomial: Monomial) -> Polynomial:
    return Polynomial(((monomial, 1),))


def _value(polynomial: Polynomial, values: Mapping[Monomial, int]) -> int:
    """The value by that of the monomials, whatever their factors are."""
    return sum(c * (values[m] if m else 1) for m, c in polynomial.terms)


def _is_right(product: Monomial, values: Mapping[Monomial, int]) -> bool:
    wanted = 1
    for unknown in product:
        wanted *= values[unknown,]
    return values[product] == wanted


def holds_at(formula: Formula, values: Mapping[Monomial, int]) -> bool:
    """Whether it holds where each monomial has a value, whatever its factors have."""
    match formula:
        case NotNegative(polynomial):
            return _value(polynomial, values) >= 0
        case IsZero(polynomial):
            return _value(polynomial, values) == 0
        case All(parts):
            return all(holds_at(part, values) for part in parts)
        case Any(parts):
            return any(holds_at(part, values) for part in parts)
