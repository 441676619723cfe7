"""Formulas as sets of isl: one dimension for each unknown and for each product of unknowns.

isl knows no products. Each is a dimension of its own here, tied to its factors by nothing: what is
empty this way is empty, what is not may still be. `products.py` says what else is true of products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import combinations
from typing import TypeVar

import islpy as isl

from tilec.integers import budget
from tilec.integers.budget import Undecided
from tilec.integers.formula import All, Any, Formula, IsZero, NotNegative, polynomials
from tilec.integers.polynomial import Monomial, Polynomial, Unknown, number

_SET = isl.dim_type.set
_context = isl.Context()
_PLAIN = 2**31  # numbers below which islpy takes as they are


__all__ = ["Dimensions", "Undecided", "limited", "one_question", "value_of"]


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
        monomials = (*((unknown,) for unknown in self.unknowns), *self.products)
        self._places = {monomial: place for place, monomial in enumerate(monomials)}
        budget.weigh(len(self._places))
        space = isl.Space.set_alloc(_context, 0, len(self._places))
        self._everything = isl.BasicSet.universe(space)
        self._local = isl.LocalSpace.from_space(space)

    @property
    def monomials(self) -> tuple[Monomial, ...]:
        return tuple(self._places)

    def count_of(self, unknowns: Iterable[Unknown]) -> int:
        """How many of some unknowns occur."""
        return len(set(unknowns).intersection(self.unknowns))

    def set_of(self, formulas: Iterable[Formula], *, in_range: bool = True) -> isl.Set:
        """The points at which all formulas hold; without the ranges of unknowns if so asked."""
        return limited(lambda: self._all([*(self._ranges() if in_range else ()), *formulas]))

    def relaxed(self, formulas: Iterable[Formula], *, in_range: bool = True) -> isl.BasicSet | None:
        """As `set_of`, where coordinates need not be whole; None of what is not one piece."""
        found = list(self._ranges()) if in_range else []
        waiting = list(formulas)
        while waiting:
            match waiting.pop():
                case All(parts):
                    waiting += parts
                case Any():
                    return None
                case comparison:
                    found.append(comparison)
        return limited(lambda: self._piece(found, self._rational))

    def _piece(self, comparisons: Iterable[Formula], piece: isl.BasicSet) -> isl.BasicSet:
        for comparison in comparisons:
            assert isinstance(comparison, (NotNegative, IsZero)), "alternatives are apart"
            is_equality = isinstance(comparison, IsZero)
            piece = piece.add_constraint(self._constraint(comparison.polynomial, equal=is_equality))
        return piece

    @cached_property
    def _rational(self) -> isl.BasicSet:
        """Everything; isl has no other way to say that coordinates need not be whole."""
        names = ", ".join(f"i{place}" for place in range(len(self._places)))
        return isl.BasicSet(f"{{ rat: [{names}] }}", _context)

    def _ranges(self) -> Iterator[Formula]:
        """What each unknown, and each product, can be at all."""
        for monomial in self._places:
            value = Polynomial(((monomial, 1),))
            low, high = value.interval
            yield NotNegative(value - low)
            yield NotNegative(number(high) - value)

    def _all(self, formulas: Iterable[Formula]) -> isl.Set:
        """Comparisons become one piece; alternatives are intersected with it."""
        piece = self._everything
        alternatives: list[Any] = []
        waiting = list(formulas)
        while waiting:
            match waiting.pop():
                case NotNegative(polynomial):
                    piece = piece.add_constraint(self._constraint(polynomial, equal=False))
                case IsZero(polynomial):
                    piece = piece.add_constraint(self._constraint(polynomial, equal=True))
                case All(parts):
                    waiting += parts
                case Any() as formula:
                    alternatives.append(formula)
        points = isl.Set.from_basic_set(piece)
        for formula in reversed(alternatives):
            points = points.intersect(self._any(formula))
        return points

    def _any(self, formula: Any) -> isl.Set:
        points = isl.Set.from_basic_set(self._everything).complement()
        for part in formula.parts:
            points = points.union(self._all([part]))
        return points

    def _constraint(self, polynomial: Polynomial, *, equal: bool) -> isl.Constraint:
        make = isl.Constraint.alloc_equality if equal else isl.Constraint.alloc_inequality
        found = make(self._local)
        budget.spend(_CONSTRAINT * (1 + len(polynomial.terms)) + len(self._places) // _ROW)
        for monomial, coefficient in polynomial.terms:
            value = value_of(coefficient)
            if monomial:
                found = found.set_coefficient_val(_SET, self._places[monomial], value)
            else:
                found = found.set_constant_val(value)
        return found

    def values(self, point: isl.Point) -> dict[Monomial, int]:
        """The value of each dimension at a point; reading it has no limit. Raises Undecided."""
        budget.spend(2 * len(self._places))
        numbers = [self._value(point, i) for i in range(len(self._places))]
        return dict(zip(self._places, numbers, strict=True))

    def _value(self, point: isl.Point, place: int) -> int:
        value = point.get_coordinate_val(_SET, place).to_python()
        assert value is not None, "a point has coordinates"
        return int(value)


def value_of(value: int) -> isl.Val:
    """A number of any size."""
    if -_PLAIN < value < _PLAIN:
        return isl.Val.int_from_si(_context, value)
    return isl.Val.read_from_str(_context, str(value))


_Answer = TypeVar("_Answer")

# What a call takes beside isl's operations, and what making a constraint does.
_CALL = 30
_CONSTRAINT = 2
# A constraint is a row of numbers, one for each dimension: so many are written in a step.
_ROW = 16


@contextmanager
def one_question(part: float = budget.SHARE, *, is_eager: bool = True) -> Iterator[None]:
    """While one question is asked, that may take `part` of what is left.

    Sets are of their question alone: what isl counts depends on what its context made before.

    `is_eager`: whether sets may be of many pieces.
    """
    global _context
    if not budget.is_asked():
        _context = isl.Context()
    with budget.question(part, is_eager=is_eager):
        yield


def limited(step: Callable[[], _Answer], factor: int = 1) -> _Answer:
    """What isl answers, inside of `one_question`. Raises Undecided if it costs too much.

    `factor`: how much more than others an operation of the step takes.
    """
    context = _context
    if context.get_max_operations():  # a part of a step
        return step()
    price = factor * budget.price()
    context.reset_operations()
    context.set_max_operations(max(1, budget.steps_left() // price))
    try:
        found = step()
    except isl.Error as error:
        context.set_max_operations(0)
        budget.exhaust()
        raise Undecided(str(error)) from None
    except Undecided:
        context.set_max_operations(0)
        budget.exhaust()
        raise
    operations = _operations(context)
    context.set_max_operations(0)
    budget.spend(_CALL + operations * price)
    return found


def _operations(context: isl.Context) -> int:
    """A number that isl's count of operations is below: isl tells the count by its limit only."""
    above = 32
    while not _is_below(context, above):
        above *= 2
    between = above * 3 // 4
    return between if _is_below(context, between) else above


def _is_below(context: isl.Context, limit: int) -> bool:
    context.set_max_operations(limit)
    try:
        isl.Val.int_from_si(context, 1)  # an operation
    except isl.Error:
        return False
    return True


def _with_factors(products: Iterable[Monomial]) -> set[Monomial]:
    """The products, and those that are part of one."""
    found: set[Monomial] = set()
    for product in products:
        for size in range(2, len(product) + 1):
            found.update(combinations(product, size))
    return found


def _order(monomial: Monomial) -> tuple[int, list[int]]:
    return len(monomial), [unknown.number for unknown in monomial]
