"""Whether accesses to shared memory are in order: the independent check of what the passes did.

It knows nothing of how barriers were placed. It draws the flow of control between accesses as a
graph, and searches:

- forwards from each access, on every path without a barrier of the block: it may meet no access to
  the same bytes, if one of the two writes. A barrier of the warp is enough between accesses to one
  buffer that each warp has its own part of (or if there is one warp). Writes to one buffer within a
  turn of a loop go to different elements (`accesses`);
- backwards from each read, to where its buffer begins to be: nothing may be written to its bytes
  through another buffer;
- no barrier may stand where not all threads come (`accesses` refuses it);
- what a team has as its own shares no bytes with what others have, at any time: no barrier is of
  all teams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.shared_memory.accesses import (
    Alloc,
    Barrier,
    Branch,
    Buffer,
    Loop,
    Skeleton,
    Touch,
    Unit,
)


@dataclass(frozen=True)
class Problem:
    """Two operations out of order, or data that is lost before it is read."""

    what: str
    first: ir.OpView
    second: ir.OpView

    def __str__(self) -> str:
        return f"{self.what}: {self.first}, then {self.second}"


def problems_of(skeleton: Skeleton, *, warps: int, teams: int = 1) -> Iterator[Problem]:
    """All that is wrong; nothing, for what the passes leave."""
    graph = _Graph()
    graph.add(skeleton, {graph.node(None)})
    if teams > 1:
        buffers = [one.buffer for one in graph.payloads if isinstance(one, Alloc)]
        yield from _between_teams(buffers, teams)
    for number, payload in enumerate(graph.payloads):
        if isinstance(payload, Touch):
            yield from _unordered(graph, number, payload, warps)
            if not payload.writes:
                yield from _overwritten(graph, number, payload)


def _between_teams(buffers: Sequence[Buffer], teams: int) -> Iterator[Problem]:
    """Buffers of which the one team's and the other's share bytes. Rings are of all teams."""
    own = [one for one in buffers if not one.is_ring]
    for one in own:
        if one.team_bytes == 0:
            yield Problem("all teams have one", one.op, one.op)
        for other in own:
            apart = (one.team_bytes * n - other.team_bytes * m for n, m in _two_of(teams))
            if any(_meet(one.offset + far, one.size, other) for far in apart):
                yield Problem("a team's buffer is another one's", one.op, other.op)
        for ring in buffers:
            if ring.is_ring and any(
                _meet(one.offset + n * one.team_bytes, one.size, ring) for n in range(teams)
            ):
                yield Problem("a team's buffer is in a ring", one.op, ring.op)


def _two_of(teams: int) -> Iterator[tuple[int, int]]:
    return ((n, m) for n in range(teams) for m in range(teams) if n != m)


def _meet(offset: int, size: int, other: Buffer) -> bool:
    return offset < other.offset + other.size and other.offset < offset + size


class _Turn:
    """The way from the end of a loop's turn to its start."""


_Payload = Touch | Barrier | Alloc | _Turn | None


@dataclass
class _Graph:
    """The flow of control: what happens at each node, and where it may go on."""

    payloads: list[_Payload] = field(default_factory=list)
    after: list[set[int]] = field(default_factory=list)
    before: list[set[int]] = field(default_factory=list)

    def node(self, payload: _Payload) -> int:
        self.payloads.append(payload)
        self.after.append(set())
        self.before.append(set())
        return len(self.payloads) - 1

    def connect(self, sources: set[int], target: int) -> None:
        self.before[target] |= sources
        for source in sources:
            self.after[source].add(target)

    def add(self, skeleton: Skeleton, entries: set[int]) -> set[int]:
        """Draw a skeleton that is entered from these nodes; gives those that it is left from."""
        ends = entries
        for item in skeleton:
            match item:
                case Touch() | Barrier() | Alloc():
                    ends = self._after_step(item, ends)
                case Unit(_, touches):
                    # Each thread takes it or not; in whatever order, within a thread.
                    skipped = ends
                    for touch in touches:
                        ends = ends | self._after_step(touch, ends)
                    ends = ends | skipped
                case Branch(_, ways):
                    ends = set().union(*[self.add(way, ends) for way in ways])
                case Loop(_, parts):
                    ends = self._after_loop(parts, ends)
        return ends

    def _after_step(self, payload: _Payload, ends: set[int]) -> set[int]:
        number = self.node(payload)
        self.connect(ends, number)
        return {number}

    def _after_loop(self, parts: tuple[Skeleton, ...], entries: set[int]) -> set[int]:
        head = self.node(None)
        self.connect(entries, head)
        # It is left from the end of a part, or never entered: what leads back is for turns only.
        left, ends = set(entries), {head}
        for part in parts:
            ends = self.add(part, ends)
            left = left | ends
        turn = self.node(_Turn())
        self.connect(ends, turn)
        self.connect({turn}, head)
        return left


def _unordered(graph: _Graph, start: int, first: Touch, warps: int) -> Iterator[Problem]:
    """Conflicting accesses on a way from this one without a barrier."""
    # A place in the search: a node, whether a turn lies behind, whether a barrier of the warp does.
    waiting = [(number, False, False) for number in graph.after[start]]
    seen = set(waiting)
    reported: set[int] = set()
    while waiting:
        number, turned, in_warp = waiting.pop()
        payload = graph.payloads[number]
        match payload:
            case Barrier(_, is_of_block):
                if is_of_block:
                    continue
                in_warp = True
            case _Turn():
                turned = True
            case Touch():
                if number not in reported and _conflict(first, payload, warps, turned, in_warp):
                    reported.add(number)
                    yield Problem("no barrier orders", first.op, payload.op)
        for following in graph.after[number]:
            place = following, turned, in_warp
            if place not in seen:
                seen.add(place)
                waiting.append(place)


def _conflict(first: Touch, second: Touch, warps: int, turned: bool, in_warp: bool) -> bool:
    if not (first.writes or second.writes) or not first.buffer.overlaps(second.buffer):
        return False
    own = first.buffer == second.buffer
    if own and first.writes and second.writes and not turned:
        return False
    is_within_warps = warps == 1 or (own and first.buffer.is_by_warp)
    return not (is_within_warps and in_warp)


def _overwritten(graph: _Graph, start: int, read: Touch) -> Iterator[Problem]:
    """Writes through other buffers between where the buffer begins and where it is read."""
    waiting = list(graph.before[start])
    seen = set(waiting)
    while waiting:
        number = waiting.pop()
        payload = graph.payloads[number]
        if isinstance(payload, Alloc) and payload.buffer == read.buffer:
            continue
        if isinstance(payload, Touch) and _destroys(payload, read):
            yield Problem("what is read was overwritten", payload.op, read.op)
        for earlier in graph.before[number] - seen:
            seen.add(earlier)
            waiting.append(earlier)


def _destroys(write: Touch, read: Touch) -> bool:
    is_other = write.buffer != read.buffer
    return write.writes and is_other and write.buffer.overlaps(read.buffer)
