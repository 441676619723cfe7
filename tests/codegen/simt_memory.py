"""The memory of a GPU as seen from one block: tensors between guards, shared memory, and races.

Every access is checked: it lies inside a tensor (or inside the shared memory that was asked for),
is aligned, reads what was written, and is ordered by a barrier against accesses of other threads to
the same bytes, one of which writes. Atomic updates and relaxed stores need no order among each
other, and what a program reads after it acquired may be what another one wrote. Where a grid before
may still run (`starts_early`), whoever accesses a tensor has waited for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

LANES = 32
SHARED_BASE = 1 << 20
GLOBAL_FROM = 1 << 32  # tensors are above, what blocks have for themselves below
_NOBODY, _SEVERAL = -1, -2


class SimtError(AssertionError):
    """What a thread did that it may not do."""


@dataclass
class Clock:
    """How many barriers have been passed: of the block, of the warps, and which program runs."""

    block: int = 0
    warp: int = 0
    program: int = 0
    acquired: bool = False  # the program has seen what others released


class _Accesses:
    """Who accessed each byte last, and when."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.latest = -1  # of the times of the block

    def _begin(self) -> None:
        """Made with the first access: most of what is only read has none."""
        self.thread = np.full(self._size, _NOBODY, np.int32)
        self.warp = np.full(self._size, _NOBODY, np.int32)
        self.block_time = np.full(self._size, -1, np.int64)
        self.warp_time = np.full(self._size, -1, np.int64)

    def unordered(self, places: Array, threads: Array, clock: Clock) -> Array:
        """Where another thread's access is not ordered before one of these threads now."""
        if self.latest < clock.block:
            return np.zeros(len(places), bool)
        recent = self.block_time[places] == clock.block
        other = self.thread[places] != threads
        same_warp = self.warp[places] == threads // LANES
        return recent & other & ~(same_warp & (self.warp_time[places] < clock.warp))

    def note(self, places: Array, threads: Array, clock: Clock) -> None:
        if self.latest < 0:
            self._begin()
        self.latest = clock.block
        stale = self.block_time[places] < clock.block
        for kept, new in ((self.thread, threads), (self.warp, threads // LANES)):
            kept[places[stale]] = _NOBODY
            # Threads of one instruction may share a byte: whoever differs from the first is noted.
            first = np.where(kept[places] == _NOBODY, new, kept[places])
            kept[places] = first
            differs = kept[places] != new
            kept[places[differs]] = _SEVERAL
        self.block_time[places] = clock.block
        self.warp_time[places] = clock.warp


class Segment:
    """A stretch of addresses that may be accessed; `written` says which bytes hold something."""

    def __init__(
        self, name: str, start: int, content: Array, *, is_read_only: bool, is_written: bool = True
    ) -> None:
        self.name, self.start, self.bytes = name, start, content
        self.is_read_only = is_read_only
        self.written = np.full(content.size, is_written)
        self.reads, self.writes = _Accesses(content.size), _Accesses(content.size)
        self.atomics = _Accesses(content.size)  # and relaxed stores: they may meet each other
        self.writer = np.full(content.size, _NOBODY, np.int64)  # the program, of global memory

    @property
    def end(self) -> int:
        return self.start + int(self.bytes.size)

    @cached_property
    def _last(self) -> Array:
        """Room to note which of several places came last."""
        return np.zeros(self.bytes.size, np.int32)

    def are_distinct(self, places: Array) -> bool:
        """Whether no byte is among the places twice."""
        numbers = np.arange(len(places), dtype=np.int32)
        self._last[places] = numbers
        return bool((self._last[places] == numbers).all())


class Memory:
    """Segments by address; `clock` is moved on by whoever executes barriers."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []  # by address
        self.waited: Array | None = None  # which threads have, where a grid before may still run
        self.clock = Clock()
        self._note_places()

    def add(self, *segments: Segment) -> None:
        self.segments = sorted([*self.segments, *segments], key=attrgetter("start"))
        self._note_places()

    def remove(self, segment: Segment) -> None:
        self.segments.remove(segment)
        self._note_places()

    def start_early(self, threads: int) -> None:
        self.waited = np.zeros(threads, bool)

    def expect_waited(self, threads: Any) -> None:
        """That these threads may access what the grid before did."""
        if self.waited is not None and not self.waited[threads].all():
            raise SimtError("an access to memory, without a wait for the grid before")

    def expect_all_waited(self) -> None:
        if self.waited is not None and not self.waited.all():
            raise SimtError("a thread ends, without a wait for the grid before")

    def _note_places(self) -> None:
        self._starts = np.array([s.start for s in self.segments])
        self._ends = np.array([s.end for s in self.segments])

    def load(
        self, addresses: Array, size: int, threads: Array, *, read_only: bool = False
    ) -> Array:
        """Shapes: addresses (n,) of active threads -> bytes (n, size)."""
        found = np.zeros((len(addresses), size), np.uint8)
        for segment, chosen, places in self._resolve(addresses, size):
            who = np.repeat(threads[chosen], size)
            flat = places.ravel()
            self._expect_waited(segment, who)
            self._expect(segment, segment.written[flat], who, "reads what nobody wrote")
            self._expect(segment, not read_only or segment.is_read_only, who, "takes as constant")
            found[chosen] = segment.bytes[places]
            if segment.is_read_only:
                continue  # nobody writes there: there is nothing to be ordered
            for kind in (segment.writes, segment.atomics):
                self._expect(
                    segment,
                    ~kind.unordered(flat, who, self.clock),
                    who,
                    "reads what another thread wrote without a barrier",
                )
            self._expect_own(segment, flat, who)
            segment.reads.note(flat, who, self.clock)
        return found

    def store(
        self, addresses: Array, content: Array, threads: Array, *, relaxed: bool = False
    ) -> None:
        """Shapes: addresses (n,), content (n, size) bytes. The last of several `relaxed` stays."""
        size = content.shape[1]
        for segment, chosen, places in self._resolve(addresses, size):
            who = np.repeat(threads[chosen], size)
            flat = places.ravel()
            self._expect_waited(segment, who)
            self._expect(segment, not segment.is_read_only, who, "writes to a shared tensor")
            once = relaxed or segment.are_distinct(flat)
            self._expect(segment, once, who, "writes together with another thread")
            for kind in (segment.reads, segment.writes, *([] if relaxed else [segment.atomics])):
                self._expect(
                    segment,
                    ~kind.unordered(flat, who, self.clock),
                    who,
                    "writes what another thread accessed without a barrier",
                )
            if not relaxed:
                self._expect_own(segment, flat, who)
            (segment.atomics if relaxed else segment.writes).note(flat, who, self.clock)
            segment.writer[flat] = self.clock.program
            segment.written[flat] = True
            segment.bytes[places] = content[chosen]

    def update(self, address: int, size: int, thread: int, change: Any = None) -> Array:
        """What is at an address; then it is what `change` makes of these bytes, if it is given."""
        who = np.full(size, thread)
        [(segment, _, places)] = self._resolve(np.array([address]), size)
        flat = places.ravel()
        self._expect_waited(segment, who)
        self._expect(segment, segment.written[flat], who, "reads what nobody wrote")
        self._expect(segment, not segment.is_read_only, who, "updates a shared tensor")
        for kind in (segment.reads, segment.writes):
            self._expect(
                segment,
                ~kind.unordered(flat, who, self.clock),
                who,
                "updates what another thread accessed without a barrier",
            )
        segment.atomics.note(flat, who, self.clock)
        old = segment.bytes[flat]
        if change is not None:
            segment.bytes[flat] = change(old)
            segment.writer[flat] = self.clock.program
        return old

    def _resolve(self, addresses: Array, size: int) -> list[tuple[Segment, Array, Array]]:
        """For each segment met: which addresses are in it, and the places of their bytes."""
        if not len(addresses):
            return []
        met = np.searchsorted(self._starts, addresses, side="right") - 1
        outside = (met < 0) | (addresses + size > self._ends[met])
        if outside.any():
            address = int(addresses[outside][0])
            near = min(
                self.segments, key=lambda s: min(abs(s.start - address), abs(s.end - address))
            )
            raise SimtError(
                f"an access of {size} bytes at byte {address - near.start} of `{near.name}`, "
                f"which has {near.bytes.size}"
            )
        found = []
        bytes_ = np.arange(size)
        for number in [met[0]] if (met == met[0]).all() else np.unique(met):
            chosen = met == number
            offsets = addresses[chosen] - self._starts[number]
            found.append((self.segments[number], chosen, offsets[:, None] + bytes_))
        return found

    def _expect_waited(self, segment: Segment, who: Array) -> None:
        if segment.start >= GLOBAL_FROM:
            self.expect_waited(who)

    def _expect_own(self, segment: Segment, places: Array, who: Array) -> None:
        writer = segment.writer[places]
        is_own = (writer == _NOBODY) | (writer == self.clock.program)
        if segment.start >= GLOBAL_FROM and not self.clock.acquired:
            self._expect(segment, is_own, who, "accesses what another program wrote")

    def _expect(self, segment: Segment, holds: Any, who: Array, what: str) -> None:
        if np.all(holds):
            return
        wrong = who[~np.broadcast_to(holds, who.shape)]
        raise SimtError(f"thread {int(wrong[0])} {what}, in `{segment.name}`")
