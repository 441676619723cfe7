"""Whether copies by hardware from shared memory see what was written, and are let read it.

Searches in the graph of control flow (`graph.py`), for all paths:

- from each write to a copy from that buffer: a fence comes after the write, then a barrier
  (what another buffer left in those bytes is no matter: `verify` sees that nobody reads it);
- from each copy to a write to those bytes: a wait that covers the copy, and then a barrier;
- from each copy to the end: a wait that covers it. A wait with `pending` covers all copies but the
  last so many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.shared_memory.accesses import Alloc, Barrier, Buffer, Fence, Send, Touch, Wait
from tilec.shared_memory.graph import Graph, Problem

# More copies than these that began after another one need not be told apart.
_MOST_YOUNGER = 16


def problems_of_sent(graph: Graph, warps: int) -> Iterator[Problem]:
    """All that is wrong with copies. Accesses that differ only in where they are need the same, and
    are searched from together."""
    sent = {payload.buffer for payload in graph.payloads if isinstance(payload, Send)}
    copies: dict[tuple[Buffer, bool], list[int]] = {}
    writes: dict[Buffer, list[int]] = {}
    for number, payload in enumerate(graph.payloads):
        if isinstance(payload, Send):
            copies.setdefault((payload.buffer, payload.is_committed), []).append(number)
        elif isinstance(payload, Touch) and payload.writes and payload.buffer in sent:
            writes.setdefault(payload.buffer, []).append(number)
    for starts in copies.values():
        yield from _written_while_read(graph, starts, warps)
    for buffer, starts in writes.items():
        yield from _unfenced(graph, starts, buffer, warps)


def _is_enough(barrier: Barrier, buffer: Buffer, warps: int) -> bool:
    """Whether a barrier orders accesses through one buffer."""
    return barrier.is_of_block or warps == 1 or buffer.is_by_warp


def _unfenced(
    graph: Graph, starts: Sequence[int], written: Buffer, warps: int
) -> Iterator[Problem]:
    """Copies of what was written on a way without a fence and a barrier after it."""
    # Each place of the search, and the write that it was begun from.
    origins = {(number, False): start for start in starts for number in graph.after[start]}
    waiting = list(origins)
    while waiting:
        place = number, is_fenced = waiting.pop()
        origin = origins[place]
        match graph.payloads[number]:
            case Alloc(buffer) if buffer == written:
                continue
            case Fence():
                is_fenced = True
            case Barrier() as barrier if is_fenced and _is_enough(barrier, written, warps):
                continue
            case Send(op, buffer, _) if buffer == written:
                yield Problem("a copy may not see what was written", graph.op(origin), op)
        for following in graph.after[number]:
            if (following, is_fenced) not in origins:
                origins[following, is_fenced] = origin
                waiting.append((following, is_fenced))


def _written_while_read(graph: Graph, starts: Sequence[int], warps: int) -> Iterator[Problem]:
    """Writes to what a copy may still read, and ends of the program at which it may."""
    send = graph.payloads[starts[0]]
    assert isinstance(send, Send), "hardware copies"
    # Each place of the search: a node, how many copies began since, whether the copy is waited for,
    # and whether threads of its warp know; and the copy that it was begun from.
    origins = {
        (number, 0, False, False): start for start in starts for number in graph.after[start]
    }
    waiting = list(origins)
    for start in starts:
        if not graph.after[start]:
            yield Problem("a copy is under way at the end", graph.op(start), graph.op(start))
    while waiting:
        found = number, younger, is_over, is_known = waiting.pop()
        begun = graph.op(origins[found])
        match graph.payloads[number]:
            case Send(_, _, is_committed):
                younger = min(younger + is_committed, _MOST_YOUNGER)
            case Wait(_, pending):
                is_over = is_over or (send.is_committed and younger >= pending)
            case Barrier(_, is_of_block) as barrier if is_over:
                if is_of_block:
                    continue
                is_known = is_known or _is_enough(barrier, send.buffer, warps)
            case Touch(op, buffer, True) if buffer.overlaps(send.buffer):
                if buffer != send.buffer or not is_known:
                    yield Problem("what a copy reads is overwritten", begun, op)
        if not is_over and not graph.after[number]:
            yield Problem("a copy is under way at the end", begun, begun)
        for following in graph.after[number]:
            place = following, younger, is_over, is_known
            if place not in origins:
                origins[place] = origins[found]
                waiting.append(place)
