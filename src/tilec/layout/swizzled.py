"""Tiles in shared memory as TMA writes them and `wgmma` reads them: rows of chunks, swizzled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Literal, TypeAlias

# Units: bytes, widest first.
Swizzle: TypeAlias = Literal[128, 64, 32]
SWIZZLES: tuple[Swizzle, ...] = (128, 64, 32)
MOST_AXES = 5
# Units: elements along one axis of one copy.
MOST_IN_COPY = 256
# Units: bytes; of where a copy is put.
COPY_ALIGNMENT = 128
PATTERN_ROWS = 8


@dataclass(frozen=True)
class Copy:
    """One copy by TMA: the first coordinate that it reads, and where in the tile it is put.

    Shapes:   one coordinate an axis of the tensor, relative to the tile
    Units:    `offset` in bytes
    """

    start: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class SwizzledTile:
    """A tile whose contiguous axis is cut in chunks, which lie one after the other.

    A chunk has a row of `swizzle` bytes for each coordinate of all other axes, row-major. The
    16-byte pieces of eight rows are permuted: of a byte's place, bits [4, 4+b) are XORed with bits
    [7, 7+b), where `swizzle` is 16 << b.

    Shapes:   extents in the order of the tensor's axes, 1 to 5; the last axis is contiguous
    Units:    `swizzle` in bytes: 128, 64 or 32
    Assumes:  the tile begins at a multiple of `alignment`
    Source:   CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, "Tensor swizzling modes"
    """

    shape: tuple[int, ...]
    element_bytes: int
    swizzle: Swizzle

    def __post_init__(self) -> None:
        assert self.swizzle in SWIZZLES, f"expected a swizzle of {SWIZZLES}, got {self.swizzle}"
        assert self.shape[-1] * self.element_bytes % self.swizzle == 0, "expected whole chunks"

    @staticmethod
    def of(shape: Sequence[int], element_bytes: int) -> SwizzledTile | None:
        """The tile with the widest swizzle; None if TMA cannot write it."""
        if not 1 <= len(shape) <= MOST_AXES:
            return None
        row_bytes = shape[-1] * element_bytes
        swizzle = next((s for s in SWIZZLES if row_bytes % s == 0), None)
        if swizzle is None:
            return None
        tile = SwizzledTile(tuple(shape), element_bytes, swizzle)
        aligned = all(copy.offset % COPY_ALIGNMENT == 0 for copy in tile.copies)
        return tile if aligned else None

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.element_bytes

    @property
    def alignment(self) -> int:
        """Units: bytes; after so many the pattern begins anew."""
        return PATTERN_ROWS * self.swizzle

    @property
    def rows(self) -> int:
        return prod(self.shape[:-1])

    @property
    def chunk_elements(self) -> int:
        return self.swizzle // self.element_bytes

    @property
    def chunk_bytes(self) -> int:
        return self.rows * self.swizzle

    @property
    def chunks(self) -> int:
        return self.shape[-1] // self.chunk_elements

    @cached_property
    def box(self) -> tuple[int, ...]:
        """The extents of one copy: rows as they are, as far as one copy may have them."""
        return box_of(self.shape[:-1], self.chunk_elements)

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        """The copies that write the whole tile, in the order of their offsets."""
        return tuple(self.copies_of(self.box))

    def copies_of(self, box: Sequence[int]) -> Iterator[Copy]:
        """The same of copies of these extents, which lie together."""
        steps = [range(0, n, b) for n, b in zip(self.shape, box, strict=True)]
        for chunk, start in enumerate(steps[-1]):
            for rows in product(*steps[:-1]):
                row = self._row(rows)
                yield Copy((*rows, start), chunk * self.chunk_bytes + row * self.swizzle)

    def offset_of(self, coordinate: Sequence[int]) -> int:
        """The byte at which an element is, from the beginning of the tile."""
        assert all(0 <= c < n for c, n in zip(coordinate, self.shape, strict=True))
        chunk, inside = divmod(coordinate[-1], self.chunk_elements)
        row = self._row(coordinate[:-1])
        return swizzled(
            chunk * self.chunk_bytes + row * self.swizzle + inside * self.element_bytes,
            self.swizzle,
        )

    def _row(self, coordinate: Sequence[int]) -> int:
        row = 0
        for c, extent in zip(coordinate, self.shape[:-1], strict=True):
            row = row * extent + c
        return row


@dataclass(frozen=True)
class Slot:
    """Tiles side by side, each aligned as it must be, such that slots may follow each other.

    Units:    bytes
    """

    tiles: tuple[SwizzledTile, ...]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each tile begins."""
        starts, end = [], 0
        for tile in self.tiles:
            start = -(-end // tile.alignment) * tile.alignment
            starts.append(start)
            end = start + tile.bytes
        return tuple(starts)

    @property
    def alignment(self) -> int:
        return max(tile.alignment for tile in self.tiles)

    @property
    def bytes(self) -> int:
        """From one slot to the next."""
        end = self.offsets[-1] + self.tiles[-1].bytes
        return -(-end // self.alignment) * self.alignment

    @property
    def copied_bytes(self) -> int:
        """Of the tiles alone."""
        return sum(tile.bytes for tile in self.tiles)


def box_of(rows: Sequence[int], chunk_elements: int) -> tuple[int, ...]:
    """The extents of one copy of these rows, as far as one copy may have them."""
    found = list(rows)
    for axis in reversed(range(len(found))):
        if found[axis] > MOST_IN_COPY:
            # What a copy writes lies together, so that outer axes are stepped through.
            inside = prod(found[axis + 1 :])
            found[: axis + 1] = [*[1] * axis, _part_of(found[axis], inside)]
            break
    return (*found, chunk_elements)


def swizzled(place: int, swizzle: int) -> int:
    """Where the byte is that would be at `place` without a swizzle."""
    pieces = swizzle - 16  # bits [4, 4+b)
    return place ^ (place >> 3 & pieces)


def _part_of(extent: int, inside: int) -> int:
    """The most of an axis that one copy may have, each copy as many, patterns whole if possible.

    `inside` is how many rows each step along the axis has.
    """
    parts = [p for p in range(1, MOST_IN_COPY + 1) if extent % p == 0]
    whole = [p for p in parts if p * inside % PATTERN_ROWS == 0]
    return max(whole or parts)
