"""Barriers in shared memory, as the PTX ISA writes them, and those that have numbers.

Source:   PTX ISA, "Contents of the mbarrier object", "Phase of the mbarrier object", "Tracking
          asynchronous operations by the mbarrier object", "bar"
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simt_memory import SimtError
from simt_strands import Clock, join

MOST_ARRIVALS = MOST_BYTES = 2**20 - 1


@dataclass
class MBarrier:
    """Units: `place` and `missing` in bytes, of shared memory and of copies to come."""

    place: int
    expected: int  # arrivals a phase
    maker: int  # the number of the strand that made it
    is_fenced: bool = False  # copies may use it
    phase: int = 0
    pending: int = 0
    missing: int = 0
    arriving: Clock = field(default_factory=dict)
    ended: Clock = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.expected <= MOST_ARRIVALS:
            raise SimtError(f"{self} is made for {self.expected} arrivals")
        self.pending = self.expected

    def arrive(self, clock: Clock) -> None:
        if self.pending == 0:
            raise SimtError(f"more than {self.expected} arrive at {self}")
        self.pending -= 1
        join(self.arriving, clock)
        self._end()

    def expect(self, count: int) -> None:
        self.missing += count
        self._check_bytes()

    def complete(self, count: int, clock: Clock) -> None:
        self.missing -= count
        self._check_bytes()
        join(self.arriving, clock)
        self._end()

    def is_over(self, parity: int) -> bool:
        """Whether the phase of this parity, which may be the one before, has ended."""
        return self.phase % 2 != parity

    def _end(self) -> None:
        if self.pending == 0 and self.missing == 0:
            self.phase += 1
            self.pending = self.expected
            join(self.ended, self.arriving)
            self.arriving = {}

    def _check_bytes(self) -> None:
        if abs(self.missing) > MOST_BYTES:
            raise SimtError(f"{self} counts {self.missing} bytes")

    def __str__(self) -> str:
        return f"the barrier at byte {self.place}"

    def state(self) -> str:
        return f"phase {self.phase}, {self.pending} arrivals and {self.missing} bytes to come"


@dataclass
class Meeting:
    """A barrier that has a number: so many threads meet there, again and again."""

    number: int
    threads: int
    here: int = 0
    turn: int = 0
    arriving: Clock = field(default_factory=dict)
    ended: Clock = field(default_factory=dict)
    made: set[int] = field(default_factory=set)  # barriers that those who came have seen made

    def arrive(self, threads: int, clock: Clock) -> bool:
        """Whether they were the last ones."""
        self.here += threads
        if self.here > self.threads:
            raise SimtError(f"{self.here} threads come to {self}")
        join(self.arriving, clock)
        if self.here < self.threads:
            return False
        self.here, self.turn = 0, self.turn + 1
        self.ended, self.arriving = self.arriving, {}
        return True

    def __str__(self) -> str:
        return f"barrier {self.number} of {self.threads} threads"
