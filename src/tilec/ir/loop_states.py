"""Fixed points of walks over structured control flow, without walking nested loops again and again.

A walk carries a set of facts that operations add to and take from. What holds where an iteration of
a loop begins is a fixed point: what held before the loop, and what iterations leave. A loop within
a loop is reached once for each iteration that the fixed points around it take, mostly with the same
facts; so what was found of a loop is kept by the facts that it was reached with.

Where facts remove others, a loop may be reached with up to 2^depth sets of facts. After
`MOST_EXACT_ITERATIONS` iterations of one walk, all facts that a loop was ever reached with count as
reaching it from then on. That is an over-approximation, and a loop is then walked again only where
this set grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
# Programs as people write them take some dozens.
MOST_EXACT_ITERATIONS = 512


class LoopStates(Generic[T]):
    """Loops are known by identity: the owner of this object keeps them alive."""

    def __init__(self) -> None:
        self._iterations = 0
        self._ever: dict[int, frozenset[T]] = {}
        self._entered: dict[tuple[int, frozenset[T]], frozenset[T]] = {}
        self._behind: dict[tuple[int, frozenset[T]], frozenset[T]] = {}

    def entered(
        self,
        loop: object,
        before: frozenset[T],
        iterated: Callable[[frozenset[T]], frozenset[T]],
    ) -> frozenset[T]:
        """What may hold where an iteration begins; `iterated` gives what holds at its end."""
        ever = self._ever.get(id(loop), frozenset())
        start = before if self._iterations < MOST_EXACT_ITERATIONS else before | ever
        key = id(loop), start
        if key not in self._entered:
            entering = start
            self._iterations += 1
            while not (left := iterated(entering)) <= entering:
                entering |= left
                self._iterations += 1
            self._entered[key] = self._entered[id(loop), entering] = entering
        self._ever[id(loop)] = ever | self._entered[key]
        return self._entered[key]

    def behind(
        self, loop: object, entering: frozenset[T], ended: Callable[[], frozenset[T]]
    ) -> frozenset[T]:
        """What holds behind a loop that is entered so; `ended` walks it once."""
        key = id(loop), entering
        if key not in self._behind:
            self._behind[key] = ended()
        return self._behind[key]
