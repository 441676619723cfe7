"""On which stream each launch of a pipeline goes, and what its stream waits for there.

Streams go by number: 0 is the caller's, the others are forked from it and joined to it. Pure: no
device, no kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

FORK = (
    -1
)  # what the caller's stream had been given before the first launch, as something to wait for


class Turn(NamedTuple):
    """One launch, in the order in which they are given to the streams.

    Before it, `stream` waits for the launches `waits` on other streams, or for FORK if it was not
    used before and waits for none. `is_recorded`: some stream waits for this launch later.
    `follows`: what is before it on its stream is a launch, with nothing in between.
    """

    launch: int
    stream: int
    waits: tuple[int, ...]
    is_recorded: bool
    follows: bool


class Schedule(NamedTuple):
    """All launches of a pipeline. At the end the caller's stream waits for the launches `joins`."""

    streams: int
    turns: tuple[Turn, ...]
    joins: tuple[int, ...]


def schedule_of(after: Sequence[tuple[int, ...]], most_streams: int) -> Schedule:
    """Launches on streams, so that each comes after those that `after` names, and all that these
    come after.

    A launch takes the stream of a predecessor that no later one took, else one on which nothing
    is that it need not come after, else the one that was given something the longest ago.

    Assumes:  `after` names earlier launches only
    """
    assert most_streams >= 1, "the caller's stream is one"
    streams = _Streams(after, most_streams)
    planned = [streams.place(launch) for launch in range(len(after))]
    joins = streams.join()
    turns = tuple(
        Turn(launch, stream, waits, launch in streams.recorded, follows)
        for launch, (stream, waits, follows) in enumerate(planned)
    )
    return Schedule(streams.used, turns, joins)


class _Streams:
    """What was given to streams so far.

    `seen[s]` are the launches that are done before what is given to stream `s` next. Sets of
    launches are the bits of a number.
    """

    def __init__(self, after: Sequence[tuple[int, ...]], most_streams: int) -> None:
        self.used = 1
        self.recorded: set[int] = set()
        self._after = after
        self._most = most_streams
        self._seen = [0]
        self._last: list[int | None] = [None]
        self._stream_of: list[int] = []
        self._seen_after: list[int] = []  # of each launch, what an event after it stands for
        self._before = _all_before(after)

    def place(self, launch: int) -> tuple[int, tuple[int, ...], bool]:
        """Gives a launch to a stream: which, what it waits for, whether it follows a launch."""
        stream = self._taken_by(launch)
        is_new = stream == self.used
        if is_new:
            self.used += 1
            self._seen.append(0)
            self._last.append(None)
        waits = self._wait(stream, self._after[launch])
        if is_new and not waits:  # every launch is after the fork
            waits = (FORK,)
        follows = self._last[stream] is not None and not waits
        self._seen[stream] |= 1 << launch
        self._last[stream] = launch
        self._stream_of.append(stream)
        self._seen_after.append(self._seen[stream])
        return stream, waits, follows

    def join(self) -> tuple[int, ...]:
        """Has the caller's stream wait for all others."""
        return self._wait(0, [last for last in self._last[1:] if last is not None])

    def _wait(self, stream: int, launches: Sequence[int]) -> tuple[int, ...]:
        """Has a stream wait for launches; those that it has not seen, the latest first."""
        waits = []
        for launch in sorted(launches, reverse=True):
            if not self._seen[stream] >> launch & 1:
                waits.append(launch)
                self.recorded.add(launch)
                self._seen[stream] |= self._seen_after[launch]
        return tuple(waits)

    def _taken_by(self, launch: int) -> int:
        """The number of a stream, which may be the next one that is not used yet."""
        free = [
            stream
            for stream, earlier in ((self._stream_of[n], n) for n in self._after[launch])
            if self._last[stream] == earlier
        ]
        if free:
            return min(free)  # the caller's, which in the end waits for all others
        before = self._before[launch]
        for stream, last in enumerate(self._last):
            if last is None or before >> last & 1:
                return stream
        if self.used < self._most:
            return self.used
        return min(range(self.used), key=lambda stream: self._last[stream] or 0)


def _all_before(after: Sequence[tuple[int, ...]]) -> list[int]:
    found: list[int] = []
    for launches in after:
        before = 0
        for launch in launches:
            before |= 1 << launch | found[launch]
        found.append(before)
    return found
