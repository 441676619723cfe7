"""Facts about a layout that code generation asks for."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.layout.layout import LANE_BITS, Layout, LayoutError
from tilec.layout.linear_map import Reduced


def contiguous_elements(layout: Layout, axis: int) -> int:
    """How many consecutive registers hold consecutive elements along an axis: a power of two.

    Register `r` to `r + n - 1`, for every multiple r of the answer n, hold coordinates `c` to
    `c + n - 1` of the axis, c a multiple of n, all other coordinates equal, in every thread.
    It is the greatest n such that a vector access of n elements takes n neighbouring registers.
    """
    if not 0 <= axis < layout.rank:
        raise LayoutError(f"expected an axis of a tile of rank {layout.rank}, got {axis}")
    count = 0
    for index, vector in enumerate(layout.register):
        unit = tuple(1 << index if a == axis else 0 for a in range(layout.rank))
        if vector != unit:
            break
        count += 1
    while count and not _keeps_aligned(layout, axis, count):
        count -= 1
    return 1 << count


def _keeps_aligned(layout: Layout, axis: int, count: int) -> bool:
    others = (*layout.register[count:], *layout.lane, *layout.warp)
    return all(vector[axis] % (1 << count) == 0 for vector in others)


@dataclass(frozen=True)
class Holders:
    """Which of the places that hold an element is the one that counts.

    A place counts if its register, lane and warp have no bit in common with the masks. Exactly
    one place of each element counts. Bits of repeats are not in `register`: they hold no copies.
    """

    register: int
    lane: int
    warp: int

    def counts(self, register: int, lane: int, warp: int) -> bool:
        return not (register & self.register or lane & self.lane or warp & self.warp)


def unique_holders(layout: Layout) -> Holders:
    """The masks that single out one holder of each element.

    They are the bits that add nothing to what the bits before them reach (registers, then lanes,
    then warps): zero bases, and bases that are combinations of others.
    """
    places = len(layout.register) + LANE_BITS + len(layout.warp)
    free = sum(1 << bit for bit in range(places)) - sum(1 << bit for bit in layout.linear.pivots)
    registers = len(layout.register)
    return Holders(
        register=free & ((1 << registers) - 1),
        lane=free >> registers & ((1 << LANE_BITS) - 1),
        warp=free >> (registers + LANE_BITS),
    )


def register_permutation(source: Layout, target: Layout) -> tuple[int, ...] | None:
    """For each register of `target`, a register of `source` that has it, in every thread.

    None if some thread lacks an element. Equal layouts up to the order of registers give a
    permutation; a `source` that holds more elements in a thread gives a selection.
    """
    if source.shape != target.shape:
        raise LayoutError(f"expected equal shapes, got {source.shape} and {target.shape}")
    if (source.lane, source.warp) != (target.lane, target.warp):
        return None
    reach = Reduced(map(source.flat, source.register))
    solved = [reach.solve(target.flat(vector)) for vector in target.register]
    columns = [column for column in solved if column is not None]
    if len(columns) < len(solved):
        return None
    bits = [0]
    for column in columns:
        bits += [index ^ column for index in bits]
    repeats = source.registers >> len(source.register)
    return tuple(r << len(source.register) | index for r in range(repeats) for index in bits)
