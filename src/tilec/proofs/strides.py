"""Programs that take the tiles of a whole by turns: `p, p + c, p + 2 * c, …` of c programs.

Every number i from 0 up is p + c * t of exactly one program p below c and one turn t. So i takes
the place of p and t where formulas are about p + c * t alone, and the product is gone. What is left
of p is that it is below c, and of t that it is not below 0: both hold of the p and t of any i, as
long as there is a program (c >= 1), which is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.integers.formula import Formula, NotNegative, at_least, less, mapped, polynomials
from tilec.integers.polynomial import Polynomial, Unknown, polynomial, variable
from tilec.proofs.reasoning import Reasoning


@dataclass(frozen=True)
class Stride:
    """`number` stands for `program + count * turn`."""

    number: Unknown
    program: Unknown
    count: Unknown
    turn: Unknown

    @property
    def whole(self) -> Polynomial:
        return variable(self.program) + variable(self.count) * variable(self.turn)

    def changed(self, value: Polynomial) -> Polynomial | None:
        """The value over the number; None if it is about the program or the turn otherwise."""
        found: list[tuple[tuple[Unknown, ...], int]] = []
        for monomial, coefficient in value.terms:
            rest = list(monomial)
            if self.program in rest:
                rest.remove(self.program)
                found.append((tuple(sorted((*rest, self.number))), coefficient))
            elif self.turn not in rest:
                found.append((monomial, coefficient))
        changed = polynomial(found)
        back = (_with(monomial, c, self.number, self.whole) for monomial, c in changed.terms)
        return changed if sum(back, Polynomial()) == value else None


def taken_by_turns(
    reasoning: Reasoning, formulas: Sequence[Formula], numbers: dict[object, Unknown]
) -> tuple[list[Formula], list[Stride]]:
    """The formulas over numbers in the place of programs and turns, and what stands for what.

    `numbers` are those so far: each program and turn has one.
    """
    found, strides = list(formulas), list[Stride]()
    for program, count, turn in _candidates(reasoning, formulas):
        if (program, turn) not in numbers:
            numbers[program, turn] = reasoning.knowledge.unknown(
                f"{program.name} + {count.name} * turn", (0, 2**62), uniform=False
            )
        stride = Stride(numbers[program, turn], program, count, turn)
        changed = _changed(found, stride)
        if changed is not None:
            found = [*changed, at_least(variable(count), 1)]
            strides.append(stride)
    return found, strides


def _candidates(
    reasoning: Reasoning, formulas: Sequence[Formula]
) -> Iterator[tuple[Unknown, Unknown, Unknown]]:
    """A program, how many there are, and the turn that this is multiplied by."""
    products = {m for f in formulas for p in polynomials(f) for m in p.monomials if len(m) == 2}
    for axis, program in reasoning.ids.items():
        extents = reasoning.programs_of
        known = extents[axis].monomials if axis < len(extents) else ()
        for left, right in sorted(products):
            for count, turn in ((left, right), (right, left)):
                is_extent = known == ((count,),) and extents[axis] == variable(count)
                if is_extent and turn in reasoning.turns:
                    yield program, count, turn


def _changed(formulas: Sequence[Formula], stride: Stride) -> list[Formula] | None:
    below_count = less(variable(stride.program), variable(stride.count))
    failed = False

    def change(value: Polynomial) -> Polynomial:
        nonlocal failed
        changed = stride.changed(value)
        failed |= changed is None
        return value if changed is None else changed

    found = []
    for formula in formulas:
        if formula != below_count and not _always_holds(formula, stride):
            found.append(mapped(formula, change))
    return None if failed else found


def _always_holds(formula: Formula, stride: Stride) -> bool:
    """Whether it says what holds of every program and turn anyway: `count * turn >= 0`."""
    if not isinstance(formula, NotNegative):
        return False
    known = {stride.turn, stride.program, stride.count}
    return all(c >= 0 and known.issuperset(monomial) for monomial, c in formula.polynomial.terms)


def _with(
    monomial: tuple[Unknown, ...], coefficient: int, number: Unknown, whole: Polynomial
) -> Polynomial:
    term = polynomial([((), coefficient)])
    for unknown in monomial:
        term = term * (whole if unknown is number else variable(unknown))
    return term
