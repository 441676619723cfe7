"""What is known of the unknowns of a kernel, and questions about them.

A question is answered twice at most: first with the facts that are about its own unknowns, which
is quick and mostly enough to say no; then with every fact that touches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.integers.budget import SHARE
from tilec.integers.formula import FALSE, Formula, negated, renamed
from tilec.integers.polynomial import Interval, Polynomial, Unknown, variable
from tilec.integers.satisfiable import can_hold
from tilec.integers.solver import Undecided

# That a number fits its type is asked often, and mostly seen at once if it does.
_PART_FOR_FITS = 0.4
# So many formulas take a while, however simple they are.
_MANY = 32


@dataclass(frozen=True, eq=False)
class Fact:
    """What holds at a place, and why: "requires", "grid", "loop" or "if", of an operation."""

    formula: Formula
    why: str
    op: ir.OpView | None = None


@dataclass
class Knowledge:
    """The unknowns of one kernel.

    `definitions` say what an unknown is, in terms of others. `facts` hold for the whole launch, and
    so do `limits`, which are about products and only looked at where these might not fit a type.
    """

    definitions: dict[Unknown, Formula] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    limits: list[Formula] = field(default_factory=list)
    is_given_up: bool = False  # whether the last question was not decided within the budget
    _count: int = 0
    _twins: dict[Unknown, Unknown] = field(default_factory=dict)

    def unknown(
        self,
        name: str,
        interval: Interval,
        *,
        uniform: bool,
        opaque: bool = False,
        about: object = None,
        twin: Unknown | None = None,
    ) -> Unknown:
        """A further unknown."""
        self._count += 1
        low, high = interval
        return Unknown(name, low, high, self._count, uniform, opaque, about, twin)

    @property
    def count(self) -> int:
        """How many unknowns there are so far."""
        return self._count

    def define(self, unknown: Unknown, formula: Formula) -> Polynomial:
        """Say what an unknown is."""
        self.definitions[unknown] = formula
        return variable(unknown)

    # ---- questions -------------------------------------------------------------------------------

    def possible(self, formulas: Sequence[Formula], facts: Sequence[Fact]) -> bool:
        """Whether formulas can hold together where facts do; if nobody knows, they can."""
        self.is_given_up = False
        if FALSE in formulas:
            return False
        near = self.context(formulas, facts, wide=False)
        far = self.context(formulas, facts, wide=True)
        if len(near) > _MANY and len(far) < 2 * len(near):
            return self._can_hold(far)  # the other question takes as much
        return self._can_hold(near) and (len(far) == len(near) or self._can_hold(far))

    def fits(self, formula: Formula, when: Sequence[Formula], facts: Sequence[Fact]) -> bool:
        """Whether a formula, that a number fits its type, holds where others do."""
        self.is_given_up = False
        far = self.context([*when, negated(formula)], facts, wide=True)
        return not self._can_hold([*far, *self.limits_of(far)], _PART_FOR_FITS)

    def context(
        self,
        formulas: Sequence[Formula],
        facts: Sequence[Fact],
        *,
        wide: bool,
        about: Iterable[Unknown] = (),
        only: bool = False,
    ) -> list[Formula]:
        """Formulas with what is known of their unknowns, and of those in `about`.

        Narrow: facts that bind an unknown other than by what all programs share. Wide: all facts
        of the place, and those of the whole launch that share an unknown. `only`: none of these.
        """
        found = [*formulas, *(fact.formula for fact in facts if wide)]
        known = set(about)
        self._learn(found, 0, known)
        waiting = [*([] if wide else facts), *([] if only else self.facts)]
        while True:
            rest = []
            for fact in waiting:
                if _is_near(fact.formula.unknowns, known, wide=wide):
                    found.append(fact.formula)
                    self._learn(found, len(found) - 1, known)
                else:
                    rest.append(fact)
            if len(rest) == len(waiting):
                return found
            waiting = rest

    def limits_of(self, formulas: Iterable[Formula]) -> list[Formula]:
        """The limits of products whose unknowns all occur."""
        known = frozenset[Unknown]().union(*(f.unknowns for f in formulas))
        return [limit for limit in self.limits if limit.unknowns <= known]

    def _learn(self, found: list[Formula], start: int, known: set[Unknown]) -> None:
        """Add the unknowns of formulas from `start` on, with their definitions."""
        place = start
        while place < len(found):
            fresh = found[place].unknowns - known
            known |= fresh
            found += [self.definitions[u] for u in sorted(fresh) if u in self.definitions]
            place += 1

    def _can_hold(self, formulas: Sequence[Formula], part: float = SHARE) -> bool:
        try:
            self.is_given_up = False
            return can_hold(formulas, part=part)
        except Undecided:
            self.is_given_up = True
            return True

    # ---- a second program ------------------------------------------------------------------------

    def twins(self, unknowns: Iterable[Unknown]) -> Mapping[Unknown, Unknown]:
        """For what may differ between programs, the unknown of a second one."""
        for unknown in unknowns:
            if not unknown.uniform and unknown not in self._twins:
                self._twins[unknown] = self.unknown(
                    f"{unknown.name}'",
                    (unknown.low, unknown.high),
                    uniform=False,
                    opaque=unknown.opaque,
                    about=unknown.about,
                    twin=unknown,
                )
        return self._twins

    def second(self, formulas: Sequence[Formula]) -> list[Formula]:
        """The same of a second program."""
        twins = self.twins(sorted({u for f in formulas for u in f.unknowns}))
        return [renamed(formula, twins) for formula in formulas]


def _is_near(unknowns: frozenset[Unknown], known: set[Unknown], *, wide: bool) -> bool:
    if not unknowns:
        return True
    shared = unknowns & known
    if wide:
        return bool(shared)
    return shared == unknowns or any(not u.uniform for u in shared)
