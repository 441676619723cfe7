"""Give each buffer its place in the block's shared memory.

Before:   `warp.alloc {bytes = 512}`
After:    `warp.alloc {bytes = 512, offset = 1024}`; buffers in use at one time share no bytes

Algorithm:
1. A buffer is in use from where it begins to be to its last access, in the order of the program; an
   access in a loop that the buffer was there before is there to the loop's end. A ring is in use
   from the start. What hardware copies from is in use to the end; from the start, if a loop is
   around it.
2. Where all buffers side by side cost no occupancy, they lie side by side: what shares bytes needs
   barriers more often. Else the largest first, each takes the lowest place that is free of those
   in use at its time (first fit of interval colouring).

3. Several teams have a part each, one after the other behind the rings, in which buffers lie alike.

Sound: `verify` checks that between a buffer's write and its read nothing else is written there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.shared_memory.accesses import (
    TEAM_BYTES,
    Alloc,
    Arrived,
    Barrier,
    Branch,
    Buffer,
    Commit,
    Fence,
    Loop,
    Node,
    Send,
    Skeleton,
    Touch,
    Unit,
    Wait,
)

# Units: bytes; of the part of a team.
_TEAM_ALIGNMENT = 128


class DoesNotFitError(Exception):
    """More shared memory than a block can have; becomes E0702.

    Units:    bytes
    """

    def __init__(self, location: ir.Location, needed: int, limit: int) -> None:
        super().__init__(f"{needed} bytes of shared memory, of {limit}")
        self.location = location
        self.needed = needed
        self.limit = limit


def plan_offsets(skeleton: Skeleton, *, free: int, limit: int, teams: int = 1) -> int:
    """Write the offsets; gives the bytes that the block needs.

    Units:    bytes: `free` costs nothing, `limit` is the most that a block can have
    Raises:   DoesNotFitError at the largest buffer
    """
    lifetimes = _lifetimes(skeleton)
    if teams > 1:
        return _plan_for_teams(lifetimes, limit, teams)
    offsets = _side_by_side(lifetimes)
    if _end(lifetimes, offsets) > min(free, limit):
        offsets = _first_fit(lifetimes)
    end = _end(lifetimes, offsets)
    if end > limit:
        largest = max(lifetimes, key=lambda one: one.buffer.size).buffer
        raise DoesNotFitError(largest.op.location, end, limit)
    _write(lifetimes, offsets)
    return end


def _plan_for_teams(lifetimes: Sequence[_Lifetime], limit: int, teams: int) -> int:
    """Rings are of all teams, and in use as long as any of them is at work."""
    rings = [one for one in lifetimes if one.buffer.is_ring]
    own = [one for one in lifetimes if not one.buffer.is_ring]
    ring_offsets = _side_by_side(rings)
    # So that accesses of all teams meet the same banks, if nothing asks for more.
    unit = max((one.buffer.alignment for one in own), default=_TEAM_ALIGNMENT)
    unit = max(unit, _TEAM_ALIGNMENT)
    begin = _rounded(_end(rings, ring_offsets), unit)
    offsets = _first_fit(own)
    each = _rounded(_end(own, offsets), unit)
    end = begin + teams * each
    if end > limit:
        largest = max(lifetimes, key=lambda one: one.buffer.size).buffer
        raise DoesNotFitError(largest.op.location, end, limit)
    _write(rings, ring_offsets)
    _write(own, [begin + offset for offset in offsets])
    for one in own:
        one.buffer.op.attributes[TEAM_BYTES] = _integer(each)
    return end


def _write(lifetimes: Sequence[_Lifetime], offsets: Sequence[int]) -> None:
    for one, offset in zip(lifetimes, offsets, strict=True):
        one.buffer.op.attributes["offset"] = _integer(offset)


def _integer(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


@dataclass(frozen=True)
class _Lifetime:
    """When a buffer is in use: positions in the program, the last included."""

    buffer: Buffer
    first: int
    last: int

    def meets(self, other: _Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


def _lifetimes(skeleton: Skeleton) -> list[_Lifetime]:
    """Those of all buffers, in program order."""
    clock = iter(range(1 << 62))
    found: dict[Buffer, tuple[int, int]] = {}
    _time(skeleton, clock, found)
    end = next(clock)
    return [
        _Lifetime(
            buffer,
            0 if buffer.is_ring or (buffer.is_sent and buffer.is_in_loop) else first,
            end if buffer.is_throughout or buffer.is_sent else last,
        )
        for buffer, (first, last) in found.items()
    ]


def _time(
    skeleton: Skeleton, clock: Iterator[int], found: dict[Buffer, tuple[int, int]]
) -> dict[Buffer, int]:
    """Note when the buffers that begin here are in use; gives when those that began before are."""
    outer: dict[Buffer, int] = {}
    own: set[Buffer] = set()
    for node in skeleton:
        if isinstance(node, Alloc):
            own.add(node.buffer)
            found[node.buffer] = (next(clock),) * 2
            continue
        for buffer, last in _touched(node, clock, found).items():
            if buffer in own:
                found[buffer] = found[buffer][0], last
            else:
                outer[buffer] = last
    return outer


def _touched(
    node: Node, clock: Iterator[int], found: dict[Buffer, tuple[int, int]]
) -> dict[Buffer, int]:
    """When each buffer that began before is in use for the last time."""
    match node:
        case Touch(_, buffer, _) | Send(_, buffer, _):
            return {buffer: next(clock)}
        case Unit(_, touches):
            return dict.fromkeys((touch.buffer for touch in touches), next(clock))
        case Branch(_, parts):
            return _all_of(parts, clock, found)
        case Loop(_, parts):
            touched = _all_of(parts, clock, found)
            return dict.fromkeys(touched, next(clock))  # the next turn needs it, too
        case Barrier() | Fence() | Wait() | Alloc() | Commit() | Arrived():
            return {}


def _all_of(
    parts: Sequence[Skeleton], clock: Iterator[int], found: dict[Buffer, tuple[int, int]]
) -> dict[Buffer, int]:
    together: dict[Buffer, int] = {}
    for part in parts:
        together.update(_time(part, clock, found))
    return together


def _aligned(offset: int, buffer: Buffer) -> int:
    return _rounded(offset, buffer.alignment)


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _end(lifetimes: Sequence[_Lifetime], offsets: Sequence[int]) -> int:
    return max((o + one.buffer.size for one, o in zip(lifetimes, offsets, strict=True)), default=0)


def _side_by_side(lifetimes: Sequence[_Lifetime]) -> list[int]:
    offsets, end = [], 0
    for one in lifetimes:
        offsets.append(_aligned(end, one.buffer))
        end = offsets[-1] + one.buffer.size
    return offsets


def _first_fit(lifetimes: Sequence[_Lifetime]) -> list[int]:
    placed: dict[int, int] = {}
    for number in sorted(range(len(lifetimes)), key=lambda n: -lifetimes[n].buffer.size):
        mine = lifetimes[number]
        taken = sorted(
            (offset, offset + lifetimes[other].buffer.size)
            for other, offset in placed.items()
            if lifetimes[other].meets(mine)
        )
        offset = 0
        for start, end in taken:
            if offset + mine.buffer.size <= start:
                break
            offset = max(offset, _aligned(end, mine.buffer))
        placed[number] = offset
    return [placed[number] for number in range(len(lifetimes))]
