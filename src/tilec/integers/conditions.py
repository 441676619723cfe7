"""For which values of some unknowns formulas cannot hold, as a condition that is easy to evaluate.

That is quantifier elimination: the formulas as a set, all other dimensions projected out, and the
complement. Products take part as numbers of their own, so that the condition may be too strict,
never too lax.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from tilec.integers.formula import FALSE, Formula, NotNegative, at_least, both, negated
from tilec.integers.isl_sets import Dimensions, limited, one_question, value_of
from tilec.integers.polynomial import Polynomial, Unknown, number, variable
from tilec.integers.satisfiable import can_hold

_SET, _DIV, _IN = isl.dim_type.set, isl.dim_type.div, isl.dim_type.in_

# A condition with more alternatives than this is none that anybody would read.
_ALTERNATIVES = 3
# Nor one with larger numbers.
_LARGEST = 2**53
# The range of an unknown of which the ends are nothing that anybody means.
_LARGE = 2**31


@dataclass(frozen=True)
class Linear:
    """A sum of multiples of unknowns and of floored quotients, and a constant."""

    terms: tuple[tuple[int, Unknown | Floor], ...]
    constant: int

    @property
    def low(self) -> int:
        """A number that it is never below."""
        return self.constant + sum(min(c * t.low, c * t.high) for c, t in self.terms)

    @property
    def high(self) -> int:
        return self.constant + sum(max(c * t.low, c * t.high) for c, t in self.terms)


@dataclass(frozen=True)
class Floor:
    """`floor(dividend / divisor)`."""

    dividend: Linear
    divisor: int

    @property
    def low(self) -> int:
        return self.dividend.low // self.divisor

    @property
    def high(self) -> int:
        return self.dividend.high // self.divisor


@dataclass(frozen=True)
class Comparison:
    """`value = 0`, or `value >= 0`."""

    value: Linear
    is_equality: bool


Condition = tuple[tuple[Comparison, ...], ...]  # some alternative of which everything holds


def never_holds(
    formulas: Sequence[Formula],
    where: Sequence[Formula],
    wanted: Sequence[Formula],
    unknowns: Sequence[Unknown],
) -> Condition | None:
    """A condition on `unknowns` under which `formulas` cannot hold together; None if none is found.

    `where` is what is known of the unknowns. The condition leaves some of `wanted` possible: what
    only holds where nothing happens is none.

    Raises:   Undecided
    """
    with one_question():
        return _never_holds(formulas, where, wanted, unknowns)


def _never_holds(
    formulas: Sequence[Formula],
    where: Sequence[Formula],
    wanted: Sequence[Formula],
    unknowns: Sequence[Unknown],
) -> Condition | None:
    opposite = negated(both(*formulas)) if not where else FALSE
    if isinstance(opposite, NotNegative) and _is_about(opposite.polynomial, unknowns):
        comparison = Comparison(_linear(opposite.polynomial), is_equality=False)
        meant_somewhere = can_hold([*wanted, opposite, *_within_ends(unknowns)])
        return ((comparison,),) if meant_somewhere else None
    bad = projected(formulas, unknowns)
    known = projected(where, unknowns)
    used = limited(lambda: known.intersect(projected(wanted, unknowns)))
    good = limited(lambda: known.subtract(bad))
    # What only holds for arguments at the ends of their ranges is no condition anybody means.
    meant = limited(lambda: used.intersect(projected(_within_ends(unknowns), unknowns)))
    if not _meet(good, meant):
        return None
    # What is simple where something happens may still be right where nothing does.
    for context in (used, known):
        shown = _simplified(good, context)
        if _implies(known, shown, good):
            break
    parts = [p for p in shown.get_basic_sets() if _meet(isl.Set.from_basic_set(p), meant)]
    if not 0 < len(parts) <= _ALTERNATIVES:
        return None
    found = tuple(_comparisons(part, unknowns) for part in parts)
    numbers = (n for comparisons in found for c in comparisons for n in _numbers_in(c.value))
    return None if any(abs(n) > _LARGEST for n in numbers) else found


def _meet(left: isl.Set, right: isl.Set) -> bool:
    return not limited(lambda: left.intersect(right).is_empty())


def _within_ends(unknowns: Sequence[Unknown]) -> list[Formula]:
    """That unknowns of large ranges are in the inner half of them."""
    large = [u for u in unknowns if u.high - u.low >= _LARGE]
    highs = [at_least(number(u.high // 2), variable(u)) for u in large]
    return highs + [at_least(variable(u), -(-u.low // 2)) for u in large]


def _is_about(value: Polynomial, unknowns: Sequence[Unknown]) -> bool:
    """Whether it is a sum of multiples of these unknowns, with numbers that are not too large."""
    return value.unknowns <= set(unknowns) and all(
        len(monomial) <= 1 and abs(coefficient) <= _LARGEST for monomial, coefficient in value.terms
    )


def _linear(value: Polynomial) -> Linear:
    terms = tuple((coefficient, monomial[0]) for monomial, coefficient in value.terms if monomial)
    return Linear(terms, value.constant)


def _numbers_in(value: Linear) -> Iterator[int]:
    yield value.constant
    for coefficient, term in value.terms:
        yield coefficient
        if isinstance(term, Floor):
            yield term.divisor
            yield from _numbers_in(term.dividend)


def _simplified(condition: isl.Set, context: isl.Set) -> isl.Set:
    """The condition without what holds in the context anyway."""
    return limited(lambda: condition.gist(context).coalesce().compute_divs())


def _implies(known: isl.Set, condition: isl.Set, good: isl.Set) -> bool:
    return bool(limited(lambda: condition.intersect(known).is_subset(good)))


def projected(formulas: Sequence[Formula], unknowns: Sequence[Unknown]) -> isl.Set:
    """For which values of some unknowns formulas can hold; products are not followed."""
    dimensions = Dimensions(formulas, unknowns, all_first=True)
    whole = dimensions.set_of(formulas)
    rest = len(dimensions.monomials) - len(unknowns)
    return limited(lambda: whole.project_out(_SET, len(unknowns), rest))


def _comparisons(part: isl.BasicSet, unknowns: Sequence[Unknown]) -> tuple[Comparison, ...]:
    floors: list[Floor] = []
    for place in range(part.dim(_DIV)):
        meant = part.get_div(place)
        divisor = _number(meant.get_denominator_val())
        floors.append(Floor(_dividend(meant, divisor, unknowns, floors), divisor))
    found = []
    for constraint in part.get_constraints():
        terms = _terms(constraint.get_coefficient_val, _SET, unknowns, floors)
        value = Linear(terms, _number(constraint.get_constant_val()))
        found.append(Comparison(value, constraint.is_equality()))
    return tuple(c for c in found if not (_is_definition(c, floors) or _always_holds(c)))


def _number(value: isl.Val) -> int:
    found = value.to_python()
    assert found is not None, "a coefficient is a number"
    return int(found)


def _always_holds(comparison: Comparison) -> bool:
    return not comparison.is_equality and comparison.value.low >= 0


def _dividend(
    meant: isl.Aff, divisor: int, unknowns: Sequence[Unknown], floors: Sequence[Floor]
) -> Linear:
    """What is divided; isl has the quotient, before it is floored."""
    scale = value_of(divisor)

    def coefficient(kind: isl.dim_type, place: int) -> isl.Val:
        return meant.get_coefficient_val(kind, place) * scale

    constant = _number(meant.get_constant_val() * scale)
    return Linear(_terms(coefficient, _IN, unknowns, floors), constant)


def _terms(
    coefficient: Callable[[isl.dim_type, int], isl.Val],
    kind: isl.dim_type,
    unknowns: Sequence[Unknown],
    floors: Sequence[Floor],
) -> tuple[tuple[int, Unknown | Floor], ...]:
    found: list[tuple[int, Unknown | Floor]]
    found = [(_number(coefficient(kind, i)), u) for i, u in enumerate(unknowns)]
    found += [(_number(coefficient(_DIV, i)), f) for i, f in enumerate(floors)]
    return tuple((c, t) for c, t in found if c)


def _is_definition(comparison: Comparison, floors: Sequence[Floor]) -> bool:
    """Whether it only says what a quotient is: `0 <= dividend - divisor * floor < divisor`."""
    if comparison.is_equality:
        return False
    for floor in floors:
        terms = {t: c for c, t in comparison.value.terms}
        sign = -1 if terms.get(floor) == -floor.divisor else 1
        if terms.get(floor) not in (floor.divisor, -floor.divisor):
            continue
        rest = {t: c for t, c in terms.items() if t != floor}
        meant = {t: -sign * c for c, t in floor.dividend.terms}
        constant = comparison.value.constant
        own = -sign * floor.dividend.constant
        # `divisor * floor >= dividend` says that there is no remainder, and is no definition.
        always = {own + floor.divisor - 1} if sign > 0 else {own, own + floor.divisor - 1}
        if rest == meant and constant in always:
            return True
    return False
