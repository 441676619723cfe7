"""Who may launch while who has not finished: borrows of memory, across streams.

Two launches conflict if they share a byte and one of them writes it (two that only update it
atomically do not). What a stream is given runs in order, so launches on one stream never meet. As
long as all launches under way are on one stream, `UnderWay` (launch.py) compares that stream and is
done; when there are two, a `Ledger` keeps which bytes the launches of each have borrowed, and which
launches come before which:

- each launch has a number, and each stream a *clock*: of every other stream, up to which number its
  launches are done before whatever is launched here from now on;
- an event that a stream waits for puts the clock of where it was recorded into its own;
- the legacy default stream and the blocking streams of its device wait for each other.

Where nothing says that a conflict is ordered, the GPU is asked whether the earlier launch is done,
and if it is not:

1. where the order may have been made out of sight, an event orders the two. That is so where a
   tensor is another library's, which has streams and events of its own; where the earlier launch
   is not the last one on its stream (whoever waited for that stream in between was not seen); and
   where the later one's stream has work left, which may be a wait for the earlier launch;
2. else nothing can have ordered them, and the later launch is refused.

So no program that is right is refused: an event between what was in order already changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import local
from time import perf_counter
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from tilec.runtime.array import Array, facts_of
from tilec.runtime.errors import BorrowError, LaunchError
from tilec.runtime.overlap import may_overlap

if TYPE_CHECKING:
    from tilec.runtime.cuda_driver import Completion, Driver
    from tilec.runtime.entry import Started

Policy = Literal["refuse", "wait", "off"]
POLICIES: tuple[Policy, ...] = ("refuse", "wait", "off")

PER_THREAD_STREAM = 2  # CU_STREAM_PER_THREAD of cuda.h
_LEGACY = (0, 1)
# How long a stream that has nothing else to do may take to come to an event that it was given: some
# microseconds, unless the device has other work.
_PATIENCE_S = 100e-6

StreamKey = object  # what tells streams apart: see `key_of`
Clock = Mapping[StreamKey, int]


class Range(NamedTuple):
    """The bytes of one argument, from `start` to before `end`; `own` and `name` as in `Parameter`.

    `form` is the tensor, at whatever address: its strides say which of the bytes it has. Ranges of
    one `key` have the same bytes, and own them alike.
    """

    start: int
    end: int
    key: object
    own: str | None
    name: str
    form: Array

    def conflicts(self, other: Range) -> bool:
        """Whether launches that have these two, which meet, may not run at one time."""
        if self.own == other.own and self.own in ("shared", "atomic"):
            return False
        one, two = self.form._replace(pointer=self.start), other.form._replace(pointer=other.start)
        return may_overlap(one, two)


def range_at(address: int, span_bytes: int, own: str | None, name: str, form: Array) -> Range:
    """The range of a tensor of this form at an address."""
    key = address, own, facts_of(form)
    return Range(address, address + span_bytes, key, own, name, form)


class Touching(Protocol):
    """What is launched, and which bytes it touches where its tensors are at some addresses."""

    @property
    def label(self) -> str: ...

    def touches(self, addresses: Sequence[int]) -> list[Range]: ...


# What a launch has borrowed: what it is, where its tensors lie, and whether some of it is another
# library's. A plain tuple, since each launch makes one, and few are looked at.
Touched: TypeAlias = "tuple[Touching, Sequence[int], bool]"


def ranges_of(touched: Touched) -> list[Range]:
    """The bytes that a launch has borrowed."""
    what, addresses, _ = touched
    return what.touches(addresses)


class Borrower(Protocol):
    """A launch under way (launch.py)."""

    @property
    def is_over(self) -> bool: ...

    @property
    def stream(self) -> int: ...

    @property
    def entry(self) -> Started: ...

    @property
    def touched(self) -> Touched | None: ...

    @property
    def waits_for_legacy(self) -> bool | None: ...

    def event(self) -> Completion | None: ...


def is_over_soon(driver: Driver, event: Completion) -> bool:
    """Whether an event is over, which was perhaps recorded just now on a stream that is done."""
    until = perf_counter() + _PATIENCE_S
    while not driver.is_over(event):
        if perf_counter() > until:
            return False
    return True


def key_of(stream: int, device: int | None) -> StreamKey:
    """What tells a stream from others: two addresses are the legacy default stream of a device, and
    one is another stream in each thread."""
    if stream in _LEGACY:
        return "legacy", device
    if stream == PER_THREAD_STREAM:
        return "per thread", device, _this_thread()
    return stream


_THREAD = local()


def _this_thread() -> object:
    """Stands for a thread. The number that Python has for it is the next thread's once it is gone,
    while its stream may still be busy."""
    token: object = getattr(_THREAD, "token", None)
    if token is None:
        token = _THREAD.token = object()
    return token


class _Loan(NamedTuple):
    """What a launch has borrowed, by whom, and what its stream had waited for by then."""

    borrower: Borrower
    number: int
    clock: Clock


@dataclass
class _Stream:
    """What one stream was given. `loans` has the last launch that had each range, by its key: what
    comes after that launch comes after all earlier ones."""

    key: StreamKey
    address: int
    device: int | None
    loans: dict[object, tuple[Range, _Loan]] = field(default_factory=dict)
    last: int = 0
    clock: Clock = field(default_factory=dict)

    @property
    def is_legacy(self) -> bool:
        return self.address in _LEGACY

    def waits_for_legacy(self, driver: Driver) -> bool:
        """Whether the legacy stream is known to wait for all that is under way on it.

        The driver is asked about a stream that launches under way keep alive, and no other one:
        that may be gone.
        """
        live = [loan.borrower for _, loan in self.loans.values() if not loan.borrower.is_over]
        is_kept = all(borrower.waits_for_legacy is None for borrower in live)
        return is_kept and bool(live) and driver.waits_for_legacy(self.address)

    def come_after(self, key: StreamKey, number: int, clock: Clock) -> None:
        """What is launched from now on comes after a launch, and what that one came after."""
        merged = dict(self.clock)
        for other, known in ((key, number), *clock.items()):
            if other != self.key and merged.get(other, 0) < known:
                merged[other] = known
        self.clock = merged


class Ledger:
    """What the launches under way on several streams have borrowed. Not for two threads at once."""

    def __init__(self) -> None:
        self._streams: dict[StreamKey, _Stream] = {}
        self._numbers = count(1)
        # What was admitted last is mostly what is added next.
        self._admitted: tuple[Touched, _Stream, list[Range]] | None = None

    def add(self, borrower: Borrower) -> None:
        """Notes a launch that was started, in the thread that did."""
        touched, admitted = borrower.touched, self._admitted
        if admitted is not None and admitted[0] is touched:
            _, stream, ranges = admitted
        else:
            stream = self._stream(borrower.stream, borrower.entry.device)
            ranges = [] if touched is None else ranges_of(touched)
        stream.last = next(self._numbers)
        loan = _Loan(borrower, stream.last, stream.clock)
        for one in ranges:
            stream.loans[one.key] = one, loan

    def admit(
        self,
        driver: Driver,
        touched: Touched,
        address: int,
        device: int | None,
        policy: Policy,
        follows: Borrower | None = None,
    ) -> None:
        """Makes sure that a launch on a stream meets no other one that it conflicts with. It comes
        after the one that it `follows` whatever the streams.

        Raises:   BorrowError if it would, and nothing can have ordered them
        """
        stream = self._stream(address, device)
        self._wait_by_default(driver, stream)
        before = stream.clock
        if follows is not None:
            self.ordered(follows, address)
        wanted = ranges_of(touched)
        try:
            for other in self._streams.values():
                if other is stream or other.last <= stream.clock.get(other.key, 0):
                    continue
                found = self._conflict(stream, other, wanted)
                if found is not None:
                    _Conflict(driver, touched, stream, other, *found).resolve(policy)
        except BaseException:
            stream.clock = before  # what is not launched makes nobody wait for what it follows
            raise
        self._admitted = touched, stream, wanted

    def ordered(self, first: Borrower | tuple[int, int | None], then: int) -> None:
        """Notes that a stream waits for a launch, or for all that another stream was given."""
        if isinstance(first, tuple):
            before = self._stream(*first)
            after = self._stream(then, first[1])
            after.come_after(before.key, before.last, before.clock)
            return
        device = first.entry.device
        before, after = self._stream(first.stream, device), self._stream(then, device)
        for _, loan in before.loans.values():
            if loan.borrower is first:
                after.come_after(before.key, loan.number, loan.clock)

    def prune(self) -> list[int]:
        """Forgets what is over; the addresses of the streams that something is left of."""
        for place, stream in list(self._streams.items()):
            stream.loans = {
                key: lent for key, lent in stream.loans.items() if not lent[1].borrower.is_over
            }
            if not stream.loans:
                del self._streams[place]
        self._admitted = None
        return [stream.address for stream in self._streams.values()]

    def _stream(self, address: int, device: int | None) -> _Stream:
        key = key_of(address, device)
        known = self._streams.get(key)
        if known is None:
            known = self._streams[key] = _Stream(key, address, device)
        return known

    def _wait_by_default(self, driver: Driver, stream: _Stream) -> None:
        """The legacy default stream waits for blocking streams, and they for it."""
        for other in self._streams.values():
            if other.is_legacy == stream.is_legacy or other.device != stream.device:
                continue
            # Asked each time: the address may be that of another stream by now.
            if (
                other.waits_for_legacy(driver)
                if stream.is_legacy
                else driver.waits_for_legacy(stream.address)
            ):
                stream.come_after(other.key, other.last, other.clock)

    @staticmethod
    def _conflict(
        stream: _Stream, other: _Stream, wanted: Iterable[Range]
    ) -> tuple[_Loan, Range, Range] | None:
        """The last launch on another stream that conflicts, and does not come before."""
        last = stream.clock.get(other.key, 0)
        found: tuple[_Loan, Range, Range] | None = None
        for lent, loan in other.loans.values():
            start, end = lent[0], lent[1]
            for one in wanted:
                # The cheapest question first: few ranges meet.
                if one[0] < end and start < one[1] and loan.number > last and one.conflicts(lent):
                    if not loan.borrower.is_over:
                        found, last = (loan, lent, one), loan.number
                    break
        return found


@dataclass(frozen=True)
class _Conflict:
    """A launch that is about to be given to `stream`, and an earlier one on `other`."""

    driver: Driver
    touched: Touched
    stream: _Stream
    other: _Stream
    loan: _Loan
    lent: Range
    wanted: Range

    def resolve(self, policy: Policy) -> None:
        """Returns when the later launch comes after the earlier one.

        Raises:   BorrowError
        """
        try:
            event = self.loan.borrower.event()
        except LaunchError:  # its stream is gone, or the device failed: nothing runs then
            self.driver.finish_device(self.loan.borrower.entry)
            event = None
        if event is None:  # or it is being captured into a graph, and does not run now
            return
        if self.driver.is_over(event):
            self._come_after()
            return
        if policy == "refuse" and self._is_certain():
            if not is_over_soon(self.driver, event):
                raise BorrowError(self._message())
            self._come_after()
            return
        if self.driver.order(event, self.stream.address, self.stream.device):
            self._come_after()

    def _come_after(self) -> None:
        self.stream.come_after(self.other.key, self.loan.number, self.loan.clock)

    def _is_certain(self) -> bool:
        """Whether nothing that is out of sight can have ordered the two."""
        earlier = self.loan.borrower.touched
        if earlier is None or self.touched[2] or earlier[2]:
            return False
        if self.loan.number != self.other.last:
            return False
        if self.stream.is_legacy and self.loan.borrower.waits_for_legacy:
            return False  # unless its stream is gone, the legacy one waits for it
        # A stream that waits for the earlier launch does not come to its end before that is done.
        tail = self.driver.tail(self.stream.address, self.stream.device)
        return tail is not None and is_over_soon(self.driver, tail)

    def _message(self) -> str:
        earlier = self.loan.borrower.touched
        assert earlier is not None, "it has a loan"
        return (
            f"`{self.touched[0].label}` on {self._name(self.stream)} {_use(self.wanted)}, which "
            f"`{earlier[0].label}`, still under way on {self._name(self.other)}, "
            f"{_use(self.lent, 'as ')}: wait for its handle, or give `order=True` to run "
            f"after it"
        )

    @staticmethod
    def _name(stream: _Stream) -> str:
        if stream.is_legacy:
            return "the default stream"
        if stream.address == PER_THREAD_STREAM:
            return "its thread's default stream"
        return f"stream {stream.address:#x}"


_VERBS = {"shared": "reads", "atomic": "updates"}


def _use(one: Range, as_: str = "") -> str:
    return f"{_VERBS.get(one.own or '', 'writes')} {as_}`{one.name}`"
