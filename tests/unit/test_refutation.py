"""Multiplied inequalities: a contradiction is one, by trying every number.

What is found is compared with every value that a few unknowns of small ranges can have.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

from tilec.integers.formula import (
    Formula,
    IsZero,
    NotNegative,
    at_least,
    both,
    either,
    equal,
    holds,
    less,
)
from tilec.integers.polynomial import Polynomial, Unknown, number, polynomial, variable
from tilec.integers.ranges import ranges_of
from tilec.integers.refutation import contradict


def unknowns(*ranges: tuple[int, int]) -> list[Unknown]:
    return [Unknown(f"u{i}", low, high, i) for i, (low, high) in enumerate(ranges)]


def can_hold(formulas: list[Formula], every: list[Unknown]) -> bool:
    """By trying."""
    values = product(*(range(u.low, u.high + 1) for u in every))
    return any(all(holds(f, dict(zip(every, v, strict=True))) for f in formulas) for v in values)


def random_polynomial(chance: random.Random, every: list[Unknown]) -> Polynomial:
    terms = []
    for _ in range(chance.randint(1, 3)):
        monomial = tuple(
            sorted(chance.choice(every) for _ in range(chance.choice((1, 1, 2, 2, 3))))
        )
        terms.append((monomial, chance.choice((-3, -2, -1, 1, 2, 3))))
    return polynomial([*terms, ((), chance.randint(-9, 9))])


def random_formula(chance: random.Random, every: list[Unknown]) -> Formula:
    value = random_polynomial(chance, every)
    match chance.randint(0, 5):
        case 0:
            return IsZero(value)
        case 1:
            other = random_polynomial(chance, every)
            return either(both(NotNegative(value), NotNegative(other)), NotNegative(-other))
        case 2:
            return either(equal(value, 0), NotNegative(random_polynomial(chance, every)))
    return NotNegative(value)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_said_is_so_of_every_number(seed: int) -> None:
    chance = random.Random(seed)
    every = unknowns((0, 4), (-3, 3), (0, 6), (1, 3))
    formulas = [random_formula(chance, every) for _ in range(chance.randint(2, 5))]
    found = contradict(formulas)
    assert found is None or found is not can_hold(formulas, every)


@pytest.mark.parametrize("seed", range(40))
def test_ranges_leave_every_number_that_is_possible(seed: int) -> None:
    chance = random.Random(seed)
    every = unknowns((0, 5), (-4, 4), (1, 6))
    zero = [random_polynomial(chance, every) for _ in range(chance.randint(0, 1))]
    not_negative = [random_polynomial(chance, every) for _ in range(3)]
    monomials = {m for p in (*zero, *not_negative) for m in p.monomials}
    monomials |= {(u,) for u in every}
    found = ranges_of(zero, not_negative, monomials)
    formulas = [*map(IsZero, zero), *map(NotNegative, not_negative)]
    for values in product(*(range(u.low, u.high + 1) for u in every)):
        by_unknown = dict(zip(every, values, strict=True))
        if all(holds(f, by_unknown) for f in formulas):
            assert not found.is_empty
            for monomial in monomials:
                low, high = found.of(monomial)
                assert low <= Polynomial(((monomial, 1),)).at(by_unknown.__getitem__) <= high


LARGE = 2**40


def test_a_square_orders_as_what_is_squared_does() -> None:
    i, j = unknowns((0, LARGE), (0, LARGE))
    x, y = variable(i), variable(j)
    assert contradict([less(x, y), equal(x * x, y * y)]) is True
    assert contradict([less(x, y), equal(x * x, y * y - 3)]) is False  # 1 and 2


def test_a_triangle_of_rows_packed_one_after_the_other_overlaps_nowhere() -> None:
    i, j, a, b = map(variable, unknowns(*[(0, LARGE)] * 4))
    # Twice the place of (i, j), j <= i: i (i + 1) + 2 j.
    same = equal(i * i + i + j.scaled(2), a * a + a + b.scaled(2))
    inside = [at_least(i, j), at_least(a, b)]
    assert contradict([*inside, same, less(i, a)]) is True
    too_long = [at_least(i + 1, j), at_least(a, b)]
    assert contradict([*too_long, same, less(i, a)]) is False


def test_three_digits_of_any_radix_are_one_number_only_once() -> None:
    sizes = [variable(u) for u in unknowns((1, LARGE), (1, LARGE))]
    first = [Unknown(f"p{k}", 0, LARGE, 10 + k, uniform=False) for k in range(3)]
    second = [
        Unknown(f"q{k}", 0, LARGE, 20 + k, uniform=False, twin=u) for k, u in enumerate(first)
    ]

    def place(digits: list[Unknown]) -> Polynomial:
        a, b, c = map(variable, digits)
        return (a * sizes[0] + b) * sizes[1] + c

    radix = [less(variable(d[k]), sizes[k - 1]) for d in (first, second) for k in (1, 2)]
    same = equal(place(first), place(second))
    differ = either(
        *(
            either(less(variable(p), variable(q)), less(variable(q), variable(p)))
            for p, q in zip(first, second, strict=True)
        )
    )
    assert contradict([*radix, same, differ]) is True
    assert contradict([*radix[1:], same, differ]) is not True  # the first b may be too large


def test_numbers_without_products_have_ranges_at_once() -> None:
    [n] = unknowns((0, LARGE))
    assert contradict([less(variable(n), 0)]) is True
    assert contradict([at_least(number(3), variable(n))]) is False
