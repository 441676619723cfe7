"""Values at which formulas hold, by trial: quick where there are many.

Unknowns get values in the order of their making, so that what is defined comes after what it is
defined by: a quotient or a remainder then has one value left. Each formula narrows the last of its
unknowns. Trials differ in what they take where several values are left: ends, small numbers, powers
of two, numbers between. Products are what they are. Little is searched: a trial that leaves no
value goes back a few times, and is given up then. So this never says that there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random

from tilec.integers.budget import spend
from tilec.integers.formula import All, Any, Formula, IsZero, NotNegative, holds
from tilec.integers.polynomial import Polynomial, Unknown

Ranges = list[tuple[int, int]]  # from a number to one, both included; in order

# Trials from this number on take small numbers only: where two programs meet, few of them do.
SMALL_FROM = 24
# The first trials take one end each, and nothing else.
_PLAIN = 4
# How often a trial goes back.
_BACK = 12

# More ranges than this are not told apart.
_RANGES = 16


@dataclass
class _Choice:
    """An unknown of several values, by its place, and how many more are tried."""

    place: int
    ranges: Ranges
    again: int = 4


def guessed(formulas: Sequence[Formula], trials: range) -> dict[Unknown, int] | None:
    """Values of all unknowns with which every formula holds; None if no trial finds any."""
    unknowns = sorted(frozenset[Unknown]().union(*(f.unknowns for f in formulas)))
    narrowing: dict[Unknown, list[Formula]] = {unknown: [] for unknown in unknowns}
    for formula in formulas:
        if formula.unknowns:
            narrowing[max(formula.unknowns)].append(formula)
        elif not holds(formula, {}):
            return None
    for trial in trials:
        values = _tried(unknowns, narrowing, trial)
        if values is not None and all(holds(formula, values) for formula in formulas):
            return values
    return None


def _tried(
    unknowns: Sequence[Unknown], narrowing: dict[Unknown, list[Formula]], trial: int
) -> dict[Unknown, int] | None:
    values: dict[Unknown, int] = {}
    random = Random(trial)
    choices: list[_Choice] = []
    place, left = 0, _BACK
    while place < len(unknowns):
        unknown = unknowns[place]
        ranges = [(unknown.low, unknown.high)]
        for formula in narrowing[unknown]:
            ranges = _narrowed(ranges, formula, unknown, values)
            if not ranges:
                break
        if ranges:
            if ranges[0][0] < ranges[-1][1]:
                choices.append(_Choice(place, ranges))
        else:
            while choices and choices[-1].again == 0:
                choices.pop()
            if not choices or trial < _PLAIN or left == 0:
                return None
            # Another number for the last unknown that had several.
            left -= 1
            choices[-1].again -= 1
            place, ranges = choices[-1].place, choices[-1].ranges
        values[unknowns[place]] = _taken(ranges, trial, random)
        place += 1
    return values


def _taken(ranges: Ranges, trial: int, random: Random) -> int:
    """A number of the ranges, by the trial's number."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return ranges[0][0]
    if trial >= SMALL_FROM:
        return _nearest(ranges, random.randrange(2 + trial % 8))
    if trial < _PLAIN:
        plain = _nearest(ranges, 0), _nearest(ranges, 1), ranges[-1][1], ranges[0][0]
        return plain[trial]
    way = random.randrange(8)
    if way == 0:
        return ranges[-1][1]
    if way == 1:
        return ranges[0][0]
    low, high = ranges[random.randrange(len(ranges))]
    if way == 2:
        return random.randint(low, high)
    wanted = 1 << random.randrange(max(1, min(62, max(abs(low), abs(high)).bit_length())))
    if way == 3:
        return _nearest(ranges, -wanted)
    return _nearest(ranges, wanted if way < 6 else random.randrange(wanted + 1))


def _nearest(ranges: Ranges, wanted: int) -> int:
    inside = (min(max(wanted, low), high) for low, high in ranges)
    return min(inside, key=lambda value: (abs(value - wanted), value))


def _narrowed(
    ranges: Ranges, formula: Formula, unknown: Unknown, values: dict[Unknown, int]
) -> Ranges:
    """Where a formula holds within the ranges of its last unknown, or may."""
    spend(1)
    match formula:
        case NotNegative(value):
            return _where(ranges, value, unknown, values, is_zero=False)
        case IsZero(value):
            return _where(ranges, value, unknown, values, is_zero=True)
        case All(parts):
            for part in parts:
                ranges = _narrowed(ranges, part, unknown, values)
            return ranges
        case Any(parts):
            alternatives = (_narrowed(ranges, part, unknown, values) for part in parts)
            return _united(chain.from_iterable(alternatives))


def _where(
    ranges: Ranges,
    value: Polynomial,
    unknown: Unknown,
    values: dict[Unknown, int],
    *,
    is_zero: bool,
) -> Ranges:
    rest = slope = 0
    spend(1 + len(value.terms) // 2)
    for monomial, coefficient in value.terms:
        degree = 0
        for factor in monomial:
            if factor is unknown:
                degree += 1
            else:
                coefficient *= values[factor]
        if degree > 1 and coefficient:
            return ranges  # whether it holds is asked in the end
        if degree:
            slope += coefficient
        else:
            rest += coefficient
    if slope == 0:
        return ranges if (rest == 0 if is_zero else rest >= 0) else []
    if is_zero:
        at, left = divmod(-rest, slope)
        return [] if left else _cut(ranges, at, at)
    if slope > 0:
        return _cut(ranges, -(rest // slope), None)
    return _cut(ranges, None, rest // -slope)


def _cut(ranges: Ranges, least: int | None, most: int | None) -> Ranges:
    found = []
    for low, high in ranges:
        low = low if least is None else max(low, least)
        high = high if most is None else min(high, most)
        if low <= high:
            found.append((low, high))
    return found


def _united(ranges: Iterator[tuple[int, int]]) -> Ranges:
    """The ranges in order, without overlap, and not too many of them."""
    found: Ranges = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return found[: _RANGES // 2] + found[-_RANGES // 2 :] if len(found) > _RANGES else found
