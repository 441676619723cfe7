"""Whether accesses to shared memory are in order: the independent check of what the passes did.

It knows nothing of how barriers were placed. It draws the flow of control between accesses as a
graph, and searches:

- forwards from each access, on every path without a barrier of the block: it may meet no access to
  the same bytes, if one of the two writes. A barrier of the warp is enough between accesses to one
  buffer that each warp has its own part of (or if there is one warp). Writes to one buffer within a
  turn of a loop go to different elements (`accesses`);
- backwards from each read, to where its buffer begins to be: nothing may be written to its bytes
  through another buffer;
- from each copy that hardware makes, as `verify_sent` has it;
- forwards from each copy of threads that goes on by itself: it meets nothing at the same bytes, nor
  the end, before a wait that covers its group; only a barrier after that orders it. How many groups
  were made since is part of the place in the search, and so is by how many slots a ring was turned;
- several teams keep apart, as `verify_teams` has it;
- no barrier may stand where not all threads come (`accesses` refuses it).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tilec.shared_memory.accesses import Alloc, Arrived, Barrier, Commit, Send, Skeleton, Touch
from tilec.shared_memory.graph import Graph, Left, Payload, Problem, Turn
from tilec.shared_memory.verify_sent import problems_of_sent
from tilec.shared_memory.verify_teams import problems_of_teams


def problems_of(skeleton: Skeleton, *, warps: int, teams: int = 1) -> Iterator[Problem]:
    """All that is wrong; nothing, for what the passes leave."""
    graph = Graph()
    ends = graph.add(skeleton, {graph.node(None)})
    graph.connect(ends, graph.node(None))  # the one that nothing follows
    many = 1 + max((one.pending for one in graph.payloads if isinstance(one, Arrived)), default=0)
    for number, payload in enumerate(graph.payloads):
        if isinstance(payload, Touch):
            yield from _unordered(graph, number, payload, warps, many)
            if not payload.writes:
                yield from _overwritten(graph, number, payload)
        if isinstance(payload, Send):
            yield from _overwritten(graph, number, payload.read)
    yield from problems_of_sent(graph, warps)
    if teams > 1:
        yield from problems_of_teams(graph, teams)


class _Behind(NamedTuple):
    """What lies between an access and a place that a search from there came to.

    `slot` is the slot of the access, counted as at this place. Of a copy that goes on, `groups`
    were made since it began (none: it is in no group yet); None once it was waited for.
    """

    slot: int | None
    groups: int | None
    turned: bool = False
    in_warp: bool = False


def _unordered(graph: Graph, start: int, first: Touch, warps: int, many: int) -> Iterator[Problem]:
    """Conflicting accesses on a way from this one without a barrier, or without a wait.

    `many` groups, and more, are beyond what any wait leaves under way.
    """
    begin = _Behind(first.slot, 0 if first.is_async else None)
    waiting = [(number, begin) for number in graph.after[start]]
    seen = set(waiting)
    reported: set[int] = set()
    while waiting:
        number, place = waiting.pop()
        payload = graph.payloads[number]
        if not graph.after[number] and place.groups is not None:
            yield Problem("nobody waits for", first.op, first.op)
            return
        if isinstance(payload, Touch | Send) and number not in reported:
            second = payload if isinstance(payload, Touch) else payload.read
            what = _conflict(first, second, warps, place)
            if what is not None:
                reported.add(number)
                yield Problem(what, first.op, payload.op)
        behind = _after(payload, place, first, many)
        if behind is None:
            continue
        for following in graph.after[number]:
            ahead = following, behind
            if ahead not in seen:
                seen.add(ahead)
                waiting.append(ahead)


def _after(payload: Payload, place: _Behind, first: Touch, many: int) -> _Behind | None:
    """What lies behind once this does, too; None where all is in order from there on."""
    buffer, groups = first.buffer, place.groups
    match payload:
        case Barrier(_, is_of_block):
            if not is_of_block:
                return place._replace(in_warp=True)
            return None if groups is None else place
        case Commit() if groups is not None:
            return place._replace(groups=min(groups + 1, many))
        case Arrived(_, pending) if groups is not None and groups > pending:
            # Other lanes see nothing of it yet.
            return place._replace(groups=None, in_warp=False)
        case Turn(rings):
            turned = place._replace(turned=True)
            if buffer.ring not in rings or place.slot is None:
                return turned
            return turned._replace(slot=(place.slot - 1) % buffer.slots)
        case Left(rings) if buffer.ring in rings:
            return place._replace(slot=None)
    return place


def _conflict(first: Touch, second: Touch, warps: int, place: _Behind) -> str | None:
    """What is wrong where the second access comes at this place after the first."""
    if not (first.writes or second.writes) or not first.buffer.overlaps(second.buffer):
        return None
    own = first.buffer == second.buffer
    if own and None not in (place.slot, second.slot) and place.slot != second.slot:
        return None
    if own and first.writes and second.writes and not place.turned:
        return None
    if place.groups is not None:
        return "nobody has waited for"
    is_within_warps = warps == 1 or (own and first.buffer.is_by_warp)
    return None if is_within_warps and place.in_warp else "no barrier orders"


def _overwritten(graph: Graph, start: int, read: Touch) -> Iterator[Problem]:
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
