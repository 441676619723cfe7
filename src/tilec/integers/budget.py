"""What proofs of one kernel may cost, counted in steps, so that every question ends.

A step is what takes about a microsecond at worst on the machine that the prices were measured on:
operations of isl, weighted by the number of dimensions, and work of our own. Time itself is never
looked at, so that verdicts are the same on every machine.

A budget is divided twice. Each *phase* of the proofs has a part of its own, so that what one phase
finds does not depend on which ran before it. Within a phase each question may take a share of what
is left, so that one that is too hard leaves something to those after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

# What a question may take that is asked outside of a budget.
_ALONE = 7_000_000
# The part of what its phase has left that a question may take, unless it says otherwise.
SHARE = 0.4
# An operation of isl on sets of fewer dimensions takes what memory takes.
_FEW = 32
# The leading bits of how many steps a question may take; the others are 0.
_SIGNIFICANT = 4
# What every question takes at least.
_LEAST = 20


class Phase(Enum):
    """A part of the proofs."""

    EXECUTION = "execution"
    LAUNCHES = "whether there are launches"
    RACES = "races"
    OUTSIDE = "accesses that are always outside"
    BOUNDS = "bounds"
    FACTS = "facts that proofs of bounds need"
    COVERAGE = "coverage"


# In hundredths of the budget.
_PARTS = {
    Phase.EXECUTION: 28,
    Phase.LAUNCHES: 4,
    Phase.RACES: 34,
    Phase.OUTSIDE: 6,
    Phase.BOUNDS: 20,
    Phase.FACTS: 3,
    Phase.COVERAGE: 5,
}


class Undecided(Exception):  # noqa: N818, a state of the question, and no fault of ours
    """The question takes more steps than it has."""


@dataclass
class _Purse:
    """What a phase has left, and how many of its questions were not decided."""

    left: int
    undecided: int = 0


@dataclass
class Budget:
    """The steps of the proofs of one kernel."""

    steps: int
    _purses: dict[Phase, _Purse] = field(default_factory=dict)

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """While questions are asked for a phase."""
        global _current
        outer, _current = _current, self._purse(phase)
        try:
            yield
        finally:
            _current = outer

    def undecided(self, phase: Phase) -> int:
        """How many questions of a phase were not decided within the budget, so far."""
        return self._purse(phase).undecided

    def is_spent(self, phase: Phase) -> bool:
        """Whether a phase has so little left that questions are not decided any more."""
        return self._purse(phase).left < self._part(phase) // 50

    def spent(self) -> int:
        """The steps that were taken so far."""
        return sum(self._part(phase) - purse.left for phase, purse in self._purses.items())

    def _purse(self, phase: Phase) -> _Purse:
        if phase not in self._purses:
            self._purses[phase] = _Purse(self._part(phase))
        return self._purses[phase]

    def _part(self, phase: Phase) -> int:
        return self.steps * _PARTS[phase] // 100


@dataclass
class _Question:
    """Steps of one question: taken so far, how many it may take, and those of an isl operation."""

    limit: int
    is_eager: bool
    taken: int = 0
    price: int = 1


_current: _Purse | None = None
_question: _Question | None = None


@contextmanager
def question(part: float = SHARE, *, is_eager: bool = False) -> Iterator[None]:
    """While one question is asked: it may take `part` of what the phase has left.

    `is_eager`: whether isl is asked for sets of many pieces.

    Raises:   Undecided where nothing is left
    """
    global _question
    if _question is not None:  # a part of another question
        yield
        return
    purse = _current if _current is not None else _Purse(_ALONE)
    _question = asked = _Question(_rounded(int(purse.left * part)), is_eager)
    try:
        spend(_LEAST)
        yield
    except Undecided:
        purse.undecided += 1
        raise
    finally:
        purse.left -= min(asked.taken, asked.limit)
        _question = None


def _rounded(steps: int) -> int:
    """Fewer steps, of few numbers that there can be: questions that are alike may take as many."""
    low = max(0, steps.bit_length() - _SIGNIFICANT)
    return steps >> low << low


@contextmanager
def portion(part: float) -> Iterator[None]:
    """While a part of a question is asked that leaves something to the rest of it.

    Raises:   Undecided where the part takes more; the question may go on
    """
    asked = _question
    if asked is None:
        yield
        return
    limit = asked.limit
    asked.limit = asked.taken + int((limit - asked.taken) * part)
    try:
        yield
    finally:
        asked.taken = min(asked.taken, asked.limit)
        asked.limit = limit


def is_asked() -> bool:
    """Whether a question is being asked."""
    return _question is not None


def spend(steps: int) -> None:
    """Take steps for something. Raises Undecided where the question has no more."""
    if _question is None:
        return
    _question.taken += steps
    if _question.taken > _question.limit:
        raise Undecided("more steps than the budget has for one question")


def exhaust() -> None:
    """Take all steps of the question: it cannot go on."""
    if _question is not None:
        _question.taken = _question.limit


def steps_left() -> int:
    """How many steps the question may still take."""
    return _question.limit - _question.taken if _question is not None else _ALONE


def weigh(dimensions: int) -> None:
    """Say of how many dimensions the sets of the question are: operations on them cost as much."""
    if _question is not None:
        _question.price = max(_question.price, _price(dimensions, is_eager=_question.is_eager))


def _price(dimensions: int, *, is_eager: bool) -> int:
    """Pivots of simplex tables, and basis reductions, which isl does not count, grow with size.

    There are many of the latter where sets of many pieces are made and projected.
    """
    return 3 + (dimensions // 8) ** 3 if is_eager else 1 + (dimensions // _FEW) ** 2


def price() -> int:
    """The steps that an operation of isl takes in this question."""
    return _question.price if _question is not None else 1


def steps_taken() -> int:
    """How many steps the question has taken."""
    return _question.taken if _question is not None else 0
