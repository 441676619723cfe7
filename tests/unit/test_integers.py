"""Formulas of small unknowns, against trying every value."""

from __future__ import annotations

import random
from itertools import product

import pytest

from tilec.integers.conditions import never_holds
from tilec.integers.division import is_ceiling, is_floor, is_truncated
from tilec.integers.formula import (
    FALSE,
    TRUE,
    Formula,
    at_least,
    both,
    either,
    equal,
    holds,
    less,
    negated,
    renamed,
)
from tilec.integers.number import always, chosen, combined, compared
from tilec.integers.polynomial import Polynomial, Unknown, number, variable
from tilec.integers.solver import Undecided, can_hold, smallest

RANGES = ((-3, 4), (0, 5), (-2, 2), (1, 4))
UNKNOWNS = [Unknown(f"u{i}", low, high, i) for i, (low, high) in enumerate(RANGES)]
POINTS = [
    dict(zip(UNKNOWNS, values, strict=True))
    for values in product(*(range(low, high + 1) for low, high in RANGES))
]


def some_polynomial(rng: random.Random, *, products: bool) -> Polynomial:
    found = number(rng.randint(-6, 6))
    for _ in range(rng.randint(1, 3)):
        term = variable(rng.choice(UNKNOWNS)).scaled(rng.randint(-3, 3))
        if products and rng.random() < 0.4:
            term = term * variable(rng.choice(UNKNOWNS))
        found = found + term
    return found


def some_formula(rng: random.Random, depth: int, *, products: bool) -> Formula:
    if depth == 0:
        relation = rng.choice((at_least, less, equal))
        return relation(*(some_polynomial(rng, products=products) for _ in range(2)))
    parts = [some_formula(rng, depth - 1, products=products) for _ in range(rng.randint(1, 3))]
    found = rng.choice((both, either))(*parts)
    return negated(found) if rng.random() < 0.3 else found


@pytest.mark.parametrize("seed", range(40))
def test_what_can_hold_is_what_holds_somewhere(seed: int) -> None:
    rng = random.Random(seed)
    agrees([some_formula(rng, rng.randint(0, 2), products=False) for _ in range(2)])


def test_products_too_unless_it_costs_too_much() -> None:
    undecided = 0
    for seed in range(40):
        rng = random.Random(seed)
        try:
            agrees([some_formula(rng, rng.randint(0, 1), products=True) for _ in range(2)])
        except Undecided:
            undecided += 1
    assert undecided <= 4


def agrees(formulas: list[Formula]) -> None:
    """The solver says what trying every value says, or nothing."""
    where = [point for point in POINTS if all(holds(f, point) for f in formulas)]
    assert can_hold(formulas) == bool(where)
    first = [u for u in UNKNOWNS if any(u in f.unknowns for f in formulas)]
    found = smallest(formulas, first)
    if not where:
        assert found is None
        return
    assert found is not None
    assert [found[u] for u in first] == min([point[u] for u in first] for point in where)


@pytest.mark.parametrize("seed", range(20))
def test_a_negation_holds_where_the_formula_does_not(seed: int) -> None:
    formula = some_formula(random.Random(seed), 2, products=True)
    assert all(holds(formula, p) != holds(negated(formula), p) for p in POINTS)


def test_polynomials_are_sums_of_distinct_monomials() -> None:
    a, b = map(variable, UNKNOWNS[:2])
    assert (a + b) * (a - b) == a * a - b * b
    assert a - a == number(0) and (a - a).is_constant
    assert a * 2 + b - 1 == polynomial_by_terms(a, b)
    for point in POINTS[::97]:
        value = ((a + 3) * (b - 2) * a).at(point.__getitem__)
        x, y = point[UNKNOWNS[0]], point[UNKNOWNS[1]]
        assert value == (x + 3) * (y - 2) * x


def polynomial_by_terms(a: Polynomial, b: Polynomial) -> Polynomial:
    return number(-1) + b + a + a


@pytest.mark.parametrize("seed", range(20))
def test_an_interval_contains_every_value(seed: int) -> None:
    found = some_polynomial(random.Random(seed), products=True)
    low, high = found.interval
    assert all(low <= found.at(point.__getitem__) <= high for point in POINTS)


def test_what_intervals_decide_is_decided() -> None:
    a = variable(UNKNOWNS[1])  # 0 to 5
    assert at_least(a, 0) == TRUE and at_least(a, 6) == FALSE
    assert less(a, 6) == TRUE and equal(a, 7) == FALSE
    assert both(at_least(a, 0), FALSE) == FALSE and either(TRUE, at_least(a, 1)) == TRUE


def test_renaming_keeps_what_is_not_named() -> None:
    a, b, c, _ = UNKNOWNS
    formula = at_least(variable(a) * variable(b), variable(c))
    assert renamed(formula, {a: c}) == at_least(variable(c) * variable(b), variable(c))
    assert renamed(formula, {}) is formula


@pytest.mark.parametrize("dividend", range(-9, 10))
@pytest.mark.parametrize("divisor", [1, 2, 3, 5])
def test_quotients_are_what_they_are_called(dividend: int, divisor: int) -> None:
    unknown = Unknown("q", -10, 10, 0)
    truncated = abs(dividend) // divisor * (1 if dividend >= 0 else -1)
    for relation, value in (
        (is_floor, dividend // divisor),
        (is_ceiling, -(-dividend // divisor)),
        (is_truncated, truncated),
    ):
        meant = relation(variable(unknown), number(dividend), number(divisor))
        assert smallest([meant], [unknown]) == {unknown: value}
        above = at_least(variable(unknown), value + 1)
        assert not can_hold([meant, above])


def test_cases_of_numbers() -> None:
    a, b = map(variable, UNKNOWNS[:2])
    is_small = less(a, 1)
    found = chosen(is_small, always(a), always(b))
    doubled = combined(lambda x, y: x + y, found, found)
    assert len(doubled.cases) == 2  # conditions that exclude each other go with nothing
    formula = compared(equal, doubled, always(4))
    for point in POINTS:
        x, y = point[UNKNOWNS[0]], point[UNKNOWNS[1]]
        assert holds(formula, point) == (2 * (x if x < 1 else y) == 4)
    assert chosen(is_small, always(a), always(a)) == always(a)


def test_a_condition_is_right_and_useful() -> None:
    """When no tile of 4 at i < ceil(n / 4) leaves n elements: n is a multiple of 4."""
    n, i = Unknown("n", 0, 40, 0), Unknown("i", 0, 40, 1)
    exists = less(variable(i).scaled(4), variable(n))
    outside = less(variable(n), variable(i).scaled(4) + 4)
    condition = never_holds([exists, outside], [], [exists], [n])
    assert condition is not None
    [[comparison]] = condition
    assert comparison.is_equality
    # What only holds where there is no tile at all is no condition.
    assert never_holds([exists], [], [exists], [n]) is None


def test_what_holds_at_the_end_of_a_range_only_is_no_condition() -> None:
    n = Unknown("n", 0, 2**40, 0)
    below_the_end = less(variable(n), 2**40)
    anywhere: list[Formula] = [at_least(variable(n), 0)]
    assert never_holds([below_the_end], anywhere, anywhere, [n]) is None
    assert never_holds([less(variable(n), 2**20)], anywhere, anywhere, [n]) is not None
