"""Accesses to a buffer in shared memory whose places are linear in lane and warp."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilec.layout.linear_map import combine


@dataclass(frozen=True)
class Access:
    """One load or store: register `registers[i]` is at element `offset + i` of the buffer.

    A load may name a register several times: it gets several elements, which are combined.
    `offset` is a multiple of `len(registers)`, a power of two: one vector access will do, or
    several where it has more than 16 bytes.
    """

    registers: tuple[int, ...]
    xor: int
    add: int


@dataclass(frozen=True)
class ThreadAccesses:
    """What each thread loads or stores, in elements of a buffer in shared memory.

    A thread's own number is the XOR of `lane[i]` over the set bits of its lane and of `warp[i]`
    over those of its warp. The offset of an access is `(thread number ^ access.xor) + access.add`;
    `add` is chosen as great as it can be, for it fits into the instruction.

    Only threads take part whose lane has of `lane_mask` the bits `lane_value`, and whose warp has
    none of `warp_mask`: the others hold copies. (With zero masks all do.)
    """

    lane: tuple[int, ...]
    warp: tuple[int, ...]
    accesses: tuple[Access, ...]
    lane_mask: int = 0
    warp_mask: int = 0
    lane_value: int = 0

    def takes_part(self, lane: int, warp: int) -> bool:
        return lane & self.lane_mask == self.lane_value and not warp & self.warp_mask

    def offset(self, access: Access, lane: int, warp: int) -> int:
        """The element of the buffer at which an access of this thread begins."""
        thread = combine(self.lane, lane) ^ combine(self.warp, warp)
        return (thread ^ access.xor) + access.add


def thread_accesses(
    lane: tuple[int, ...],
    warp: tuple[int, ...],
    places: Iterable[tuple[tuple[int, ...], int, int]],
    lane_mask: int = 0,
    warp_mask: int = 0,
    lane_value: int = 0,
) -> ThreadAccesses:
    """Accesses from (registers, constant to XOR, constant to add), with the XOR split.

    Bits that no thread number has are added rather than XORed: there it is the same.
    """
    varying = 0
    for vector in (*lane, *warp):
        varying |= vector
    accesses = tuple(
        Access(registers, xor & varying, add + (xor & ~varying)) for registers, xor, add in places
    )
    return ThreadAccesses(lane, warp, accesses, lane_mask, warp_mask, lane_value)
