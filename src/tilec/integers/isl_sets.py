"""Formulas as sets of isl: one dimension for each unknown and for each product of unknowns.

isl knows no products. Each is a dimension of its own here, tied to its factors by nothing: what is
empty this way is empty, what is not may still be. `products.py` says what else is true of products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import TypeVar

import islpy as isl

from tilec.integers.formula import (
    Any,
    Formula,
    IsZero,
    NotNegative,
    polynomials,
)
from tilec.integers.polynomial import Monomial, Polynomial, Unknown

# What one question may cost: isl's own count of steps, about a second's worth.
_OPERATIONS = 1_000_000


class Undecided(Exception):  # noqa: N818, a state of the question, and no fault of ours
    """The question costs too much to answer."""


class Dimensions:
    """What each dimension of a set is: unknowns first, in the order given, then products.

    Those in `first` that do not occur are left out, unless `all_first`.
    """

    def __init__(
        self, formulas: Sequence[Formula], first: Sequence[Unknown], *, all_first: bool = False
    ) -> None:
        found = {m for f in formulas for p in polynomials(f) for m in p.monomials}
        unknowns = {unknown for monomial in found for unknown in monomial}
        ahead = [unknown for unknown in first if all_first or unknown in unknowns]
        self.unknowns = (*ahead, *sorted(unknowns.difference(ahead)))
        self.products = tuple(sorted(_with_factors(m for m in found if len(m) > 1), key=_order))
        self._names: dict[Monomial, str] = {
            **{(unknown,): f"v{i}" for i, unknown in enumerate(self.unknowns)},
            **{product: f"p{i}" for i, product in enumerate(self.products)},
        }
        self.space = f"[{', '.join(self._names.values())}]"

    @property
    def monomials(self) -> tuple[Monomial, ...]:
        return tuple(self._names)

    def count_of(self, unknowns: Iterable[Unknown]) -> int:
        """How many of some unknowns occur."""
        return len(set(unknowns).intersection(self.unknowns))

    def ranges(self) -> str:
        """What each unknown can be at all."""
        bounds = [f"{u.low} <= v{i} <= {u.high}" for i, u in enumerate(self.unknowns)]
        for i, product in enumerate(self.products):
            low, high = Polynomial(((product, 1),)).interval
            bounds.append(f"{low} <= p{i} <= {high}")
        return " and ".join(bounds) or "0 = 0"

    def text(self, formula: Formula) -> str:
        """A formula in isl's syntax."""
        match formula:
            case NotNegative(polynomial):
                return f"{self._sum(polynomial)} >= 0"
            case IsZero(polynomial):
                return f"{self._sum(polynomial)} = 0"
        if not formula.parts:
            return "0 = 1" if isinstance(formula, Any) else "0 = 0"
        word = " or " if isinstance(formula, Any) else " and "
        return f"({word.join(map(self.text, formula.parts))})"

    def _sum(self, polynomial: Polynomial) -> str:
        terms = [
            f"{coefficient}{self._names[monomial]}" if monomial else str(coefficient)
            for monomial, coefficient in polynomial.terms
        ]
        return " + ".join(terms) or "0"

    def set_of(self, formulas: Iterable[Formula], *, in_range: bool = True) -> isl.Set:
        """The points at which all formulas hold; without the ranges of unknowns if so asked."""
        held = " and ".join([*([self.ranges()] if in_range else []), *map(self.text, formulas)])
        return limited(lambda: isl.Set(f"{{ {self.space} : {held} }}"))

    def values(self, point: isl.Point) -> dict[Monomial, int]:
        """The value of each dimension at a point. Raises Undecided."""
        numbers = limited(lambda: [self._value(point, i) for i in range(len(self._names))])
        return dict(zip(self._names, numbers, strict=True))

    def _value(self, point: isl.Point, place: int) -> int:
        value = point.get_coordinate_val(isl.dim_type.set, place).to_python()
        if value is None:  # how isl says that the question has cost too much
            raise Undecided
        return int(value)


_Answer = TypeVar("_Answer")


@contextmanager
def one_question(effort: int = 1) -> Iterator[None]:
    """While one question is asked: what is asked of isl in it has a limit in all."""
    context = isl.DEFAULT_CONTEXT
    context.reset_operations()
    context.set_max_operations(effort * _OPERATIONS)
    try:
        yield
    finally:
        context.set_max_operations(0)


def limited(step: Callable[[], _Answer]) -> _Answer:
    """What isl answers, inside of `one_question`. Raises Undecided if it costs too much."""
    try:
        return step()
    except isl.Error as error:
        raise Undecided(str(error)) from None


def _with_factors(products: Iterable[Monomial]) -> set[Monomial]:
    """The products, and those that are part of one."""
    found: set[Monomial] = set()
    for product in products:
        for size in range(2, len(product) + 1):
            found.update(combinations(product, size))
    return found


def _order(monomial: Monomial) -> tuple[int, list[int]]:
    return len(monomial), [unknown.number for unknown in monomial]
