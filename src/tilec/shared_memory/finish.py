"""All of it for one function: offsets, barriers, the verdict on them, addresses."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.ops.notes import SharedMemoryUse
from tilec.shared_memory.accesses import skeleton_of
from tilec.shared_memory.place_barriers import place_barriers
from tilec.shared_memory.plan_offsets import plan_offsets
from tilec.shared_memory.resolve import resolve
from tilec.shared_memory.use import use_of
from tilec.shared_memory.verify import problems_of


@dataclass(frozen=True)
class Room:
    """What a block may take.

    Units:    bytes: `free` of them cost no occupancy, `limit` is the most that it can have
    """

    free: int
    limit: int


def finish(
    function: ir.OpView, symbol: str, *, warps: int, room: Room, teams: int = 1
) -> SharedMemoryUse:
    """Resolve the shared memory of a function of threads; gives what a block needs.

    `warps` are those of a team, of which there may be several.

    Raises:   DoesNotFitError
    """
    skeleton = skeleton_of(function)
    if not skeleton:
        return SharedMemoryUse()
    needed = plan_offsets(skeleton, free=room.free, limit=room.limit, teams=teams)
    place_barriers(function, warps=warps, skeleton=skeleton)
    result = skeleton_of(function)
    problem = next(problems_of(result, warps=warps, teams=teams), None)
    assert problem is None, f"shared memory: {problem}"
    use = use_of(result, needed)
    resolve(result, symbol)
    return use
