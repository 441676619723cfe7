"""Preconditions under which two accesses that are not decided do not race.

Candidates are bounds of what launchers know: that a scalar is above 0, that an extent or a scalar
is not too large for products to fit, and both. The kernel is executed abstractly again with each,
and only what then proves that the accesses never meet, and leaves launches possible, is suggested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tilec.integers.budget import Budget, Phase
from tilec.integers.formula import Formula, at_least
from tilec.integers.polynomial import number, variable
from tilec.integers.satisfiable import can_hold
from tilec.integers.solver import Undecided
from tilec.proofs.access import Access
from tilec.proofs.races import Race, meet
from tilec.proofs.reasoning import Reasoning

# Bounds are tried from below, and the largest power of two that will do is suggested.
_SMALLEST_EXPONENT, _LARGEST_EXPONENT = 10, 40
_CANDIDATES = 6
# All that is tried for one kernel takes this part of the steps of its proofs, beside them, and
# executes no more accesses again than this.
_PART_OF_STEPS = 10
_ACCESSES = 400


@dataclass(frozen=True)
class _Bound:
    """`name >= low`, `name <= high`, or both."""

    name: str
    low: int | None = None
    high: int | None = None

    @property
    def text(self) -> str:
        texts = [] if self.low is None else [f"{self.name} >= {self.low}"]
        return " && ".join(texts + ([] if self.high is None else [f"{self.name} <= {self.high}"]))

    def formulas(self, reasoning: Reasoning) -> Iterator[Formula]:
        known = {**reasoning.dims, **reasoning.scalars}
        value = variable(known[self.name])
        if self.low is not None:
            yield at_least(value, self.low)
        if self.high is not None:
            yield at_least(number(self.high), value)


_Bounds = tuple[_Bound, ...]


def precondition_against(race: Race, reasoning: Reasoning) -> str | None:
    """What to require so that two accesses do not race; None if nothing was found."""
    budget = Budget(reasoning.budget.steps // _PART_OF_STEPS)
    tries = min(_CANDIDATES, _ACCESSES // len(reasoning.accesses))
    for bounds in islice(_candidates(race, reasoning), tries):
        if _helps(bounds, race, reasoning, budget):
            largest = _largest(bounds, race, reasoning, budget)
            return " && ".join(bound.text for bound in largest)
    return None


def _candidates(race: Race, reasoning: Reasoning) -> Iterator[_Bounds]:
    """Few and weak ones first."""
    about = {u for f in _meant(race, reasoning) for u in f.unknowns}
    dims = [name for name, u in reasoning.dims.items() if u in about]
    scalars = [name for name, u in reasoning.scalars.items() if u in about and u.high > 1]
    most = 2**_SMALLEST_EXPONENT - 1
    positive = tuple(_Bound(name, low=1) for name in scalars)
    if positive:
        yield positive
    for name in dims:
        yield (_Bound(name, high=most),)
    for name in scalars:
        yield (_Bound(name, low=1, high=most),)
    every = tuple(_Bound(name, high=most) for name in dims)
    yield every + tuple(_Bound(name, low=1, high=most) for name in scalars)


def _meant(race: Race, reasoning: Reasoning) -> list[Formula]:
    """What is known where the accesses are, with what may wrap as what it would be."""
    found: list[Formula] = []
    for access in (race.first, race.second):
        starts = [] if access.starts is None else [at_least(s, 0) for s in access.starts]
        found += reasoning.knowledge.context(
            starts, access.path, wide=True, about=reasoning.ids.values()
        )
    return found


def _largest(bounds: _Bounds, race: Race, reasoning: Reasoning, budget: Budget) -> _Bounds:
    """The same with the largest bounds, powers of two less 1, that will do as well."""
    low, high = _SMALLEST_EXPONENT, _LARGEST_EXPONENT
    if all(bound.high is None for bound in bounds):
        return bounds
    while high - low > 1:
        exponent = (low + high) // 2
        if _helps(_with_most(bounds, exponent), race, reasoning, budget):
            low = exponent
        else:
            high = exponent
    return _with_most(bounds, low)


def _with_most(bounds: _Bounds, exponent: int) -> _Bounds:
    return tuple(_Bound(b.name, b.low, None if b.high is None else 2**exponent - 1) for b in bounds)


def _helps(bounds: _Bounds, race: Race, reasoning: Reasoning, budget: Budget) -> bool:
    changed = Reasoning.of(
        reasoning.function, budget, lambda found: [f for b in bounds for f in b.formulas(found)]
    )
    with budget.phase(Phase.LAUNCHES):
        if not _is_launched(changed):
            return False
    firsts, seconds = _of(race.first, changed), _of(race.second, changed)
    return all(not meet(changed, a, b) for a in firsts for b in seconds)


def _of(access: Access, reasoning: Reasoning) -> Sequence[Access]:
    return [other for other in reasoning.accesses if other.op == access.op]


def _is_launched(reasoning: Reasoning) -> bool:
    formulas = [fact.formula for fact in reasoning.knowledge.facts]
    try:
        return can_hold(reasoning.knowledge.context(formulas, (), wide=False, only=True))
    except Undecided:
        return False
