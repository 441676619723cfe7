"""Integers by cases: polynomials, each where its conditions hold.

`x / n` is 0 where n is 0: a case that goes away by itself where the other one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from tilec.integers.formula import FALSE, TRUE, All, Formula, both, either, negated
from tilec.integers.polynomial import Polynomial, Unknown, number


@dataclass(frozen=True)
class Case:
    """A value, where all of `when` holds."""

    when: tuple[Formula, ...]
    value: Polynomial

    @property
    def condition(self) -> Formula:
        return both(*self.when)


@dataclass(frozen=True)
class Number:
    """Cases of which exactly one holds."""

    cases: tuple[Case, ...]

    @property
    def only(self) -> Polynomial | None:
        """The value, if there is one case."""
        return self.cases[0].value if len(self.cases) == 1 else None

    @property
    def known(self) -> int | None:
        """The number, if it is a constant."""
        value = self.only
        return value.constant if value is not None and value.is_constant else None

    @property
    def unknowns(self) -> frozenset[Unknown]:
        found = frozenset[Unknown]().union(*(case.value.unknowns for case in self.cases))
        return found.union(*(f.unknowns for case in self.cases for f in case.when))

    @property
    def interval(self) -> tuple[int, int]:
        ends = [case.value.interval for case in self.cases]
        return min(low for low, _ in ends), max(high for _, high in ends)


def always(value: Polynomial | int) -> Number:
    """A value without cases."""
    return Number((Case((), number(value) if isinstance(value, int) else value),))


def combined(function: Callable[..., Polynomial], *numbers: Number) -> Number:
    """A function of the values, in every combination of cases that can be."""
    found: list[Case] = []
    for cases in product(*(n.cases for n in numbers)):
        when = together(*(case.when for case in cases))
        if when is not None:
            found.append(Case(when, function(*(case.value for case in cases))))
    return Number(tuple(_merged(found)))


def by_cases(function: Callable[..., Number], *numbers: Number) -> Number:
    """As `combined`, of a function that has cases of its own."""
    found: list[Case] = []
    for cases in product(*(n.cases for n in numbers)):
        when = together(*(case.when for case in cases))
        if when is None:
            continue
        for inner in function(*(case.value for case in cases)).cases:
            both_hold = together(when, inner.when)
            if both_hold is not None:
                found.append(Case(both_hold, inner.value))
    return Number(tuple(_merged(found)))


def chosen(condition: Formula, yes: Number, no: Number) -> Number:
    """`yes` where the condition holds, else `no`."""
    if condition == TRUE or yes == no:
        return yes
    if condition == FALSE:
        return no
    found: list[Case] = []
    for side, formula in ((yes, condition), (no, negated(condition))):
        parts = formula.parts if isinstance(formula, All) else (formula,)
        for case in side.cases:
            when = together(case.when, parts)
            if when is not None:
                found.append(Case(when, case.value))
    return Number(tuple(_merged(found)))


def compared(relation: Callable[..., Formula], *numbers: Number) -> Formula:
    """Whether the relation holds of the values."""
    found = []
    for cases in product(*(n.cases for n in numbers)):
        when = together(*(case.when for case in cases))
        if when is not None:
            found.append(both(*when, relation(*(case.value for case in cases))))
    return either(*found)


def together(*conditions: tuple[Formula, ...]) -> tuple[Formula, ...] | None:
    """All conditions; None if two of them are each other's opposite."""
    found = dict.fromkeys(formula for condition in conditions for formula in condition)
    if FALSE in found or any(negated(formula) in found for formula in found):
        return None
    return tuple(found)


def _merged(cases: list[Case]) -> list[Case]:
    """Cases of one value whose conditions are opposites are one."""
    if len({case.value for case in cases}) == 1 and len(cases) > 1:
        return [Case((), cases[0].value)]
    return cases
