"""Polynomials with integer coefficients over unknown integers, each within a known interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias


@dataclass(frozen=True, eq=False)
class Unknown:
    """One unknown integer; each is itself only.

    `low` and `high` are what it can be at all, both included. A `uniform` one is the same for all
    programs of a launch. An `opaque` one stands for what the analysis cannot follow: it may be
    any of its numbers, and `about` says what of the program it is. A `twin` is the same of a first
    program, where this is one of a second.
    """

    name: str
    low: int
    high: int
    number: int  # the order in which they are listed
    uniform: bool = True
    opaque: bool = False
    about: object = field(default=None, repr=False)
    twin: Unknown | None = field(default=None, repr=False)

    def __lt__(self, other: Unknown) -> bool:
        return self.number < other.number

    def __hash__(self) -> int:
        """Not by address, so that sets of what has unknowns have one order in every run: what
        proofs cost, and so what they decide, depends on orders."""
        return self.number

    def __str__(self) -> str:
        return self.name


Monomial: TypeAlias = "tuple[Unknown, ...]"  # sorted; the empty one is 1
Interval = tuple[int, int]


@dataclass(frozen=True)
class Polynomial:
    """A sum of monomials, each with a coefficient that is not 0; in the order of the monomials."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Asked for often, of the same."""
        return hash(self.terms)

    @cached_property
    def coefficients(self) -> dict[Monomial, int]:
        return dict(self.terms)

    @cached_property
    def constant(self) -> int:
        """The coefficient of 1."""
        return self.coefficients.get((), 0)

    @property
    def is_constant(self) -> bool:
        return all(not monomial for monomial, _ in self.terms)

    @cached_property
    def monomials(self) -> tuple[Monomial, ...]:
        """The monomials but 1."""
        return tuple(monomial for monomial, _ in self.terms if monomial)

    @cached_property
    def unknowns(self) -> frozenset[Unknown]:
        return frozenset(unknown for monomial, _ in self.terms for unknown in monomial)

    @cached_property
    def interval(self) -> Interval:
        """Numbers that no value of it is below or above."""
        low = high = 0
        for monomial, coefficient in self.terms:
            small, large = _interval(monomial)
            ends = small * coefficient, large * coefficient
            low, high = low + min(ends), high + max(ends)
        return low, high

    def __add__(self, other: Polynomial | int) -> Polynomial:
        if other == 0:
            return self
        return polynomial([*self.terms, *_as_polynomial(other).terms])

    def __neg__(self) -> Polynomial:
        return self.scaled(-1)

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        return polynomial(
            (tuple(sorted((*left, *right))), a * b)
            for left, a in self.terms
            for right, b in _as_polynomial(other).terms
        )

    def scaled(self, factor: int) -> Polynomial:
        return Polynomial(tuple((m, c * factor) for m, c in self.terms)) if factor else Polynomial()

    def at(self, value: Callable[[Unknown], int]) -> int:
        """Its value where each unknown has a value."""
        total = 0
        for monomial, coefficient in self.terms:
            for unknown in monomial:
                coefficient *= value(unknown)
            total += coefficient
        return total

    def renamed(self, names: Mapping[Unknown, Unknown]) -> Polynomial:
        """The same over other unknowns; those that are not in `names` stay."""
        if names.keys().isdisjoint(self.unknowns):
            return self
        return polynomial(
            (tuple(sorted(names.get(u, u) for u in monomial)), c) for monomial, c in self.terms
        )

    def replaced(self, values: Mapping[Unknown, Polynomial]) -> Polynomial:
        """The same with values in the place of some unknowns."""
        total = Polynomial()
        for monomial, coefficient in self.terms:
            term = number(coefficient)
            for unknown in monomial:
                term = term * values.get(unknown, variable(unknown))
            total = total + term
        return total

    def __str__(self) -> str:
        texts = [_text(monomial, coefficient) for monomial, coefficient in self.terms]
        return " + ".join(texts) or "0"


def polynomial(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    """The sum of terms whose monomials may repeat."""
    found: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        found[monomial] = found.get(monomial, 0) + coefficient
    kept = [(m, c) for m, c in found.items() if c]
    return Polynomial(tuple(sorted(kept, key=_order)))


def number(value: int) -> Polynomial:
    """A constant."""
    return Polynomial((((), value),) if value else ())


def variable(unknown: Unknown) -> Polynomial:
    return Polynomial((((unknown,), 1),))


ZERO = number(0)
ONE = number(1)


def _as_polynomial(value: Polynomial | int) -> Polynomial:
    return number(value) if isinstance(value, int) else value


def _order(term: tuple[Monomial, int]) -> tuple[int, list[int]]:
    return len(term[0]), [unknown.number for unknown in term[0]]


def _interval(monomial: Monomial) -> Interval:
    low = high = 1
    for unknown in monomial:
        ends = [x * y for x in (low, high) for y in (unknown.low, unknown.high)]
        low, high = min(ends), max(ends)
    return low, high


def _text(monomial: Monomial, coefficient: int) -> str:
    names = "*".join(map(str, monomial))
    if not names:
        return str(coefficient)
    return names if coefficient == 1 else f"{coefficient}*{names}"
