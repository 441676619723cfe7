"""Launches under way, and what they borrow: it lives until the GPU is done with it.

An event for each launch would cost more than the launch. So each launch goes into `UNDER_WAY`, and
one event for each stream is recorded for all that gathered there, when they are many, or hold much
memory, or when memory is asked for. An event that is recorded later is done later, never too early.
"""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from tilec.runtime.errors import LaunchError, failure

if TYPE_CHECKING:
    from tilec.runtime.cuda_driver import Completion, Driver
    from tilec.runtime.entry import Started

# Weights (entry.py) that gather before an event is recorded: 64 launches of small tensors, or what
# borrows 16 MiB. A launch that reaches it alone runs for so long that its own event costs little.
LIMIT = 64


_PER_THREAD_STREAM = 2  # CU_STREAM_PER_THREAD of cuda.h


def is_passing(address: int, given: object) -> bool:
    """Whether a stream may be gone, or another one, later: what is given as an address is not kept
    alive, and a thread's own stream is another one in another thread."""
    return address >= _PER_THREAD_STREAM and (
        address == _PER_THREAD_STREAM or isinstance(given, int)
    )


class Launch:
    """A launch under way. What it borrows stays alive until it is done, waited for or not.

    Its event is recorded when it is first asked for, which may be after later work was given to the
    stream: the launch then counts as done when that is.
    """

    __slots__ = ("__weakref__", "_borrowed", "_driver", "_entry", "_event", "_stream")

    def __init__(self, driver: Driver, entry: Started, stream: int, borrowed: object) -> None:
        self._driver = driver
        self._entry = entry
        self._stream = stream
        self._event: Completion | None = None
        self._borrowed = None if entry.grid is None else borrowed  # None: nothing is under way

    @property
    def done(self) -> bool:
        """Whether the kernel has finished.

        Raises:   LaunchError if it, or work before it, failed
        """
        event = self._recorded()
        if event is None:
            return self._borrowed is None
        try:
            return event.is_done
        except Exception as error:
            raise self._failure(error) from error

    def wait(self) -> None:
        """Returns when the kernel is done.

        Raises:   LaunchError if it, or work before it, failed; or if its stream is being captured
                  into a graph, so that it runs only when the graph does
        """
        event = self._recorded()
        if event is None:
            if self._borrowed is not None:
                symbol = self._entry.kernel.symbol
                raise LaunchError(f"`{symbol}` does not run before the graph it is captured into")
            return
        try:
            event.sync()
        except Exception as error:
            raise self._failure(error) from error
        self._event = self._borrowed = None

    def _recorded(self) -> Completion | None:
        """The event that tells when this is done; None if it is, or its stream is being captured.

        Raises:   LaunchError if the device failed
        """
        if self._event is None and self._borrowed is not None:
            self._event = self._driver.recorded(self._entry, self._stream)
        return self._event

    def _failure(self, error: Exception) -> LaunchError:
        return failure(f"`{self._entry.kernel.symbol}` failed on the GPU", error)

    def __repr__(self) -> str:
        state = "done" if self._borrowed is None else "under way"
        return f"Launch({self._entry.kernel.symbol}, {state})"


class UnderWay:
    """The launches that may still run, whether or not their handles were dropped."""

    __slots__ = ("_gathered", "_room", "_settling", "_timed")

    def __init__(self) -> None:
        self._room = LIMIT  # threads may miscount it, which moves an event by a few launches
        self._gathered: deque[Launch] = deque()  # without an event for all of them
        self._timed: deque[tuple[Completion, list[Launch]]] = deque()
        self._settling = Lock()

    def hold(self, launch: Launch, weight: int, record_now: bool = False) -> None:
        """Keeps what a launch borrows until it is done. `record_now` where its stream may be gone
        later."""
        self._gathered.append(launch)
        if record_now or weight >= LIMIT:
            launch._recorded()
        self._room -= weight
        if self._room < 0:
            self.settle()

    def settle(self) -> None:
        """Lets go of what the GPU is done with, and records events for what has none."""
        if not (self._gathered or self._timed) or not self._settling.acquire(blocking=False):
            return
        try:
            self._record_for_gathered()
            heavy_left = self._let_go_of_done()
            self._room = 0 if heavy_left else LIMIT  # 0: the next launch asks again
        finally:
            self._settling.release()

    def _record_for_gathered(self) -> None:
        batches: dict[tuple[int, int | None], list[Launch]] = {}
        for _ in range(len(self._gathered)):  # other threads may add to it meanwhile
            launch = self._gathered.popleft()
            if launch._borrowed is None:
                continue
            if launch._event is not None:
                self._timed.append((launch._event, [launch]))
                continue
            place = launch._stream, launch._entry.device
            batch = batches.get(place)
            if batch is None:
                batches[place] = [launch]
            else:
                batch.append(launch)
        for batch in batches.values():
            self._record_for(batch)

    def _record_for(self, batch: list[Launch]) -> None:
        driver, entry, stream = batch[-1]._driver, batch[-1]._entry, batch[-1]._stream
        try:
            event = driver.recorded(entry, stream)
        except LaunchError:
            # The stream is gone, or the device failed: when the device is done, so are these.
            driver.finish_device(entry)
            return
        if event is None:  # the stream is being captured into a graph
            self._gathered.extend(batch)
        else:
            self._timed.append((event, batch))

    def _let_go_of_done(self) -> bool:
        """Whether something heavy is left."""
        heavy_left = False
        for _ in range(len(self._timed)):
            event, batch = self._timed.popleft()
            if not batch[0]._driver.is_over(event):
                self._timed.append((event, batch))
                heavy_left |= any(launch._entry.weight >= LIMIT for launch in batch)
        return heavy_left


UNDER_WAY = UnderWay()
