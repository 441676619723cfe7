"""A tile that several blocks copy to all of them, each an equal share of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilec.layout.swizzled import PATTERN_ROWS, Copy, SwizzledTile, box_of


@dataclass(frozen=True)
class Shares:
    """Share number r begins `r * extent` elements along `axis`, and at byte `r * stride`.

    `copies` are those of share 0: where they read and write is moved along for others.

    Shapes:   `box` has one extent an axis of the tensor
    Units:    `stride` in bytes of the tile
    """

    axis: int
    extent: int
    stride: int
    box: tuple[int, ...]
    copies: tuple[Copy, ...]

    @staticmethod
    def of(tile: SwizzledTile, count: int) -> Shares | None:
        """The shares of `count` blocks; None where there are none of whole patterns.

        Whole chunks, if they can be shared out, so that copies are as large as before; else rows.
        """
        last = len(tile.shape) - 1
        if tile.chunks % count == 0:
            return _cut(tile, last, count, tile.chunk_bytes * tile.chunks // count)
        # Rows before this axis are one: what a share is made of lies together in each chunk.
        axis = next((axis for axis in range(last) if tile.shape[axis] > 1), last)
        rows = tile.rows // count
        if axis == last or tile.shape[axis] % count or rows % PATTERN_ROWS:
            return None
        return _cut(tile, axis, count, rows * tile.swizzle)


def _cut(tile: SwizzledTile, axis: int, count: int, stride: int) -> Shares:
    extents = list(tile.shape)
    extents[axis] //= count
    box = box_of(extents[:-1], tile.chunk_elements)
    copies = tuple(copy for copy in tile.copies_of(box) if copy.start[axis] < extents[axis])
    assert len(copies) * count * prod(box) == prod(tile.shape), "shares are equal"
    return Shares(axis, extents[axis], stride, box, copies)
