"""Tiles on their way out: each warp puts what it holds into shared memory, a box at a time.

A *box* is rows by one chunk of columns, in the swizzle that copies by hardware read (`swizzled`).
Each warp has a box of its own in a buffer, so that no other warp needs to be waited for. From
there hardware copies it, or the warp stores it row by row.

Which registers are in a box follows from the layout's vectors: those of columns below a chunk, and
of the lowest rows, as far as one warp has them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from tilec.layout.layout import LANE_BITS, Basis, Layout
from tilec.layout.linear_map import LinearMap, combine
from tilec.layout.matrix_access import Holding, matrix_accesses, matrix_forms
from tilec.layout.shared_access import ThreadAccesses, thread_accesses
from tilec.layout.shared_memory import VECTOR_BYTES
from tilec.layout.swizzled import PATTERN_ROWS, SWIZZLES, SwizzledTile

MOST_ROWS = 16  # of a box: what a warp has of the sums of a product


@dataclass(frozen=True)
class Box:
    """One box of each warp.

    Registers of `writes` are those of the tile's layout, of `reads` those of the layout by rows;
    offsets are elements of a buffer that has a box for each warp.

    Shapes:   `start` is the first coordinate in the tile, of the first warp
    """

    start: tuple[int, ...]
    writes: ThreadAccesses
    reads: ThreadAccesses


@dataclass(frozen=True)
class Boxes:
    """A tile in boxes: `box` is one of them, `by_rows` how warps hold the tile by rows of boxes."""

    box: SwizzledTile
    boxes: tuple[Box, ...]
    by_rows: Layout


def box_of(shape: Sequence[int], element_bytes: int) -> SwizzledTile | None:
    """The largest box that a warp may have of a tile of this shape; None if there is none."""
    if len(shape) < 2 or any(extent != 1 for extent in shape[:-2]):
        return None
    whole = SwizzledTile.of(shape, element_bytes)
    rows = min(shape[-2] & -shape[-2], MOST_ROWS)
    if whole is None or rows < PATTERN_ROWS:
        return None
    extents = (*shape[:-2], rows, whole.chunk_elements)
    return SwizzledTile(extents, element_bytes, whole.swizzle)


def narrow_box_of(shape: Sequence[int], element_bytes: int) -> SwizzledTile | None:
    """The box of a warp that has as few columns as it has rows of a product: of transposed sums."""
    box, swizzle = box_of(shape, element_bytes), MOST_ROWS * element_bytes
    if box is None or swizzle not in SWIZZLES or swizzle > box.swizzle:
        return None
    return SwizzledTile((*box.shape[:-1], MOST_ROWS), element_bytes, swizzle)


@lru_cache(maxsize=256)
def boxes_of(layout: Layout, element_bytes: int) -> Boxes | None:
    """How warps take out a tile that they hold so; None: not box by box."""
    largest = box_of(layout.shape, element_bytes)
    if largest is None or not _is_bits(layout):
        return None
    own = {vector for vector in (*layout.register, *layout.lane) if vector[-2]}
    rows = 1
    while rows < largest.shape[-2] and _row(layout.rank, rows) in own:
        rows *= 2
    if rows < PATTERN_ROWS:
        return None
    # A warp may have few columns, as of sums that are transposed.
    for swizzle in SWIZZLES:
        if swizzle > largest.swizzle:
            continue
        shape = (*largest.shape[:-2], rows, swizzle // element_bytes)
        frame = _Frame(layout, SwizzledTile(shape, element_bytes, swizzle))
        if frame.is_whole:
            return frame.boxes()
    return None


def _is_bits(layout: Layout) -> bool:
    """Whether each bit of a register, lane or warp number is one of a coordinate of its own."""
    vectors = (*layout.register, *layout.lane, *layout.warp)
    return all(sum(map(int.bit_count, v)) == 1 for v in vectors) and (
        len(set(vectors)) == len(vectors) == layout.linear.rows
    )


def _row(rank: int, row: int) -> Basis:
    return (*[0] * (rank - 2), row, 0)


@dataclass(frozen=True)
class _Frame:
    """A box in the layout that it is cut from."""

    layout: Layout
    box: SwizzledTile

    @property
    def is_whole(self) -> bool:
        """Whether each warp has all of the boxes in which it has something."""
        inside = sum(map(self._is_inside, (*self.layout.register, *self.layout.lane)))
        return inside == self._bits and all(map(self._is_inside, self.layout.lane))

    @property
    def _bits(self) -> int:
        return (self.box.shape[-2] * self.box.shape[-1]).bit_length() - 1

    def _is_inside(self, vector: Basis) -> bool:
        return vector[-2] < self.box.shape[-2] and vector[-1] < self.box.shape[-1]

    def _place(self, vector: Basis) -> int:
        """The row-major index in the box."""
        return vector[-2] * self.box.shape[-1] + vector[-1]

    def _offset(self) -> LinearMap:
        """Row-major index in the box -> element of it in shared memory."""
        width = self.box.shape[-1]
        lead = (0,) * (self.layout.rank - 2)
        places = (divmod(1 << bit, width) for bit in range(self._bits))
        offsets = (self.box.offset_of((*lead, *place)) for place in places)
        columns = tuple(offset // self.box.element_bytes for offset in offsets)
        return LinearMap(columns, self._bits)

    # ---- all boxes -----------------------------------------------------------------------------

    def boxes(self) -> Boxes:
        by_rows = self._by_rows()
        writes = _per_warp(self._writes(), self.layout.warp, self._bits)
        reads = _per_warp(self._reads(by_rows), self.layout.warp, self._bits)
        found = [
            Box(start, _of_box(writes, numbers), _of_box(reads, by_row))
            for (start, numbers), (_, by_row) in zip(
                self._registers(self.layout), self._registers(by_rows), strict=True
            )
        ]
        return Boxes(self.box, tuple(found), by_rows)

    def _registers(self, layout: Layout) -> Iterator[tuple[tuple[int, ...], list[int]]]:
        """Of each box its start, and the registers in it: numbered as bits of those inside."""
        inside = [1 << i for i, v in enumerate(layout.register) if self._is_inside(v)]
        outside = [i for i, v in enumerate(layout.register) if not self._is_inside(v)]
        repeats = product(*(range(count) for count in layout.repeats))
        for number, repeat in enumerate(repeats):
            base = np.multiply(repeat, layout.block)
            for choice in range(1 << len(outside)):
                chosen = [outside[i] for i in range(len(outside)) if choice >> i & 1]
                start = base + sum((np.array(layout.register[i]) for i in chosen), 0 * base)
                first = number << len(layout.register) | sum(1 << i for i in chosen)
                own = range(1 << len(inside))
                yield tuple(map(int, start)), [first | combine(inside, i) for i in own]

    # ---- accesses of one box -------------------------------------------------------------------

    def _writes(self) -> ThreadAccesses:
        held = tuple(self._place(v) for v in self.layout.register if self._is_inside(v))
        lane = tuple(self._place(v) for v in self.layout.lane)
        offset, size = self._offset(), self.box.element_bytes
        for form in matrix_forms(held, lane, size):
            found = matrix_accesses(form, Holding(held, (), self._bits, 1), offset, size)
            if found is not None:
                return found
        return _vectors(held, lane, offset, VECTOR_BYTES // size)

    def _by_rows(self) -> Layout:
        """The warps' own parts, neighbouring lanes along rows."""
        rank, (*_, rows, columns) = self.layout.rank, self.box.shape
        lead = (0,) * (rank - 1)
        inside = [(*lead, 1 << bit) for bit in range(columns.bit_length() - 1)]
        inside += [_row(rank, 1 << bit) for bit in range(rows.bit_length() - 1)]
        outside = [v for v in self.layout.register if not self._is_inside(v)]
        return Layout(
            self.layout.shape,
            (*inside[LANE_BITS:], *outside),
            tuple(inside[:LANE_BITS]),
            self.layout.warp,
        )

    def _reads(self, by_rows: Layout) -> ThreadAccesses:
        held = tuple(self._place(v) for v in by_rows.register if self._is_inside(v))
        lane = tuple(self._place(v) for v in by_rows.lane)
        return _vectors(held, lane, self._offset(), 1)


def _vectors(
    held: Sequence[int], lane: Sequence[int], offset: LinearMap, most: int
) -> ThreadAccesses:
    """Accesses of up to so many neighbouring elements."""
    places = [offset(vector) for vector in held]
    wide = 0
    while wide < len(places) and places[wide] == 1 << wide and 2 << wide <= most:
        wide += 1
    starts = range(0, 1 << len(held), 1 << wide)
    accesses = [
        (tuple(range(first, first + (1 << wide))), combine(places, first), 0) for first in starts
    ]
    return thread_accesses(tuple(map(offset, lane)), (), accesses)


def _per_warp(accesses: ThreadAccesses, warp: Sequence[Basis], bits: int) -> ThreadAccesses:
    """The same accesses, each warp to a box of its own."""
    return replace(accesses, warp=tuple(1 << bits + number for number in range(len(warp))))


def _of_box(accesses: ThreadAccesses, numbers: Sequence[int]) -> ThreadAccesses:
    """The same accesses of other registers."""
    renamed = tuple(
        replace(one, registers=tuple(numbers[register] for register in one.registers))
        for one in accesses.accesses
    )
    return replace(accesses, accesses=renamed)
