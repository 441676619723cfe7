"""Answers to questions that were asked before, of the same formulas over other unknowns.

Instances of a kernel that differ in types alone, and accesses that are alike, ask the same. An
answer takes the steps that it took when it was found, and is of questions that may take as many, so
that what is decided within a budget does not depend on what was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import count

from tilec.integers import budget
from tilec.integers.budget import Undecided
from tilec.integers.formula import Any, Formula, IsZero, NotNegative
from tilec.integers.polynomial import Polynomial, Unknown

# More answers than this are not kept.
_KEPT = 20_000

_answers: dict[Hashable, tuple[bool, int]] = {}
_undecided: set[Hashable] = set()
_shapes: dict[Hashable, int] = {}  # those of formulas, numbered
# Never begun anew: answers come after others were forgotten, by the numbers of before.
_numbers = count()


def remembered(answer: Callable[[Sequence[Formula]], bool], formulas: Sequence[Formula]) -> bool:
    """What a function answers; it must depend on the formulas alone. Raises Undecided."""
    key = budget.steps_left(), _key(formulas)
    if key in _answers:
        found, steps = _answers[key]
        budget.spend(steps)
        return found
    if key in _undecided:
        budget.exhaust()
        raise Undecided("it was asked before, with as many steps")
    before = budget.steps_taken()
    try:
        found = answer(formulas)
    except Undecided:
        _undecided.add(key)
        raise
    if len(_answers) + len(_undecided) >= _KEPT:
        forget()
    _answers[key] = found, budget.steps_taken() - before
    return found


def forget() -> None:
    """Drop every answer."""
    _answers.clear()
    _undecided.clear()
    _shapes.clear()
    _shape_of.cache_clear()


def _key(formulas: Sequence[Formula]) -> Hashable:
    """The formulas with unknowns by their order, and what these can be."""
    unknowns = sorted(frozenset[Unknown]().union(*(f.unknowns for f in formulas)))
    places = {unknown: place for place, unknown in enumerate(unknowns)}
    twins = (None if u.twin is None else places.get(u.twin) for u in unknowns)
    ranges = tuple((u.low, u.high, u.uniform, t) for u, t in zip(unknowns, twins, strict=True))
    shapes = map(_shape_of, formulas)
    return ranges, tuple((shape, *map(places.__getitem__, own)) for shape, own in shapes)


@lru_cache(_KEPT)
def _shape_of(formula: Formula) -> tuple[int, tuple[Unknown, ...]]:
    """A number for what a formula is but for its unknowns, and these in order.

    Questions share most of their formulas.
    """
    own = tuple(sorted(formula.unknowns))
    places = {unknown: place for place, unknown in enumerate(own)}
    shape = _shape(formula, places)
    if shape not in _shapes:
        _shapes[shape] = next(_numbers)
    return _shapes[shape], own


def _shape(formula: Formula, places: Mapping[Unknown, int]) -> Hashable:
    if isinstance(formula, NotNegative):
        return 0, _terms(formula.polynomial, places)
    if isinstance(formula, IsZero):
        return 1, _terms(formula.polynomial, places)
    parts = map(_shape_of, formula.parts)
    kind = 2 if isinstance(formula, Any) else 3
    return kind, tuple((shape, *map(places.__getitem__, own)) for shape, own in parts)


def _terms(value: Polynomial, places: Mapping[Unknown, int]) -> Hashable:
    return tuple((tuple(places[u] for u in monomial), c) for monomial, c in value.terms)
