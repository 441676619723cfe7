"""Whether formulas can hold together, and the smallest numbers with which they do.

Exact where unknowns are added and multiplied by constants (Presburger arithmetic, by isl). Where
they are multiplied by each other, isl is asked with products as numbers of their own; as long as a
point ignores what products are, that truth is added (`products.py`). An answer is always right;
where the truths added are too many there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import islpy as isl

from tilec.integers.formula import FALSE, Any, Formula
from tilec.integers.isl_sets import Dimensions, Undecided, limited, one_question
from tilec.integers.polynomial import Monomial, Unknown
from tilec.integers.products import Truth, holds_at, ignored_truths

__all__ = ["Undecided", "can_hold", "smallest"]

# How many points one question may look at, and how many truths that a point ignores are tried
# before one is split on.
_POINTS = 150
_TRIED = 12


def can_hold(formulas: Sequence[Formula]) -> bool:
    """Whether all formulas can hold together. Raises Undecided."""
    with one_question():
        return _search(formulas, first=None) is not None


def smallest(formulas: Sequence[Formula], first: Sequence[Unknown]) -> dict[Unknown, int] | None:
    """The lexicographically least values with which all formulas hold, `first` first; None if none.

    Raises:   Undecided
    """
    with one_question():
        return _search(formulas, first=first)


class _Search:
    """One question: sets of points, split where there are several ways on.

    Where products take part, alternatives (`Any`) are looked at when a point ignores them: most
    are decided by the rest.
    """

    def __init__(self, formulas: Sequence[Formula], first: Sequence[Unknown] | None) -> None:
        self._dimensions = Dimensions(formulas, first or ())
        is_waiting = bool(self._dimensions.products)
        self._waiting = [f for f in formulas if is_waiting and isinstance(f, Any)]
        self._known = [f for f in formulas if not (is_waiting and isinstance(f, Any))]
        self._wants_least = first is not None
        self._points = 0
        self._alternatives: dict[Formula, isl.Set] = {}

    def everything(self) -> isl.Set:
        """Where what is known holds, whatever products are."""
        return self._dimensions.set_of(self._known)

    def values(self, known: isl.Set) -> dict[Monomial, int] | None:
        """Values within a set at which every product is what it says; None if there are none."""
        while not limited(known.is_empty):
            if not self._wants_least and not self._dimensions.products:
                return {}
            values = self._point(known)
            ways: list[isl.Set] | None = None
            for truth in islice(self._ignored(values), _TRIED):
                left = self._left_by(truth, known)
                if ways is None or len(left) < len(ways):
                    ways = left
                if len(ways) <= 1:
                    break
            if ways is None:
                return values
            if len(ways) != 1:
                return self._of_any(ways)
            [known] = ways
        return None

    def _ignored(self, values: dict[Monomial, int]) -> Iterator[Truth]:
        """What a point ignores: alternatives that are waiting, and what products are."""
        yield from (f.parts for f in self._waiting if not holds_at(f, values))
        yield from ignored_truths(self._dimensions.products, values)

    def _left_by(self, truth: Truth, known: isl.Set) -> list[isl.Set]:
        """What the alternatives of a truth leave of a set, where that is anything."""
        found = []
        for alternative in truth:
            if alternative not in self._alternatives:
                self._alternatives[alternative] = self._dimensions.set_of(
                    [alternative], in_range=False
                )
            left = _both(known, self._alternatives[alternative])
            if not limited(left.is_empty):
                found.append(left)
        return found

    def _of_any(self, ways: Sequence[isl.Set]) -> dict[Monomial, int] | None:
        """Values within one of several sets: the least, if that is asked for."""
        found = []
        for way in ways:
            values = self.values(way)
            if values is not None and not self._wants_least:
                return values
            if values is not None:
                found.append(values)
        return min(found, key=_in_order) if found else None

    def _point(self, known: isl.Set) -> dict[Monomial, int]:
        """A point of a set: the least of it, or of a piece of it. Of unions isl may find none."""
        self._points += 1
        if self._points > _POINTS:
            raise Undecided("too many ways for products to be what they say")
        found = []
        for piece in limited(known.get_basic_sets):
            point = _least_of(piece)
            if not point.is_void():
                found.append(self._dimensions.values(point))
                if not self._wants_least:
                    break
        return min(found, key=_in_order)


def _search(
    formulas: Sequence[Formula], first: Sequence[Unknown] | None
) -> dict[Unknown, int] | None:
    if FALSE in formulas:
        return None
    search = _Search(formulas, first)
    found = search.values(search.everything())
    if found is None:
        return None
    return {monomial[0]: value for monomial, value in found.items() if len(monomial) == 1}


def _in_order(values: dict[Monomial, int]) -> list[int]:
    return list(values.values())


def _least_of(piece: isl.BasicSet) -> isl.Point:
    return limited(lambda: piece.lexmin().sample_point())


def _both(left: isl.Set, right: isl.Set) -> isl.Set:
    return limited(lambda: left.intersect(right))
