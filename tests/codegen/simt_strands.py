"""Parts of a block of threads that run by turns: one goes on where another one waits.

Each part is a Python thread, of which one at a time runs, so that a run can be repeated. Who has
seen what of whom is kept in vector clocks: what is unordered is found in whatever order it happens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from simt_memory import SimtError

# What has been seen, by number: the times of strands, and which copies are there (numbers below 0).
Clock = dict[int, int]


def join(clock: Clock, other: Clock) -> None:
    """See what another one has seen."""
    for number, time in other.items():
        clock[number] = max(time, clock.get(number, time))


@dataclass(frozen=True)
class Timing:
    """When what may happen at several times does.

    `early_copies`: a copy is there when it has begun, else when everyone waits, the last one first.
    `early_products`: factors are read when a product begins, else where it is waited for.
    `eager`: whoever is let go on does so at once, else when the other one waits.
    `split`: each warpgroup of a role goes its own way, else they go in lock-step.
    `seed`: all but `split` at random.
    """

    early_copies: bool = False
    early_products: bool = False
    eager: bool = False
    split: bool = False
    seed: int | None = None


EARLY = Timing(early_copies=True, early_products=True, eager=True, split=True)
LATE = Timing()


class Chance:
    """What a timing says, time after time."""

    def __init__(self, timing: Timing) -> None:
        self.timing = timing
        self._random = None if timing.seed is None else np.random.default_rng(timing.seed)

    def says(self, fixed: bool) -> bool:
        """Whether something that is at choice happens now."""
        return fixed if self._random is None else bool(self._random.integers(2))

    def one_of(self, count: int, fixed: int) -> int:
        return fixed if self._random is None else int(self._random.integers(count))


@dataclass
class Strand:
    """Threads that run together."""

    name: str
    number: int
    clock: Clock
    ready: Callable[[], bool] | None = None  # None: it can go on
    what: Callable[[], str] | None = None  # that it waits for
    is_over: bool = False
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def released(self) -> Clock:
        """What it has seen up to now; what it does from now on is later."""
        seen = dict(self.clock)
        self.clock[self.number] = self.clock.get(self.number, 0) + 1
        return seen

    def has_seen(self, number: int, time: int) -> bool:
        return number == self.number or self.clock.get(number, -1) >= time


class _Stopped(BaseException):
    """Another strand failed."""


class Strands:
    """`progress` does something that is under way; it says whether there was anything."""

    def __init__(self, chance: Chance, progress: Callable[[], bool]) -> None:
        self.current = Strand("all threads", 0, {0: 0})
        self.is_forked = False
        self._chance = chance
        self._progress = progress
        self._numbers = count(1)
        self._strands: list[Strand] = []
        self._threads: list[threading.Thread] = []
        self._back = threading.Semaphore(0)
        self._failure: BaseException | None = None
        self._is_stopping = False

    def run(self, parts: Sequence[tuple[str, Callable[[], None]]]) -> None:
        """Run all parts, by turns, to their ends. A part may have parts of its own.

        Raises:   what a part raises; SimtError where none can go on
        """
        outer, is_first = self.current, not self.is_forked
        strands = [
            Strand(name, number, {**outer.clock, number: 0})
            for (name, _), number in zip(parts, self._numbers, strict=False)
        ]
        for strand, (_, body) in zip(strands, parts, strict=True):
            thread = threading.Thread(target=self._body, args=(strand, body), daemon=True)
            self._strands.append(strand)
            self._threads.append(thread)
            thread.start()
        if is_first:
            self._run_all(outer)
        else:
            self.wait(lambda: all(strand.is_over for strand in strands), lambda: "parts of them")
        for strand in strands:
            join(outer.clock, strand.clock)

    def _run_all(self, outer: Strand) -> None:
        self.is_forked = True
        try:
            self._take_turns()
        finally:
            self._is_stopping = True
            for strand in self._strands:
                strand.baton.release()
            for thread in self._threads:
                thread.join()
            self._strands, self._threads = [], []
            self.is_forked, self.current, self._is_stopping = False, outer, False

    def wait(self, ready: Callable[[], bool], what: Callable[[], str]) -> None:
        """Let others go on until something is so."""
        strand = self.current
        while not ready():
            if self.is_forked:
                strand.ready, strand.what = ready, what
                self._hand_back(strand)
                strand.ready = strand.what = None
            elif not self._progress():
                raise SimtError(f"{strand.name} wait for {what()} for ever")

    def pause(self) -> None:
        """Others may be able to go on now."""
        if self.is_forked and self._chance.says(self._chance.timing.eager):
            self._hand_back(self.current)

    def _hand_back(self, strand: Strand) -> None:
        self._back.release()
        strand.baton.acquire()
        if self._is_stopping:
            raise _Stopped

    def _take_turns(self) -> None:
        last = 0
        while left := [strand for strand in self._strands if not strand.is_over]:
            able = [strand for strand in left if strand.ready is None or strand.ready()]
            if not able:
                if self._progress():
                    continue
                told = "; ".join(
                    f"{strand.name} wait for {strand.what()}" for strand in left if strand.what
                )
                raise SimtError(f"nobody can go on: {told}")
            # The next one after who was on turn, if there is one.
            later = [i for i, strand in enumerate(able) if strand.number > last]
            strand = able[self._chance.one_of(len(able), later[0] if later else 0)]
            last = strand.number
            self.current = strand
            strand.baton.release()
            self._back.acquire()
            if self._failure is not None:
                raise self._failure

    def _body(self, strand: Strand, body: Callable[[], None]) -> None:
        strand.baton.acquire()
        try:
            if not self._is_stopping:
                body()
        except _Stopped:
            pass
        except BaseException as failure:
            self._failure = failure
        finally:
            strand.is_over = True
            self._back.release()
