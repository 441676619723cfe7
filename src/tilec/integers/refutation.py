"""Whether formulas with products of unknowns contradict each other, by multiplying inequalities.

isl decides what is linear; to it a product is a number of its own. What ties products to their
factors is found here:

- *ranges* of monomials, by bounds propagation (`ranges.py`);
- *equal unknowns*: an equality that follows from what is linear is substituted, so that products
  of equal factors become one (`j * n = k * m` once `j = k` and `n = m`);
- *multiplied inequalities*: of `a >= 0` and `b >= 0` follows `a * b >= 0`, which is linear in
  products. One is added where a point does not fulfil it (the reformulation-linearisation
  technique, Sherali and Adams 1990; degree two of Handelman's theorem);
- last, a case distinction: alternatives of a formula, or the order of two factors (`products.py`).

Each step is a consequence of the formulas, so a contradiction is one. A point at which every
product is what it says is an answer as well. Everything is bounded, so there may be none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, islice

import islpy as isl

from tilec.integers.budget import spend
from tilec.integers.formula import (
    All,
    Any,
    Formula,
    IsZero,
    NotNegative,
    at_least,
    equal,
    mapped,
    polynomials,
)
from tilec.integers.isl_sets import Dimensions, Undecided, limited, one_question
from tilec.integers.polynomial import (
    ZERO,
    Monomial,
    Polynomial,
    Unknown,
    number,
    polynomial,
    variable,
)
from tilec.integers.products import Truth, holds_at, ignored_truths
from tilec.integers.ranges import Ranges, ranges_of

# How many case distinctions one question may take, and how many inequalities each may multiply.
_CASES = 60
_CUTS = 24
_CUTS_AT_ONCE = 6
# Inequalities of more terms are not multiplied.
_TERMS = 6
# How many cases in one another are those of a point's own numbers: what these do not decide, more
# of them seldom do.
_GUESSES = 4
# How many cases may be in one another at all: contradictions are found within fewer, or not.
_DEPTH = 6
# The steps that it takes to look at a comparison once, and to multiply two terms.
_COMPARISON = 8
_TERM = 2

# Points and hulls take basis reductions, of which isl counts little.
_POINT = 3
_HULL = 6
# They take longest where numbers are wider than words: by how many bits as long again.
_WIDE = 2**64
_WIDE_FACTOR = 2**32
_BITS = 128

# Of so many formulas is kept whether they have products.
_KEPT = 20_000

_SET = isl.dim_type.set


@dataclass(frozen=True)
class _State:
    """Comparisons that hold, alternatives that wait; `cuts` are products of comparisons."""

    zero: tuple[Polynomial, ...] = ()
    not_negative: tuple[Polynomial, ...] = ()
    waiting: tuple[Any, ...] = ()
    cuts: tuple[Polynomial, ...] = ()
    guesses: int = 0  # how many distinctions were by the numbers of some point
    depth: int = 1  # how many cases this is in

    @property
    def monomials(self) -> set[Monomial]:
        known = {m for p in (*self.zero, *self.not_negative, *self.cuts) for m in p.monomials}
        return known | {m for f in self.waiting for p in polynomials(f) for m in p.monomials}


_EMPTY = _State()


def has_products(formulas: Sequence[Formula]) -> bool:
    return any(map(_has_products, formulas))


@lru_cache(_KEPT)
def _has_products(formula: Formula) -> bool:
    return any(len(m) > 1 for p in polynomials(formula) for m in p.monomials)


def contradict(formulas: Sequence[Formula]) -> bool | None:
    """Whether formulas cannot hold together: True, False, or None if that was not found out."""
    state = _with(_State(), formulas)
    if state is None:
        return True
    try:
        with one_question():
            return _Search().contradicts(state)
    except Undecided:
        return None


class _Search:
    def __init__(self) -> None:
        self._cases = 0
        self._multiplied: dict[tuple[Polynomial, Polynomial], Polynomial] = {}

    def contradicts(self, state: _State) -> bool | None:
        self._cases += 1
        if self._cases > _CASES:
            return None
        for _ in range(_CUTS):
            simple = _simplified(state)
            if simple is None:
                return True
            state, ranges = simple
            multiples = _multiples(state, ranges)
            if multiples:
                state = replace(state, zero=(*state.zero, *multiples))
                continue
            within = list(_in_ranges(ranges))
            dimensions = Dimensions([*_formulas(state), *within], ())
            linear = [*_formulas(state, waiting=False), *within]
            points = dimensions.set_of(linear, in_range=False)
            width = _width(linear)
            if limited(points.is_empty, _POINT * width):
                return True
            values = dimensions.values(limited(points.sample_point))
            cuts = list(islice(self._cuts(state, ranges, values), _CUTS_AT_ONCE))
            if cuts:
                state = replace(state, cuts=(*state.cuts, *cuts))
                continue
            found = _implied(points, dimensions, state, _HULL * width)
            if found is None:
                return self._by_cases(state, dimensions, values)
            state = found
        return None

    def _by_cases(
        self, state: _State, dimensions: Dimensions, values: Mapping[Monomial, int]
    ) -> bool | None:
        truth = next(_open_truths(state, dimensions, values), None)
        if truth is None:
            truth = next(ignored_truths(dimensions.products, values), None)
            if truth is None:
                return False  # the point fulfils everything
            if state.guesses == _GUESSES:
                return None
            state = replace(state, guesses=state.guesses + 1)
        if state.depth == _DEPTH:
            return None
        ways = _ways(replace(state, depth=state.depth + 1), truth)
        for way in ways:
            found = self.contradicts(way)
            if found is not True:
                return found
        return True

    def _cuts(
        self, state: _State, ranges: Ranges, values: Mapping[Monomial, int]
    ) -> Iterator[Polynomial]:
        """Products of inequalities that a point does not fulfil, over monomials that there are."""
        linear = _multipliers(state, ranges)
        spend(len(linear) ** 2 // 4)
        for left, right in combinations_with_replacement(linear, 2):
            # The largest monomial of a product is that of the largest ones.
            if tuple(sorted((*left.terms[-1][0], *right.terms[-1][0]))) not in values:
                continue
            found = self._product(left, right)
            if _is_violated(found, values):
                yield found
        long = [m for m in values if len(m) > 1 and ranges.of(m)[0] >= 0]
        for monomial in long:
            for left in linear:
                found = self._product(Polynomial(((monomial, 1),)), left)
                if _is_violated(found, values):
                    yield found

    def _product(self, left: Polynomial, right: Polynomial) -> Polynomial:
        key = left, right
        if key not in self._multiplied:
            spend(_TERM * len(left.terms) * len(right.terms))
            self._multiplied[key] = left * right
        return self._multiplied[key]


def _open_truths(
    state: _State, dimensions: Dimensions, values: Mapping[Monomial, int]
) -> Iterator[Truth]:
    """What a point ignores: the order of factors, then alternatives."""
    if next(ignored_truths(dimensions.products, values), None) is not None:
        yield from _orders(state, dimensions.products)
    yield from (f.parts for f in state.waiting if not holds_at(f, values))


def _orders(state: _State, products: Sequence[Monomial]) -> Iterator[Truth]:
    """That `x < y`, `x = y` or `x > y`, of twins with a common factor, if that is not known.

    The longest factor first: in a number of several digits these are of its leading ones.
    """
    found = [(x, y, len(a)) for a, b in combinations(products, 2) for x, y in _differing(a, b)]
    found.sort(key=lambda pair: -pair[2])
    known = set(state.not_negative)
    for x, y, _ in found:
        difference = variable(x) - variable(y)
        if known.isdisjoint((difference - 1, -difference - 1)):
            yield (equal(difference, 0), at_least(difference, 1), at_least(-difference, 1))


def _differing(left: Monomial, right: Monomial) -> Iterator[tuple[Unknown, Unknown]]:
    """The one factor of each that the other has not, if they are twins."""
    if len(left) != len(right):
        return
    first, second = list(left), list(right)
    for unknown in left:
        if unknown in second:
            first.remove(unknown)
            second.remove(unknown)
    if len(first) == 1 and (first[0] is second[0].twin or second[0] is first[0].twin):
        yield first[0], second[0]


def _is_violated(value: Polynomial, values: Mapping[Monomial, int]) -> bool:
    total = 0
    spend(len(value.terms))
    for monomial, coefficient in value.terms:
        if monomial:
            at = values.get(monomial)
            if at is None:
                return False
            coefficient *= at
        total += coefficient
    return total < 0


def _multipliers(state: _State, ranges: Ranges) -> list[Polynomial]:
    """Linear inequalities that are worth multiplying, also of what sums are defined by."""
    found = {p: None for p in state.not_negative if _is_short(p)}
    for value in filter(_is_short, state.zero):
        monomial, coefficient = value.terms[-1]
        if abs(coefficient) == 1 and len(monomial) == 1:
            by = value.scaled(-coefficient) + variable(monomial[0])
            found |= {
                replaced: None for p in found if _is_short(replaced := _at(p, monomial[0], by))
            }
    for monomial, (low, _) in ranges.items():
        if len(monomial) == 1:
            found[Polynomial(((monomial, 1),)) - low] = None
    return [p for p in found if p.monomials]


def _multiples(state: _State, ranges: Ranges) -> list[Polynomial]:
    """What an unknown that stands for a sum is, times an unknown that each of its terms is a factor
    with: of `s = n - g`, and `n * k` and `g * k`, that `s * k = n * k - g * k`."""
    known = {m for m, _ in ranges.items()}
    found: dict[Polynomial, None] = {}
    for value in state.zero:
        terms = [m for m in value.monomials if len(m) == 1]
        if len(terms) < len(value.monomials) or not 3 <= len(terms) <= _TERMS:
            continue
        others = [{_without(m, term[0]) for m in known if len(m) == 2} for term in terms[:-1]]
        for unknown in sorted(u for u in set.intersection(*others) if u is not None):
            found[value * variable(unknown)] = None
    return [value for value in found if value not in state.zero]


def _without(product: Monomial, factor: Unknown) -> Unknown | None:
    """The other factor of a product of two."""
    if factor not in product:
        return None
    return product[1] if product[0] is factor else product[0]


def _is_short(value: Polynomial) -> bool:
    return len(value.terms) <= _TERMS and all(len(m) <= 1 for m in value.monomials)


# ---- states --------------------------------------------------------------------------------------


def _with(state: _State, formulas: Sequence[Formula]) -> _State | None:
    """The state with further formulas; None if one of them never holds."""
    zero, not_negative = dict.fromkeys(state.zero), dict.fromkeys(state.not_negative)
    alternatives = dict.fromkeys(state.waiting)
    waiting = list(reversed(formulas))
    while waiting:
        match waiting.pop():
            case NotNegative(value):
                not_negative[value] = None
            case IsZero(value) if value != ZERO:
                zero[value] = None
            case All(parts):
                waiting += reversed(parts)
            case Any(parts) as formula:
                if not parts:
                    return None
                alternatives[formula] = None
    return replace(
        state,
        zero=tuple(zero),
        not_negative=tuple(not_negative),
        waiting=tuple(alternatives),
    )


def _formulas(state: _State, *, waiting: bool = True) -> list[Formula]:
    return [
        *map(IsZero, state.zero),
        *map(NotNegative, state.not_negative),
        *map(NotNegative, state.cuts),
        *(state.waiting if waiting else ()),
    ]


def _in_ranges(ranges: Ranges) -> Iterator[Formula]:
    for monomial, (low, high) in ranges.items():
        value = Polynomial(((monomial, 1),))
        yield NotNegative(value - low)
        yield NotNegative(number(high) - value)


def _ways(state: _State, truth: Truth) -> list[_State]:
    """What the alternatives of a truth make of a state, where that is anything."""
    found = []
    for alternative in truth:
        changed = _with(state, [alternative])
        simple = None if changed is None else _simplified(changed)
        if simple is not None:
            found.append(simple[0])
    return found


def _simplified(state: _State) -> tuple[_State, Ranges] | None:
    """The state with equal unknowns replaced and alternatives decided; None if nothing is left."""
    while True:
        spend(_COMPARISON * (len(state.zero) + len(state.not_negative) + len(state.cuts)))
        changed = _substituted(state, state.zero)
        if changed is None:
            return None
        if changed is not state:
            state = changed
            continue
        ranges = ranges_of(state.zero, (*state.not_negative, *state.cuts), _all_monomials(state))
        if ranges.is_empty:
            return None
        decided = _decided(state, ranges)
        if decided is None:
            return None
        if decided is state:
            return state, ranges
        state = decided


def _decided(state: _State, ranges: Ranges) -> _State | None:
    """The state without alternatives that ranges exclude."""
    kept: list[Any] = []
    units: list[Formula] = []
    for formula in state.waiting:
        if ranges.holds(formula):
            continue
        parts = tuple(part for part in formula.parts if ranges.can_hold(part))
        if len(parts) == 1:
            units.append(parts[0])
        else:
            kept.append(Any(parts))
        if not parts:
            return None
    if tuple(kept) == state.waiting:
        return state
    return _with(replace(state, waiting=tuple(kept)), units)


def _implied(points: isl.Set, dimensions: Dimensions, state: _State, price: int) -> _State | None:
    """The state with unknowns replaced that are equal to others at all points, if any are.

    Those that are equal also between whole points are found by a simplex; `price` is what an
    operation takes that looks for the others.
    """
    [piece] = points.get_basic_sets()
    piece = limited(piece.remove_redundancies)
    changed = _equal_within(piece, dimensions, state)
    if changed is state:
        changed = _equal_within(limited(piece.affine_hull, price), dimensions, state)
    return None if changed is state else changed


def _equal_within(piece: isl.BasicSet, dimensions: Dimensions, state: _State) -> _State | None:
    """The state with an unknown replaced that a piece says is equal to others, if there is one."""
    found = [_polynomial_of(c, dimensions) for c in piece.get_constraints() if c.is_equality()]
    return _substituted(state, found)


def _width(formulas: Iterable[Formula]) -> int:
    """How much more isl's operations take where numbers are wide, which it does not count.

    Basis reductions are what takes it, of the numbers beside unknowns.
    """
    numbers = [term for f in formulas for p in polynomials(f) for term in p.terms]
    if all(abs(number) < (_WIDE_FACTOR if monomial else _WIDE) for monomial, number in numbers):
        return 1
    wide = sum(number.bit_length() for monomial, number in numbers if monomial) // _BITS
    return 1 + wide + wide**2 // 24


def _polynomial_of(constraint: isl.Constraint, dimensions: Dimensions) -> Polynomial:
    terms: list[tuple[Monomial, int]] = [((), _number(constraint.get_constant_val()))]
    for place, monomial in enumerate(dimensions.monomials):
        terms.append((monomial, _number(constraint.get_coefficient_val(_SET, place))))
    return polynomial(terms)


def _number(value: isl.Val) -> int:
    found = value.to_python()
    if found is None:
        raise Undecided
    return int(found)


def _substituted(state: _State, equalities: Sequence[Polynomial]) -> _State | None:
    """The state with an unknown replaced, where an equality says what it is."""
    if not equalities:
        return state
    monomials = state.monomials
    spend(len(monomials))
    in_products = {u for m in monomials if len(m) > 1 for u in m}
    occurring = {u for m in monomials for u in m}
    for value in equalities:
        found = _solved(value, occurring, in_products)
        if found is not None:
            return _replaced(state, *found)
    return state


def _solved(
    value: Polynomial, occurring: Set[Unknown], in_products: Set[Unknown]
) -> tuple[Unknown, Polynomial] | None:
    """An unknown, and what it is by a polynomial that is 0; the one that was made last.

    In products it is only replaced by what has one term and a constant, so that they stay few.
    """
    if any(len(m) > 1 for m in value.monomials):
        return None
    for monomial, coefficient in reversed(value.terms):
        if len(monomial) != 1 or abs(coefficient) != 1 or monomial[0] not in occurring:
            continue
        [unknown] = monomial
        if unknown not in in_products or len(value.monomials) <= 2:
            return unknown, value.scaled(-coefficient) + variable(unknown)
    return None


def _replaced(state: _State, unknown: Unknown, by: Polynomial) -> _State | None:
    def change(value: Polynomial) -> Polynomial:
        return _at(value, unknown, by)

    formulas = _formulas(replace(state, cuts=()))
    kept = [mapped(f, change) if unknown in f.unknowns else f for f in formulas]
    kept += [at_least(by, unknown.low), at_least(number(unknown.high), by)]
    cuts = tuple(dict.fromkeys(map(change, state.cuts)))
    return _with(replace(_EMPTY, cuts=cuts, guesses=state.guesses, depth=state.depth), kept)


def _at(value: Polynomial, unknown: Unknown, by: Polynomial) -> Polynomial:
    """A polynomial with another in the place of an unknown."""
    if unknown not in value.unknowns:
        return value
    spend(_TERM * len(value.terms))
    found = ZERO
    for monomial, coefficient in value.terms:
        term = number(coefficient)
        for factor in monomial:
            term = term * (by if factor is unknown else variable(factor))
        found = found + term
    return found


def _all_monomials(state: _State) -> set[Monomial]:
    """Those that occur, their parts, and `x * y` where there are `x * x` and `y * y`."""
    found = set(Dimensions(_formulas(state), ()).monomials)
    squared = sorted(m[0] for m in found if len(m) == 2 and m[0] is m[1])
    return found | set(combinations(squared, 2))
