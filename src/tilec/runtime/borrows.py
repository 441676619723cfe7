"""Arguments of launches whose handles were dropped: they live until the GPU is done with them.

An event for each launch would cost more than the launch. So dropped launches gather, and one event
for each stream is recorded for all of them when they are many (or hold much memory), or when memory
is asked for. An event that is recorded later is done later, never too early.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tilec.runtime.cuda_driver import Completion, Driver
    from tilec.runtime.entry import Entry

# Weights (entry.py) that gather before an event is recorded: 64 launches of small tensors, or what
# borrows 16 MiB. A launch that reaches it alone runs for so long that its own event costs little.
LIMIT = 64


class _Loose(NamedTuple):
    """A launch that no event was recorded for."""

    driver: Driver
    entry: Entry
    stream: int
    borrowed: object


class _Timed(NamedTuple):
    """What is borrowed until an event is done; heavy if it is worth asking at each launch."""

    driver: Driver
    event: Completion
    borrowed: object
    is_heavy: bool


class Borrows:
    """What dropped launches hold. `due` says that the next launch should `settle` it."""

    __slots__ = ("_loose", "_settling", "_timed", "_weight", "due")

    def __init__(self) -> None:
        self.due = False
        self._weight = 0  # threads may miscount it, which moves an event by a few launches
        self._loose: deque[_Loose] = deque()
        self._timed: deque[_Timed] = deque()
        self._settling = Lock()

    def leave(
        self,
        driver: Driver,
        entry: Entry,
        stream: int,
        event: Completion | None,
        borrowed: object,
    ) -> None:
        """Takes over from a handle. Calls nothing of CUDA and takes no lock: finalizers call it."""
        if event is not None:
            self._timed.append(_Timed(driver, event, borrowed, is_heavy=True))
            self.due = True
            return
        self._loose.append(_Loose(driver, entry, stream, borrowed))
        self._weight += entry.weight
        if self._weight >= LIMIT:
            self.due = True

    def settle(self) -> None:
        """Lets go of what the GPU is done with, and records events for what has none."""
        if not (self._loose or self._timed) or not self._settling.acquire(blocking=False):
            return
        try:
            self._weight = 0
            self._record()
            self.due = self._forget_done()
        finally:
            self._settling.release()

    def _record(self) -> None:
        batches: dict[tuple[int, int, int | None], list[_Loose]] = {}
        for _ in range(len(self._loose)):  # finalizers may add to it meanwhile
            launch = self._loose.popleft()
            place = (id(launch.driver), launch.stream, launch.entry.device)
            batches.setdefault(place, []).append(launch)
        for batch in batches.values():
            driver, entry, stream, _ = batch[0]
            try:
                event = driver.recorded(entry, stream)
            except Exception:
                # The stream was destroyed, or the device failed: after this nothing runs.
                driver.finish_device(entry)
                continue
            if event is None:  # the stream is being captured into a graph
                self._loose.extend(batch)
            else:
                borrowed = [launch.borrowed for launch in batch]
                self._timed.append(_Timed(driver, event, borrowed, is_heavy=False))

    def _forget_done(self) -> bool:
        """Whether something heavy is left."""
        heavy_left = False
        for _ in range(len(self._timed)):
            timed = self._timed.popleft()
            if not timed.driver.is_over(timed.event):
                self._timed.append(timed)
                heavy_left |= timed.is_heavy
        return heavy_left


BORROWS = Borrows()
