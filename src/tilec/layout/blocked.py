"""Blocked layouts: what coalesced loads, stores and element-wise work want."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tilec.layout.layout import LANE_BITS, Basis, Layout, LayoutError


def blocked(shape: Sequence[int], warps: int, order: Sequence[int], vector: int = 1) -> Layout:
    """The layout in which neighbouring lanes hold neighbouring groups of `vector` elements.

    From the fastest axis `order[0]` to the slowest: first up to `vector` elements of `order[0]`
    in a thread's registers, then the lanes. Warps spread over the slowest axis first, so that
    reductions along fast axes stay within a warp. What is left is held in more registers, the
    fastest axis innermost. Only the power of two in each extent is spread over threads (96 is
    32, three times). A tile with fewer elements than this is held by several lanes or warps.

    Assumes:  `warps` and `vector` are powers of two; `order` is a permutation of the axes
    """
    return _blocked(tuple(shape), warps, tuple(order), vector)


# Asked for again and again while layouts are chosen, for a few shapes.
@lru_cache(maxsize=1024)
def _blocked(shape: tuple[int, ...], warps: int, order: tuple[int, ...], vector: int) -> Layout:
    if sorted(order) != list(range(len(shape))):
        raise LayoutError(f"expected an order of {len(shape)} axes, got {tuple(order)}")
    for name, value in (("warps", warps), ("vector", vector)):
        if value < 1 or value & (value - 1):
            raise LayoutError(f"expected a power of two as `{name}`, got {value}")
    bits = _Bits(shape)
    register = bits.take(order[:1], vector.bit_length() - 1)
    lane = bits.take(order, LANE_BITS)
    warp = bits.take(order[::-1], warps.bit_length() - 1)
    register += bits.take(order, sum(bits.left))
    nowhere = (0,) * len(shape)
    return Layout(
        shape,
        tuple(register),
        (*lane, *[nowhere] * (LANE_BITS - len(lane))),
        (*warp, *[nowhere] * (warps.bit_length() - 1 - len(warp))),
    )


class _Bits:
    """The bits of the block's coordinates that have no place yet, the low ones first."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.left = [(extent & -extent).bit_length() - 1 for extent in shape]
        self._next = [0] * len(shape)

    def take(self, order: Sequence[int], count: int) -> list[Basis]:
        """Up to `count` unit vectors, from the first axis of `order` on."""
        taken: list[Basis] = []
        for axis in order:
            while self.left[axis] and len(taken) < count:
                bit = 1 << self._next[axis]
                taken.append(tuple(bit if a == axis else 0 for a in range(len(self.left))))
                self._next[axis] += 1
                self.left[axis] -= 1
        return taken
