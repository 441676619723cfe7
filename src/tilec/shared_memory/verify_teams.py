"""Whether what a team has as its own shares no bytes with what others have.

No barrier is of all teams, so that buffers of two of them may share none at any time: whatever else
`verify` finds of one team then holds of each. Rings are of all teams.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilec.shared_memory.accesses import Alloc, Buffer
from tilec.shared_memory.graph import Graph, Problem


def problems_of_teams(graph: Graph, teams: int) -> Iterator[Problem]:
    """Two buffers of which the one's of a team and the other's of another one share bytes."""
    buffers = [payload.buffer for payload in graph.payloads if isinstance(payload, Alloc)]
    own = [one for one in buffers if not one.is_ring]
    for one in own:
        if one.team_bytes == 0:
            yield Problem("all teams have one", one.op, one.op)
        for other in own:
            if any(
                _overlap(one, n, other, m) for n in range(teams) for m in range(teams) if n != m
            ):
                yield Problem("a team's buffer is another one's", one.op, other.op)
        for ring in buffers:
            if ring.is_ring and any(_overlap(one, n, ring, 0) for n in range(teams)):
                yield Problem("a team's buffer is in a ring", one.op, ring.op)


def _overlap(one: Buffer, team: int, other: Buffer, other_team: int) -> bool:
    """Whether they share bytes, each that of a team."""
    first, second = one.offset + team * one.team_bytes, other.offset + other_team * other.team_bytes
    return first < second + other.size and second < first + one.size
