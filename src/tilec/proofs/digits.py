"""Program numbers that are taken apart, `b = p / H` and `h = p % H`, without products.

Of programs p below B * H, b and h take all numbers below B and H, each pair once. So p can be
written as b * H + h with h a number of its own, and what bounds p bounds b: products are gone, and
sets of isl are exact again. What is left of products makes them inexact, as ever.

Why it is sound, for H above 0: `b = floor(p / H)` says that p = b * H + h for some h with
0 <= h < H, so one unknown takes the place of another. Then X * H + h >= 0 says X >= 0, and
X * H - h - 1 >= 0 says X >= 1, for h is between 0 and H. Where H is 0, nothing is left, which is
right where it is asked for what certainly happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.integers.division import is_floor
from tilec.integers.formula import (
    All,
    Any,
    Formula,
    IsZero,
    NotNegative,
    at_least,
    both,
    either,
    less,
    mapped,
    negated,
)
from tilec.integers.polynomial import Polynomial, Unknown, polynomial, variable
from tilec.proofs.reasoning import Reasoning


def taken_apart(
    reasoning: Reasoning,
    formulas: Sequence[Formula],
    instead: Mapping[Polynomial, Unknown],
    numbers: dict[object, Unknown],
) -> list[Formula]:
    """The formulas over digits, where program numbers are divided by what the launch shares.

    `instead` are numbers that stand for others in the formulas (`strides.py`), as if they were
    those of programs. `numbers` are the digits so far: each has one unknown.
    """
    programs = {*reasoning.ids.values(), *instead.values()}
    found = list(formulas)
    # In the order of their making, so that quotients of quotients come after these.
    for (rounding, dividend, divisor), quotient in reasoning.quotients.items():
        number, base = instead.get(dividend) or _unknown_in(dividend), _unknown_in(divisor)
        if rounding != "floor" or number not in programs or base is None:
            continue
        [digit_above] = quotient.unknowns
        definition = reasoning.knowledge.definitions[digit_above]
        if dividend in instead:
            definition = either(
                negated(at_least(variable(base), 1)),
                is_floor(variable(digit_above), variable(number), variable(base)),
            )
        if not base.uniform or base.low < 0 or definition not in found:
            continue
        found = _split(reasoning, found, number, digit_above, base, definition, numbers)
        programs.add(digit_above)
    return found


def _unknown_in(value: Polynomial) -> Unknown | None:
    """The unknown that a polynomial is."""
    if len(value.terms) != 1 or value.terms[0][1] != 1 or len(value.terms[0][0]) != 1:
        return None
    return value.terms[0][0][0]


def _split(
    reasoning: Reasoning,
    formulas: Sequence[Formula],
    program: Unknown,
    above: Unknown,
    base: Unknown,
    definition: Formula,
    numbers: dict[object, Unknown],
) -> list[Formula]:
    """`above * base + digit` in the place of `program`."""
    if (program, base) not in numbers:
        numbers[program, base] = reasoning.knowledge.unknown(
            f"{program.name} % {base.name}", (0, base.high), uniform=False
        )
    digit = numbers[program, base]
    whole = variable(above) * variable(base) + variable(digit)

    def change(value: Polynomial) -> Polynomial:
        terms = Polynomial()
        for monomial, coefficient in value.terms:
            term = polynomial([((), coefficient)])
            for unknown in monomial:
                term = term * (whole if unknown is program else variable(unknown))
            terms = terms + term
        return terms

    rest = [mapped(f, change) for f in formulas if f != definition]
    # The grid bounds programs, so that the range of their numbers says nothing more.
    if not any(isinstance(f, NotNegative) and _is_bound(f.polynomial, digit, base) for f in rest):
        return list(formulas)
    found = [at_least(variable(digit), 0), less(variable(digit), variable(base))]
    return found + [_without_product(f, digit, base) for f in [*rest, NotNegative(whole)]]


def _is_bound(value: Polynomial, digit: Unknown, base: Unknown) -> bool:
    """Whether it being at least 0 bounds the number from above."""
    return _divided(value, base)[1] == -variable(digit) - 1


def _without_product(formula: Formula, digit: Unknown, base: Unknown) -> Formula:
    match formula:
        case All(parts):
            return both(*(_without_product(part, digit, base) for part in parts))
        case Any(parts):
            return either(*(_without_product(part, digit, base) for part in parts))
        case IsZero():
            return formula
        case NotNegative(value):
            factor, rest = _divided(value, base)
            if rest == variable(digit):
                return at_least(factor, 0)
            if _is_bound(value, digit, base):
                return at_least(factor, 1)
    return formula


def _divided(value: Polynomial, base: Unknown) -> tuple[Polynomial, Polynomial]:
    """The X and the rest of `X * base + rest`."""
    factor, rest = [], []
    for monomial, coefficient in value.terms:
        if base in monomial:
            place = monomial.index(base)
            factor.append(((*monomial[:place], *monomial[place + 1 :]), coefficient))
        else:
            rest.append((monomial, coefficient))
    return polynomial(factor), polynomial(rest)
