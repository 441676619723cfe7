"""Whether formulas can hold together, and the smallest numbers with which they do.

Exact where unknowns are added and multiplied by constants (Presburger arithmetic, by isl). Where
they are multiplied by each other, isl is asked with products as numbers of their own; as long as a
point ignores what products are, that truth is added (`products.py`). An answer is always right;
where the truths added are too many there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import islpy as isl

from tilec.integers.answers import remembered
from tilec.integers.budget import SHARE, portion
from tilec.integers.formula import FALSE, Any, Formula, at_least, less
from tilec.integers.guess import SMALL_FROM, guessed
from tilec.integers.isl_sets import Dimensions, Undecided, limited, one_question
from tilec.integers.monotone import at_values, components, size_of, without_monotone
from tilec.integers.polynomial import Monomial, Unknown, variable
from tilec.integers.products import (
    Truth,
    fixed_at,
    fixing_factors,
    holds_at,
    ignored_truths,
)

__all__ = ["Undecided", "can_hold", "smallest"]

# How many points a search for the least one may look at, and how many truths that a point ignores
# are tried before one is split on.
_POINTS = 100
_TRIED = 12
# Which guesses are made before isl is asked, after it, and before products are searched.
_QUICK_GUESSES = range(4)
_GUESSES = range(4, SMALL_FROM)
_SMALL_GUESSES = range(SMALL_FROM, 3 * SMALL_FROM)
# The part of the steps in which any point is looked at, which is mostly quicker than the least.
_PART_OF_ANY_POINT = 0.12

# How many numbers are tried for a least value, and which part of the steps one may take.
_SMALL = 12
# Least numbers take basis reductions, of which isl counts little.
_LEAST = 4
# So does whether whole numbers are left.
_WHOLE = 8
_PART_OF_A_VALUE = 0.2

_SET = isl.dim_type.set


def can_hold(formulas: Sequence[Formula], *, part: float = SHARE) -> bool:
    """Whether all formulas can hold together.

    `part` is of the steps that are left.

    Raises:   Undecided, where it would take more
    """
    with one_question(part, is_eager=False):
        return remembered(is_possible, formulas)


def smallest(formulas: Sequence[Formula], first: Sequence[Unknown]) -> dict[Unknown, int] | None:
    """The lexicographically least values with which all formulas hold, `first` first; None if none.

    Raises:   Undecided
    """
    with one_question(is_eager=False):
        return _one_by_one(formulas, first)


def is_possible(formulas: Sequence[Formula]) -> bool:
    """Whether formulas can hold together: each group of those that share unknowns by itself."""
    simpler = without_monotone(formulas)
    if FALSE in simpler:
        return False
    # What is small may say no before what is large is asked.
    groups = sorted(components(simpler), key=size_of)
    left = [group for group in groups if guessed(group, _QUICK_GUESSES) is None]
    searches = [_Search(group, None) for group in left]
    sets = []
    for search in searches:
        sets.append(search.everything())
        if limited(sets[-1].exact.is_empty, _WHOLE):
            return False
    return all(
        guessed(group, _GUESSES) is not None or _is_found(group, search, known)
        for group, search, known in zip(left, searches, sets, strict=True)
    )


def _is_found(formulas: Sequence[Formula], search: _Search, known: _Points) -> bool:
    """Whether formulas can hold, of which a search is not finished with a set."""
    if not search.has_products:
        return search.values(known) is not None
    if guessed(formulas, _SMALL_GUESSES) is not None:
        return True
    try:
        with portion(_PART_OF_ANY_POINT):
            return search.values(known) is not None
    except Undecided:
        # Truths about small points say more.
        return _Search(formulas, None, has_least_points=True).values(known) is not None


def _one_by_one(formulas: Sequence[Formula], first: Sequence[Unknown]) -> dict[Unknown, int] | None:
    """Least values by trying small ones: each that is found makes what is left easier.

    Where a value is not decided within a part of the steps, a larger one is taken.
    """
    if not is_possible(formulas):
        return None
    values: dict[Unknown, int] = {}
    rest = tuple(formulas)
    occurring = frozenset[Unknown]().union(*(f.unknowns for f in formulas))
    for place, unknown in enumerate(first):
        if unknown not in occurring:
            continue
        least = next(filter(partial(_can_be, rest, unknown), _smallest_of(unknown)), None)
        if least is None:
            found = _search(rest, first[place:])
            return None if found is None else {**values, **found}
        values[unknown] = least
        rest = tuple(at_values(formula, {unknown: least}) for formula in rest)
    others = guessed(rest, range(SMALL_FROM))
    if others is None:
        others = _search(rest, ())
    return None if others is None else {**values, **others}


def _smallest_of(unknown: Unknown) -> range:
    return range(unknown.low, min(unknown.low + _SMALL, unknown.high + 1))


def _can_be(formulas: Sequence[Formula], unknown: Unknown, value: int) -> bool:
    try:
        with portion(_PART_OF_A_VALUE):
            return is_possible([at_values(formula, {unknown: value}) for formula in formulas])
    except Undecided:
        return False


@dataclass(frozen=True)
class _Points:
    """A set, and the same without asking for whole numbers, where it is one piece.

    That the latter is empty is seen quickly; integers may take basis reductions.
    """

    exact: isl.Set
    relaxed: isl.BasicSet | None


@dataclass(frozen=True)
class _Way:
    """An alternative, and what it leaves of a set where coordinates need not be whole."""

    alternative: Formula
    relaxed: isl.BasicSet | None


class _Search:
    """One question: sets of points, split where there are several ways on.

    Alternatives (`Any`) are looked at when a point ignores them: most are decided by the rest.
    Where products take part, a *repair* is tried at each point: factors are what they are at the
    point, which makes products multiples, and all else may be anything.
    """

    def __init__(
        self,
        formulas: Sequence[Formula],
        first: Sequence[Unknown] | None,
        *,
        has_least_points: bool = False,
    ) -> None:
        self._factors = fixing_factors(Dimensions(formulas, ()).products)
        self._dimensions = Dimensions(formulas, self._factors if first is None else first)
        minimised = first if first is not None else self._factors if has_least_points else ()
        self._least = self._dimensions.count_of(minimised)
        self._first = tuple(first or ())
        self._fallback: dict[Monomial, int] | None = None
        self._everything: isl.Set | None = None
        self._all = tuple(formulas)
        self._wants_least = first is not None
        is_waiting = not self._wants_least or bool(self._dimensions.products)
        self._waiting = [f for f in formulas if is_waiting and isinstance(f, Any)]
        self._known = [f for f in formulas if not (is_waiting and isinstance(f, Any))]
        self._points = 0
        self._exact: dict[Formula, isl.Set] = {}
        self._relaxed: dict[Formula, isl.BasicSet | None] = {}

    @property
    def has_products(self) -> bool:
        return bool(self._dimensions.products)

    def everything(self) -> _Points:
        """Where what is known holds, whatever products are."""
        exact = self._dimensions.set_of(self._known)
        return _Points(exact, self._dimensions.relaxed(self._known))

    def values(self, known: _Points) -> dict[Monomial, int] | None:
        """Values within a set at which every product is what it says; None if there are none."""
        while not limited(known.exact.is_empty):
            if not (self._wants_least or self._dimensions.products or self._waiting):
                return {}
            values = self._point(known.exact)
            if next(self._ignored(values), None) is None:
                return values
            # Ever more rarely, as it gets less likely that this decides it.
            if self._factors and self._points & (self._points - 1) == 0:
                repaired = self._repaired(values)
                if repaired is not None:
                    return repaired
                fixed = self._fixed(known, values)
                if fixed is not None:
                    known = fixed
                    continue
            ways: list[_Way] | None = None
            for truth in islice(self._ignored(values), _TRIED):
                left = self._left_by(truth, known)
                if ways is None or len(left) < len(ways):
                    ways = left
                if len(ways) <= 1:
                    break
            assert ways is not None, "something is ignored"
            left_over = self._exactly(known, ways)
            if len(left_over) != 1:
                return self._of_any(left_over)
            [known] = left_over
        return None

    @property
    def fallback(self) -> dict[Monomial, int] | None:
        """Values that were met on the way to the least ones."""
        return self._fallback

    def _repaired(self, values: dict[Monomial, int]) -> dict[Monomial, int] | None:
        """Values where the factors are as at a point, if there are any (and none are smaller)."""
        if not self._wants_least:
            factors = {unknown: values[unknown,] for unknown in self._factors}
            exactly = [at_values(formula, factors) for formula in self._all]
            return {} if is_possible(exactly) else None
        if self._everything is None:
            self._everything = self._dimensions.set_of(self._all)
        multiples = [
            formula
            for unknown in self._factors
            for formula in fixed_at(unknown, values[unknown,], self._dimensions.products)
        ]
        exact = _both(self._everything, self._dimensions.set_of(multiples, in_range=False))
        if limited(exact.is_empty):
            return None
        found = self._point(exact)
        if all(found.get((u,)) == values.get((u,)) for u in self._first):
            return found
        if self._fallback is None or _in_order(found) < _in_order(self._fallback):
            self._fallback = found
        return None

    def _fixed(self, known: _Points, values: dict[Monomial, int]) -> _Points | None:
        """The set with products as multiples, where a factor can only be what it is at a point."""
        for unknown in self._factors:
            at = values[unknown,]
            multiples = fixed_at(unknown, at, self._dimensions.products)
            if all(holds_at(formula, values) for formula in multiples):
                continue
            value = variable(unknown)
            others = self._left_by((less(value, at), at_least(value, at + 1)), known)
            if not self._exactly(known, others):
                exact = self._dimensions.set_of(multiples, in_range=False)
                relaxed = self._dimensions.relaxed(multiples, in_range=False)
                return _Points(_both(known.exact, exact), _relaxed_both(known.relaxed, relaxed))
        return None

    def _ignored(self, values: dict[Monomial, int]) -> Iterator[Truth]:
        """What a point ignores: alternatives that are waiting, and what products are."""
        yield from (f.parts for f in self._waiting if not holds_at(f, values))
        yield from ignored_truths(self._dimensions.products, values)

    def _left_by(self, truth: Truth, known: _Points) -> list[_Way]:
        """The alternatives of a truth that may leave anything of a set."""
        found = []
        for alternative in truth:
            if alternative not in self._relaxed:
                self._relaxed[alternative] = self._dimensions.relaxed([alternative], in_range=False)
            relaxed = _relaxed_both(known.relaxed, self._relaxed[alternative])
            if relaxed is None or not limited(relaxed.is_empty):
                found.append(_Way(alternative, relaxed))
        return found

    def _exactly(self, known: _Points, ways: Sequence[_Way]) -> list[_Points]:
        """What the alternatives leave of a set, where that is anything."""
        found = []
        for way in ways:
            if way.alternative not in self._exact:
                self._exact[way.alternative] = self._dimensions.set_of(
                    [way.alternative], in_range=False
                )
            left = _both(known.exact, self._exact[way.alternative])
            if not limited(left.is_empty, _WHOLE):
                found.append(_Points(left, way.relaxed))
        return found

    def _of_any(self, ways: Sequence[_Points]) -> dict[Monomial, int] | None:
        """Values within one of several sets: the least, if that is asked for."""
        best: dict[Monomial, int] | None = None
        if self._wants_least:
            # The least point is a bound: where it is not below what was found, nothing is.
            bounds = [_in_order(self._point(way.exact)) for way in ways]
            order = sorted(range(len(ways)), key=bounds.__getitem__)
        else:
            bounds, order = [], list(range(len(ways)))
        for number in order:
            if best is not None and _in_order(best) <= bounds[number]:
                break
            values = self.values(ways[number])
            if values is not None and not self._wants_least:
                return values
            if values is not None and (best is None or _in_order(values) < _in_order(best)):
                best = values
        return best

    def _point(self, known: isl.Set) -> dict[Monomial, int]:
        """A point of a set: the least of it, or of a piece of it. Of unions isl may find none."""
        self._points += 1
        if self._wants_least and self._points > _POINTS:
            raise Undecided("too many ways for products to be what they say")
        found = []
        for piece in limited(known.get_basic_sets):
            point = _least_of(piece, self._least)
            if not point.is_void():
                found.append(self._dimensions.values(point))
                if not self._wants_least:
                    break
        return min(found, key=_in_order)


def _search(formulas: Sequence[Formula], first: Sequence[Unknown]) -> dict[Unknown, int] | None:
    if FALSE in formulas:
        return None
    search = _Search(formulas, first)
    try:
        found = search.values(search.everything())
    except Undecided:
        if search.fallback is None:
            raise
        found = search.fallback
    if found is None:
        return None
    return {monomial[0]: value for monomial, value in found.items() if len(monomial) == 1}


def _in_order(values: dict[Monomial, int]) -> list[int]:
    return list(values.values())


def _least_of(piece: isl.BasicSet, count: int) -> isl.Point:
    """A point whose first coordinates are the least there are, one after the other.

    isl's own `lexmin` can take forever where numbers are large.
    """
    points = isl.Set.from_basic_set(piece)
    if limited(points.is_empty):
        return limited(points.sample_point)
    for place in range(count):
        points = _with_least(points, place)
    return limited(points.sample_point)


def _with_least(points: isl.Set, place: int) -> isl.Set:
    return limited(lambda: points.fix_val(_SET, place, points.dim_min_val(place)), _LEAST)


def _relaxed_both(left: isl.BasicSet | None, right: isl.BasicSet | None) -> isl.BasicSet | None:
    if left is None or right is None:
        return None
    return limited(lambda: left.intersect(right))


def _both(left: isl.Set, right: isl.Set) -> isl.Set:
    return limited(lambda: left.intersect(right), 2)
