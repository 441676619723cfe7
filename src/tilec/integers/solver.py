"""Whether formulas can hold together, and the smallest numbers with which they do.

Exact where unknowns are added and multiplied by constants (Presburger arithmetic, by isl). Where
they are multiplied by each other, isl is asked with products as numbers of their own; as long as a
point ignores what products are, that truth is added (`products.py`). An answer is always right;
where the truths added are too many there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from tilec.integers.formula import FALSE, Formula
from tilec.integers.isl_sets import Dimensions, Undecided, limited, one_question
from tilec.integers.polynomial import Monomial, Unknown
from tilec.integers.products import violated

__all__ = ["Undecided", "can_hold", "smallest"]

# How many truths about products one question may need.
_TRUTHS = 40


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


def _search(
    formulas: Sequence[Formula], first: Sequence[Unknown] | None
) -> dict[Unknown, int] | None:
    if FALSE in formulas:
        return None
    dimensions = Dimensions(formulas, first or ())
    known = dimensions.set_of(formulas)
    for _ in range(_TRUTHS):
        if limited(known.is_empty):
            return None
        if first is None and not dimensions.products:
            return {}
        values = _least_point(known, dimensions)
        truth = violated(dimensions.products, values)
        if truth is None:
            return {unknown: values[unknown,] for unknown in dimensions.unknowns}
        known = _both(known, dimensions.set_of([truth]))
    raise Undecided("too many products")


def _least_point(points: isl.Set, dimensions: Dimensions) -> dict[Monomial, int]:
    """The least point of a set, by its pieces: of unions isl sometimes finds none."""
    pieces = limited(points.get_basic_sets)
    points = (_least_of_piece(piece) for piece in pieces)
    found = [dimensions.values(point) for point in points if not point.is_void()]
    return min(found, key=lambda values: list(values.values()))


def _least_of_piece(piece: isl.BasicSet) -> isl.Point:
    return limited(lambda: piece.lexmin().sample_point())


def _both(left: isl.Set, right: isl.Set) -> isl.Set:
    return limited(lambda: left.intersect(right))
