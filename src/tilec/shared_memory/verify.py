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
- several teams keep apart, as `verify_teams` has it;
- no barrier may stand where not all threads come (`accesses` refuses it).
"""

from __future__ import annotations

from collections.abc import Iterator

from tilec.shared_memory.accesses import Alloc, Barrier, Send, Skeleton, Touch
from tilec.shared_memory.graph import Graph, Problem, Turn
from tilec.shared_memory.verify_sent import problems_of_sent
from tilec.shared_memory.verify_teams import problems_of_teams


def problems_of(skeleton: Skeleton, *, warps: int, teams: int = 1) -> Iterator[Problem]:
    """All that is wrong; nothing, for what the passes leave."""
    graph = Graph()
    ends = graph.add(skeleton, {graph.node(None)})
    graph.connect(ends, graph.node(None))  # the one that nothing follows
    for number, payload in enumerate(graph.payloads):
        if isinstance(payload, Touch):
            yield from _unordered(graph, number, payload, warps)
            if not payload.writes:
                yield from _overwritten(graph, number, payload)
        if isinstance(payload, Send):
            yield from _overwritten(graph, number, payload.read)
    yield from problems_of_sent(graph, warps)
    if teams > 1:
        yield from problems_of_teams(graph, teams)


def _unordered(graph: Graph, start: int, first: Touch, warps: int) -> Iterator[Problem]:
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
            case Turn():
                turned = True
            case Touch() | Send():
                second = payload if isinstance(payload, Touch) else payload.read
                if number not in reported and _conflict(first, second, warps, turned, in_warp):
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
