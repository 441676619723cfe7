"""What walks over structured control flow know of loops: no loop in a loop is walked without end.

A walk carries a set of facts, which operations add to and take from. A loop is entered with what
was before it and what its turns leave, which is a fixed point; one in a loop is come to once for
each turn of all loops around it that their own fixed points take. So what is found of a loop is
kept, by what it was come to with.

Facts that are taken away once others are there make these states many, in rare programs 2^depth.
When so many turns were walked that this is one, all that a loop was ever entered with counts as
what it is entered with from then on: more than there may be, but each loop is walked anew only
where that grows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
# Turns of loops in one walk, of which programs as people write them take some dozens.
MOST_EXACT_TURNS = 512


class LoopStates(Generic[T]):
    """Loops are told by their identity; whoever has this keeps them alive."""

    def __init__(self) -> None:
        self._turns = 0
        self._ever: dict[int, frozenset[T]] = {}
        self._entered: dict[tuple[int, frozenset[T]], frozenset[T]] = {}
        self._behind: dict[tuple[int, frozenset[T]], frozenset[T]] = {}

    def entered(
        self,
        loop: object,
        before: frozenset[T],
        turned: Callable[[frozenset[T]], frozenset[T]],
    ) -> frozenset[T]:
        """What may hold where a turn begins; `turned` is what holds after one that begins so."""
        ever = self._ever.get(id(loop), frozenset())
        start = before if self._turns < MOST_EXACT_TURNS else before | ever
        key = id(loop), start
        if key not in self._entered:
            entering = start
            self._turns += 1
            while not (left := turned(entering)) <= entering:
                entering |= left
                self._turns += 1
            self._entered[key] = self._entered[id(loop), entering] = entering
        self._ever[id(loop)] = ever | self._entered[key]
        return self._entered[key]

    def behind(
        self, loop: object, entering: frozenset[T], ended: Callable[[], frozenset[T]]
    ) -> frozenset[T]:
        """What holds behind a loop that is entered so, which `ended` walks once to tell."""
        key = id(loop), entering
        if key not in self._behind:
            self._behind[key] = ended()
        return self._behind[key]
