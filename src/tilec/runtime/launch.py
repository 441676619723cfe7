"""Launches under way, and what they borrow: it lives until the GPU is done with it.

An event for each launch would cost more than the launch. So each launch goes into `UNDER_WAY`, and
one event for each stream is recorded for all that gathered there, when they are many, or hold much
memory, or when memory is asked for. An event that is recorded later is done later, never too early.

What they borrow, other launches may not write: `UNDER_WAY.only` is the stream that all of them are
on, and where there are several streams, a `Ledger` (borrows.py) says who may launch.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import deque
from itertools import takewhile
from operator import attrgetter
from threading import get_ident
from typing import TYPE_CHECKING

from tilec.printable import printable
from tilec.runtime.borrows import (
    PER_THREAD_STREAM,
    POLICIES,
    Ledger,
    Policy,
    Range,
    StreamKey,
    Touched,
    is_over_soon,
    key_of,
    ranges_of,
)
from tilec.runtime.errors import LaunchError, TilecError, failure
from tilec.runtime.native import fields_of_handles
from tilec.runtime.owned_lock import OwnedLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from tilec.runtime.cuda_driver import Completion, Driver
    from tilec.runtime.entry import Start, Started

# Weights (entry.py) that gather before an event is recorded: 64 launches of small tensors, or what
# borrows 16 MiB. A launch that reaches it alone runs for so long that its own event costs little.
LIMIT = 64
# The same when, after so many launches on one stream, another one is used: what was on the first
# may be done soon, and launches are on one stream again, which costs less. So many in a row, where
# several streams had launches, are a reason to ask, too.
LIMIT_AFTER_CHANGE = 8

# A batch is launches with one event, which is recorded behind all of them. Batches of one place are
# of one stream, in the order in which their events were recorded: what comes before one that is
# over is over. Not so where the stream is passing (the last field): there the address may have been
# that of several streams.
_Batch: TypeAlias = "tuple[Completion, list[Launch]]"
_Place: TypeAlias = "tuple[int, int | None, bool]"


def is_passing(address: int, given: object) -> bool:
    """Whether a stream may be gone, or another one, later: what is given as an address is not kept
    alive, and a thread's own stream is another one in another thread."""
    return address >= PER_THREAD_STREAM and (address == PER_THREAD_STREAM or isinstance(given, int))


class _Fields:
    """What a `Launch` has. Where the C path was built, its `Handle` has the same."""

    __slots__ = (
        "_borrowed",
        "_driver",
        "_event",
        "_is_over",
        "_is_passing",
        "asker",
        "entry",
        "stream",
        "touched",
        "waits_for_legacy",
    )


if not TYPE_CHECKING:
    _Fields = fields_of_handles(_Fields)


class Launch(_Fields):
    """A launch under way. What it borrows stays alive until it is done, waited for or not.

    Its event is recorded when it is first asked for, which may be after later work was given to the
    stream: the launch then counts as done when that is.
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        driver: Driver,
        entry: Started,
        stream: int,
        borrowed: object,
        touched: Touched | None = None,
    ) -> None:
        # hot_path.c fills in the same.
        self.touched = touched
        self._is_over = False
        # The thread that may ask the driver about it: None as long as it is not started, 0 any. On
        # a stream that is another one in another thread, or later, only the thread that started it.
        self.asker: int | None = None
        # Whether its stream may be gone, or another one, later: then it is asked about no more.
        self._is_passing = False
        # What was known of a passing stream when this was launched; None: it can be asked.
        self.waits_for_legacy: bool | None = None
        self._driver = driver
        self.entry = entry  # what it is a launch of
        self.stream = stream  # its address, 0 the default stream
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
                symbol = self.entry.kernel.symbol
                raise LaunchError(f"`{symbol}` does not run before the graph it is captured into")
            return
        try:
            event.sync()
        except Exception as error:
            raise self._failure(error) from error
        self.let_go()

    def let_go(self) -> None:
        """For whoever knows that it is done."""
        self._event = self._borrowed = None

    @property
    def is_over(self) -> bool:
        """Whether it is known to be done; the GPU is not asked."""
        return self._is_over or self._borrowed is None

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.entry.kernel.symbol

    def ranges(self) -> list[Range]:
        """The bytes that it has borrowed."""
        return [] if self.touched is None else ranges_of(self.touched)

    def may_run(self) -> bool:
        """Whether it is not done, or waits for a graph that it is captured into.

        Raises:   LaunchError if the device failed, or the stream is gone
        """
        if self.is_over:
            return False
        event = self._recorded()
        return event is None or not is_over_soon(self._driver, event)

    def event(self) -> Completion | None:
        """What tells when it is done, as far as it is not known to be; None for one that is being
        captured too.

        Raises:   LaunchError if the device failed, or the stream is gone
        """
        return None if self.is_over else self._recorded()

    def may_be_asked(self) -> bool:
        """Whether this thread may ask the driver about it."""
        return self.asker == 0 or self.asker == get_ident()

    def record_now(self) -> None:
        """Asks all that is to be known of its stream, which may be gone, or another one, later.

        Raises:   LaunchError if the device failed
        """
        try:
            self._record()
        except LaunchError:  # nothing runs any more
            self._is_passing, self.waits_for_legacy, self.asker = True, False, 0
            raise
        # Not after an interrupt, which leaves it to this thread to ask later.
        self._is_passing, self.waits_for_legacy, self.asker = True, False, 0
        if self._event is not None:
            self.waits_for_legacy = self._driver.waits_for_legacy(self.stream)

    def _recorded(self) -> Completion | None:
        """The event that tells when this is done; None if it is, or may not be asked about (yet),
        or its stream is being captured, or was when this was launched on one that is passing.

        Raises:   LaunchError if the device failed
        """
        if self._event is None and not self._is_passing and self.may_be_asked():
            self._record()
        return self._event

    def _record(self) -> None:
        if self._borrowed is not None:
            self._event = self._driver.recorded(self.entry, self.stream)

    def _failure(self, error: Exception) -> LaunchError:
        return failure(f"`{self.entry.kernel.symbol}` failed on the GPU", error)

    def __repr__(self) -> str:
        state = "done" if self._borrowed is None else "under way"
        return printable(f"Launch({self.entry.kernel.symbol}, {state})")


class UnderWay:
    """The launches that may still run, whether or not their handles were dropped.

    `only` is the stream that all of them are on, None where that is not so. Launches compare it
    with theirs and call `admit` where it is another one.
    """

    __slots__ = (
        "_gathered",
        "_heavy",
        "_ledger",
        "_policy",
        "_room",
        "_row",
        "_settling",
        "_timed",
        "only",
    )

    def __init__(self) -> None:
        self._room = LIMIT  # threads may miscount it, which moves an event by a few launches
        self._gathered: deque[Launch] = deque()  # without an event for all of them
        self._timed: dict[_Place, deque[_Batch]] = {}  # with one
        self._heavy = 0  # how many of these hold much memory
        self._row: tuple[int, int] = 0, 0  # while there is a ledger: the last stream, how often
        self._settling = OwnedLock()
        self.only: int | None = None
        self._ledger: Ledger | None = None  # where launches are on several streams
        self._policy: Policy = "refuse"

    def order_conflicts(self, policy: Policy) -> None:
        """What becomes of launches that conflict with one under way on another stream.

        Raises:   TilecError if the policy is none
        """
        if policy not in POLICIES:
            raise TilecError(f"expected one of {', '.join(POLICIES)}, got {policy!r}")
        self._policy = policy
        self.only = None  # launches ask anew

    def admit(
        self,
        driver: Driver,
        touched: Touched,
        entry: Started,
        stream: int,
        order: bool = False,
        follows: Launch | None = None,
    ) -> None:
        """Makes sure that a launch that is about to start conflicts with none under way, or comes
        after it: of `order` and the policy, by an event. It `follows` another one by itself.

        Raises:   BorrowError if it would conflict
        """
        policy: Policy = "wait" if order else self._policy
        if entry.grid is None:
            return
        if policy == "off" and self._ledger is None:
            self.only = None
            return
        done: list[Launch] = []  # lets go of what it borrowed when the lock is free

        def admit() -> None:
            ledger = self._ledger_for(stream, entry.device, done)
            # What is captured into a graph runs when that does, and in the order that it has.
            if ledger is None or policy == "off" or driver.is_captured(stream):
                return
            ledger.admit(driver, touched, stream, entry.device, policy, follows)
            self._count_row(stream)

        self._settling.run(admit)

    def _count_row(self, stream: int) -> None:
        """Has it asked soon how far other streams are, after some launches in a row on one.

        Twice, since events that are recorded the first time are over the second time.
        """
        last, count = self._row
        count = count + 1 if last == stream else 1
        self._row = stream, count
        if count in (LIMIT_AFTER_CHANGE, 2 * LIMIT_AFTER_CHANGE):
            self._room = 0

    def ordered(
        self, first: Launch | tuple[int, int | None], then: int, order: Callable[[], None]
    ) -> None:
        """Has a stream wait, by `order`, for a launch, or for all that another stream was given so
        far, and notes that. No launch is noted between the two.

        Raises:   what `order` does; nothing is noted then
        """
        done: list[Launch] = []

        def note() -> None:
            device = first[1] if isinstance(first, tuple) else first.entry.device
            ledger = self._ledger_for(then, device, done)
            order()
            if ledger is not None:
                ledger.ordered(first, then)

        self._settling.run(note)

    def borrowers(self) -> list[Launch]:
        """The launches that are not known to be done."""
        return self._settling.run(self._live)

    def _ledger_for(self, stream: int, device: int | None, done: list[Launch]) -> Ledger | None:
        """What says who may launch on a stream; None if nothing is on another one.

        Launches that turn out to be done are added to `done`.
        """
        if self._ledger is not None:
            return self._ledger
        # The address of a thread's own stream says nothing of other threads.
        if stream != PER_THREAD_STREAM and self._becomes_only(stream, device, done):
            return None
        self.only = None
        if len(self._gathered) >= LIMIT_AFTER_CHANGE:  # else streams may well go on taking turns
            # Soon it is asked how far the other stream was at this moment.
            self._record_for_gathered(done)
            self._room = min(self._room, LIMIT_AFTER_CHANGE)
        ledger = Ledger()
        for launch in self._live():
            ledger.add(launch)
        self._ledger = ledger
        return ledger

    def _becomes_only(self, stream: int, device: int | None, done: list[Launch]) -> bool:
        """Whether all that is under way is on a stream, which `only` is then."""
        key, is_only = key_of(stream, device), False
        try:
            # First: `start` adds a launch, then looks whether this is its stream.
            self.only = stream
            is_only = self._is_all_on(key)
            if not is_only:
                self._let_go_of_done(done)  # what was waited for meanwhile, say
                is_only = self._is_all_on(key)
        finally:
            if not is_only:
                self.only = None
        return is_only

    def _is_all_on(self, key: StreamKey) -> bool:
        return all(key_of(one.stream, one.entry.device) == key for one in self._live())

    def _live(self) -> list[Launch]:
        timed = [one for queue in self._timed.values() for _, batch in queue for one in batch]
        return [launch for launch in (*timed, *self._gathered) if not launch.is_over]

    def start(
        self,
        launch: Launch,
        start: Start,
        weight: int,
        passing: bool = False,
        is_one: bool = True,
    ) -> None:
        """Starts a launch, which is under way from before that on: whenever the user interrupts it,
        what it borrows is kept until the GPU is done with it. (hot_path.c follows this.)

        If not `is_one`, some of it may have been started where it fails.

        Raises:   what `start` does; LaunchError if the device failed
        """
        asker = get_ident() if passing or launch.stream == PER_THREAD_STREAM else 0
        try:
            self._gathered.append(launch)
            start(launch.stream)
        except Exception:
            if is_one:
                launch.let_go()
            self.hold(launch, weight, False)  # it has gathered, too
            raise
        finally:
            launch.asker = asker
            if self.only != launch.stream:
                try:
                    self._note(launch)
                except BaseException:
                    self.only = self._ledger = None  # made anew, of all that is under way
                    raise
        if asker or self._room <= weight:
            self.hold(launch, weight, asker != 0)
        else:
            self._room -= weight

    def hold(self, launch: Launch, weight: int, passing: bool) -> None:
        """Sees to it that what a launch borrows, which was started, is let go when it is done."""
        try:
            if passing:
                launch.record_now()
        finally:
            self._room -= weight
            if self._room <= 0:
                if weight >= LIMIT:
                    launch._recorded()
                self.settle()

    def _note(self, launch: Launch) -> None:
        def note() -> None:
            if launch.is_over:
                return
            if self._ledger is not None:
                self._ledger.add(launch)
            else:  # another thread took its stream for the only one while this launch was started
                self.only = None

        self._settling.run(note)

    def settle(self) -> None:
        """Lets go of what the GPU is done with, and records events for what has none."""
        if self._gathered or self._timed:
            # What is borrowed goes when the lock is free: a tensor of another library may run code
            # of its own then, which frees memory, say.
            done: list[Launch] = []
            self._settling.run_if_free(lambda: self._settle(done))

    def _settle(self, done: list[Launch]) -> None:
        self._record_for_gathered(done)
        heavy_left = self._let_go_of_done(done)
        self._forget_streams()
        self._room = 0 if heavy_left else LIMIT  # 0: the next launch asks again

    def _record_for_gathered(self, done: list[Launch]) -> None:
        batches: dict[_Place, list[Launch]] = {}
        gathered = self._gathered
        entry: Started | None = None  # of the last one, mostly that of the next
        stream = 0
        batch: list[Launch] = []
        try:
            for _ in range(len(gathered)):  # other threads may add to it meanwhile
                launch = gathered[0]
                # What most are, before the question that answers it for all.
                is_plain = launch._event is None and launch.asker == 0 and not launch._is_passing
                if launch._borrowed is not None and (
                    is_plain or not self._is_settled(launch, done)
                ):
                    if launch.entry is not entry or launch.stream != stream:
                        entry, stream = launch.entry, launch.stream
                        batch = batches.setdefault((stream, entry.device, False), [])
                    batch.append(launch)
                gathered.popleft()  # when it is elsewhere: an interrupt may come before
            for place in list(batches):
                self._record_for(batches[place], done)
                del batches[place]
        finally:
            for batch in batches.values():
                gathered.extend(batch)

    def _is_settled(self, launch: Launch, done: list[Launch]) -> bool:
        """Whether a launch that gathered needs no event (yet)."""
        if launch._event is not None:
            self._wait_for(launch._event, [launch])
        elif launch._is_passing:  # it was captured into a graph, whose stream may be gone
            _are_over([launch], done)
        elif launch.may_be_asked():
            return False
        else:  # it is about to be started
            self._gathered.append(launch)
        return True

    def _record_for(self, batch: list[Launch], done: list[Launch]) -> None:
        driver, entry, stream = batch[-1]._driver, batch[-1].entry, batch[-1].stream
        try:
            event = driver.recorded(entry, stream)
        except LaunchError:
            # The stream is gone, or the device failed: when the device is done, so are these.
            driver.finish_device(entry)
            _are_over(batch, done)
            return
        if event is None:  # the stream is being captured into a graph
            self._gathered.extend(batch)
        else:
            for launch in batch:  # whoever asks for one of them later needs no event more
                launch._event = event
            self._wait_for(event, batch)

    def _wait_for(self, event: Completion, batch: list[Launch]) -> None:
        self._timed.setdefault(_place_of(batch[0]), deque()).append((event, batch))
        self._heavy += _heavy_among(batch)

    def _let_go_of_done(self, done: list[Launch]) -> bool:
        """Whether something heavy is left."""
        for place, queue in list(self._timed.items()):
            for _ in range(_done_among(queue)):
                _, batch = queue[0]
                _are_over(batch, done)
                queue.popleft()
                self._heavy -= _heavy_among(batch)
            if not queue:
                del self._timed[place]
        return self._heavy > 0

    def _forget_streams(self) -> None:
        """Back to one stream, if launches under way are on one."""
        if self._ledger is None:
            return
        left = self._ledger.prune()
        if len(left) <= 1 and PER_THREAD_STREAM not in left:
            self._ledger = None
            self.only = left[0] if left else None

    def forget_threads(self) -> None:
        """In a process that was forked: a thread that is not there had the lock, perhaps."""
        self._settling = OwnedLock()


def _place_of(launch: Launch) -> _Place:
    return launch.stream, launch.entry.device, launch._is_passing


def _done_among(queue: deque[_Batch]) -> int:
    """How many batches of a place are over, from the first on.

    One question suffices for a stream that is busy with the first, two for one that is done.
    """
    if not queue or not _is_over(queue[0]):  # an interrupt may leave it empty
        return 0
    if queue[0][1][0]._is_passing:  # each is asked for, once in its life
        return sum(1 for _ in takewhile(_is_over, queue))
    last = len(queue) - 1
    if last == 0 or _is_over(queue[last]):
        return len(queue)
    return bisect_left(range(last), True, lo=1, key=lambda number: not _is_over(queue[number]))


def _is_over(batch: _Batch) -> bool:
    event, launches = batch
    return launches[0]._driver.is_over(event)


def _are_over(batch: list[Launch], done: list[Launch]) -> None:
    for launch in batch:
        launch._is_over = True
    done += batch


_weight: Callable[[Launch], int] = attrgetter("entry.weight")


def _heavy_among(batch: list[Launch]) -> int:
    return sum(map(LIMIT.__le__, map(_weight, batch)))


UNDER_WAY = UnderWay()
os.register_at_fork(after_in_child=UNDER_WAY.forget_threads)
