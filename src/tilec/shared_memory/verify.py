"""Whether accesses to shared memory are in order: the independent check of what the passes did.

It knows nothing of how barriers were placed. It draws the flow of control between accesses as a
graph, and searches:

- forwards from each access, on every path without a barrier of the block: it may meet no access to
  the same bytes, if one of the two writes. A barrier of the warp is enough between accesses to one
  buffer that each warp has its own part of (or if there is one warp). Writes to one buffer within a
  turn of a loop go to different elements (`accesses`);
- backwards from the reads of each buffer, to where it begins to be: nothing may be written to its
  bytes through another buffer;
- from each copy that hardware makes, as `verify_sent` has it;
- forwards from each copy of threads that goes on by itself: it meets nothing at the same bytes, nor
  the end, before a wait that covers its group; only a barrier after that orders it. How many groups
  were made since is part of the place in the search, and so is by how many slots a ring was turned;
- several teams keep apart, as `verify_teams` has it;
- no barrier may stand where not all threads come (`accesses` refuses it).

Accesses that differ only in where they are need the same, so they are searched from together: what
one search has come to, the other need not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tilec.shared_memory.accesses import (
    Alloc,
    Arrived,
    Barrier,
    Buffer,
    Commit,
    Send,
    Skeleton,
    Touch,
)
from tilec.shared_memory.graph import Graph, Left, Payload, Problem, Turn
from tilec.shared_memory.verify_sent import problems_of_sent
from tilec.shared_memory.verify_teams import problems_of_teams


def problems_of(skeleton: Skeleton, *, warps: int, teams: int = 1) -> Iterator[Problem]:
    """All that is wrong; nothing, for what the passes leave."""
    graph = Graph()
    ends = graph.add(skeleton, {graph.node(None)})
    graph.connect(ends, graph.node(None))  # the one that nothing follows
    many = 1 + max((one.pending for one in graph.payloads if isinstance(one, Arrived)), default=0)
    alone = _buffers_alone(graph)
    alike: dict[object, list[int]] = {}
    reads: dict[Buffer, list[int]] = {}
    for number, payload in enumerate(graph.payloads):
        if isinstance(payload, Touch):
            alike.setdefault(payload.what, []).append(number)
        if isinstance(payload, Send) or (isinstance(payload, Touch) and not payload.writes):
            reads.setdefault(payload.buffer, []).append(number)
    for starts in alike.values():
        yield from _unordered(graph, starts, warps, many, alone)
    for starts in reads.values():
        yield from _overwritten(graph, starts)
    yield from problems_of_sent(graph, warps)
    if teams > 1:
        yield from problems_of_teams(graph, teams)


def _buffers_alone(graph: Graph) -> frozenset[Buffer]:
    """Those that share bytes with no other buffer."""
    buffers = {one.buffer for one in graph.payloads if isinstance(one, Touch | Send | Alloc)}
    shared: set[Buffer] = set()
    furthest: Buffer | None = None  # of those that begin before, the one that ends last
    for buffer in sorted(buffers, key=lambda one: (one.offset, one.size)):
        if furthest is not None and furthest.overlaps(buffer):
            shared |= {furthest, buffer}
        if furthest is None or furthest.offset + furthest.size < buffer.offset + buffer.size:
            furthest = buffer
    return frozenset(buffers - shared)


class _Behind(NamedTuple):
    """What lies between an access and a place that a search from there came to.

    `slot` is the slot of the access, counted as at this place. Of a copy that goes on, `groups`
    were made since it began (none: it is in no group yet); None once it was waited for.
    """

    slot: int | None
    groups: int | None
    turned: bool = False
    in_warp: bool = False


def _unordered(
    graph: Graph, starts: Sequence[int], warps: int, many: int, alone: frozenset[Buffer]
) -> Iterator[Problem]:
    """Conflicting accesses on a way from one of these without a barrier, or without a wait.

    They are the same access but for where they are. `many` groups, and more, are beyond what any
    wait leaves under way.
    """
    first = graph.payloads[starts[0]]
    assert isinstance(first, Touch), "what is in order is accesses"
    begin = _Behind(first.slot, 0 if first.is_async else None)
    # Each place of the search, and the node of the access that it was begun from.
    origins = {(number, begin): start for start in starts for number in graph.after[start]}
    waiting = list(origins)
    reported: set[int] = set()
    while waiting:
        number, place = waiting.pop()
        payload, begun = graph.payloads[number], graph.op(origins[number, place])
        if not graph.after[number] and place.groups is not None:
            yield Problem("nobody waits for", begun, begun)
            return
        if isinstance(payload, Touch | Send) and number not in reported:
            second = payload if isinstance(payload, Touch) else payload.read
            what = _conflict(first, second, warps, place)
            if what is not None:
                reported.add(number)
                yield Problem(what, begun, payload.op)
        behind = _after(payload, place, first, many)
        if behind is None or _is_settled(first, behind, warps, alone):
            continue
        for following in graph.after[number]:
            ahead = following, behind
            if ahead not in origins:
                origins[ahead] = origins[number, place]
                waiting.append(ahead)


def _is_settled(first: Touch, behind: _Behind, warps: int, alone: frozenset[Buffer]) -> bool:
    """Whether a barrier of the warp has ordered all that there may be: there is only one warp, or
    each has bytes of the buffer that nothing else touches."""
    if behind.groups is not None or not behind.in_warp:
        return False
    return warps == 1 or (first.buffer.is_by_warp and first.buffer in alone)


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


def _overwritten(graph: Graph, starts: Sequence[int]) -> Iterator[Problem]:
    """Writes through other buffers between where a buffer begins and where it is read."""
    origins = {number: start for start in starts for number in graph.before[start]}
    waiting = list(origins)
    while waiting:
        number = waiting.pop()
        payload, read = graph.payloads[number], graph.payloads[origins[number]]
        assert isinstance(read, Touch | Send), "what was overwritten is read"
        if isinstance(payload, Alloc) and payload.buffer == read.buffer:
            continue
        if isinstance(payload, Touch) and _destroys(payload, read.buffer):
            yield Problem("what is read was overwritten", payload.op, read.op)
        for earlier in graph.before[number]:
            if earlier not in origins:
                origins[earlier] = origins[number]
                waiting.append(earlier)


def _destroys(write: Touch, read: Buffer) -> bool:
    return write.writes and write.buffer != read and write.buffer.overlaps(read)
