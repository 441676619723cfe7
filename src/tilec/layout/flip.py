"""The reverse order along an axis, in one layout on both sides.

Within the block of a layout, coordinate c becomes `extent - 1 - c`, which is c with all of its bits
turned: a fixed vector is XORed, which is a fixed change of register, lane and warp number. The
repeats of the block change places. So thread t's new registers are the old ones of one other
thread, in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from tilec.layout.layout import LANE_BITS, LANES, Layout, LayoutError
from tilec.layout.shared_access import ThreadAccesses, thread_accesses
from tilec.layout.shared_memory import VECTOR_BYTES


@dataclass(frozen=True)
class Part:
    """Some registers' way through a buffer of `elements`: write, barrier, read."""

    elements: int
    write: ThreadAccesses
    read: ThreadAccesses


@dataclass(frozen=True)
class Flip:
    """Register r becomes register `registers[r]` of the thread whose number differs by the XORs."""

    registers: tuple[int, ...]
    lane_xor: int
    warp_xor: int

    def exchange(self, registers: int, element_bytes: int, warps: int, limit: int) -> list[Part]:
        """The way between warps, through a buffer that each part uses again.

        Threads lie side by side, each with vectors of up to 16 bytes: no two lanes that are served
        at once meet in a bank.

        Units:    `limit` in bytes
        """
        width = _power_of_two(min(VECTOR_BYTES // element_bytes, registers & -registers))
        vectors = registers // width
        at_once = max(1, min(vectors, limit // (warps * LANES * width * element_bytes)))
        return [
            self._part(range(first, min(first + at_once, vectors)), width, warps)
            for first in range(0, vectors, at_once)
        ]

    def _part(self, vectors: range, width: int, warps: int) -> Part:
        lane = tuple(width << bit for bit in range(LANE_BITS))
        warp = tuple(width * LANES << bit for bit in range(warps.bit_length() - 1))
        size = width * LANES * warps
        other = width * (self.lane_xor + LANES * self.warp_xor)

        def places(xor: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
            for place, vector in enumerate(vectors):
                yield tuple(range(vector * width, (vector + 1) * width)), xor, place * size

        return Part(
            size * len(vectors),
            thread_accesses(lane, warp, places(0)),
            thread_accesses(lane, warp, places(other)),
        )


def _power_of_two(number: int) -> int:
    return 1 << number.bit_length() - 1


def plan_flip(layout: Layout, axis: int) -> Flip:
    """How a tile in `layout` is reversed along an axis, between as few threads as possible."""
    if not 0 <= axis < layout.rank:
        raise LayoutError(f"expected an axis of a tile of rank {layout.rank}, got {axis}")
    turned = tuple(n - 1 if a == axis else 0 for a, n in enumerate(layout.block))
    # Registers come first among the columns, then lanes: warps are taken where nothing else does.
    place = layout.linear.solve(layout.flat(turned))
    assert place is not None, "a layout has a place for every element"
    bits = len(layout.register)
    repeats = np.arange(prod(layout.repeats)).reshape(layout.repeats)
    registers = tuple(
        int(repeat) << bits | register ^ (place & ((1 << bits) - 1))
        for repeat in (np.flip(repeats, axis).ravel() if layout.rank else repeats.ravel())
        for register in range(1 << bits)
    )
    return Flip(registers, place >> bits & (LANES - 1), place >> (bits + LANE_BITS))
