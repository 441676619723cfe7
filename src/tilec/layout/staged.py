"""Tiles in a slot of shared memory as threads fill and read them: where each element is.

The order is that of TMA (`swizzled`): rows of up to 128 bytes, whose 16-byte pieces are permuted.
So neither copies of 16 bytes side by side nor eight rows of a matrix meet in a bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from tilec.layout.banks import bank_conflicts
from tilec.layout.layout import LANES, Basis, Layout
from tilec.layout.linear_map import LinearMap, Reduced, combine
from tilec.layout.matrix_access import (
    ROW_BYTES,
    Holding,
    MatrixAccesses,
    matrix_accesses,
    matrix_forms,
)
from tilec.layout.shared_access import Access, ThreadAccesses, thread_accesses
from tilec.layout.shared_memory import VECTOR_BYTES
from tilec.layout.swizzled import SwizzledTile

Registers = tuple[int, ...]


@dataclass(frozen=True)
class StagedTile:
    """A tile in memory's order, and which axis of it each axis of the tile in use is.

    Shapes:   `shape` is that of the tile in use; `axes[i]` is -1 for an axis of extent 1 that
              memory does not have
    """

    memory: SwizzledTile
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    def offset(self, coordinate: Sequence[int]) -> int:
        """Units:    elements from the beginning of the tile"""
        place = [0] * len(self.memory.shape)
        for axis, number in zip(self.axes, coordinate, strict=True):
            if axis >= 0:
                place[axis] = number
        return self.memory.offset_of(place) // self.memory.element_bytes

    @property
    def is_linear(self) -> bool:
        """Whether what coordinates add to an offset can be XORed within the block of a layout of
        this shape, and added between its repeats."""
        taken = 0
        for axis, bit in self._units:
            place = self._plain(axis, bit)
            if taken & place:
                return False
            taken |= place
        return all(
            not place & (taken | (self.memory.alignment // self.memory.element_bytes - 1))
            for place in map(self.offset, self._repeats)
        )

    def accesses(self, layout: Layout, groups: Iterable[tuple[Registers, Basis]]) -> ThreadAccesses:
        """Accesses of neighbouring elements: registers, and the coordinate of the first of them in
        thread 0.

        Assumes:  `is_linear`
        """
        lane, warp = (tuple(map(self.offset, v)) for v in (layout.lane, layout.warp))
        return thread_accesses(lane, warp, [(r, *self._parts(layout, c)) for r, c in groups])

    def reads(self, layout: Layout) -> ThreadAccesses:
        """The accesses by which threads read what they hold in a layout.

        Assumes:  `is_linear`
        """
        found = [self._by_registers(layout), *self._by_matrices(layout)]
        return min(found, key=lambda one: (self._wavefronts(one), len(one.accesses)))

    # ---- places ------------------------------------------------------------------------------

    @property
    def _units(self) -> Iterator[tuple[int, int]]:
        """The axis and bit of each bit of a coordinate in the block."""
        for axis, extent in enumerate(self.shape):
            for bit in range((extent & -extent).bit_length() - 1):
                yield axis, 1 << bit

    def _plain(self, axis: int, number: int) -> int:
        """What a coordinate adds to the offset before pieces are permuted."""
        memory, place = self.memory, [0] * len(self.memory.shape)
        if self.axes[axis] < 0:
            return 0
        place[self.axes[axis]] = number
        chunk, inside = divmod(place[-1], memory.chunk_elements)
        row = 0
        for at, extent in zip(place[:-1], memory.shape[:-1], strict=True):
            row = row * extent + at
        return (chunk * memory.rows + row) * memory.chunk_elements + inside

    @cached_property
    def _repeats(self) -> tuple[Basis, ...]:
        """Where each repeat of the block begins, in the order of registers."""
        steps = [range(0, extent, extent & -extent) for extent in self.shape]
        return tuple(product(*steps))

    def _parts(self, layout: Layout, coordinate: Basis) -> tuple[int, int]:
        """What is XORed with a thread's own offset, and what is added."""
        inside = tuple(c % extent for c, extent in zip(coordinate, layout.block, strict=True))
        start = tuple(c - i for c, i in zip(coordinate, inside, strict=True))
        return self.offset(inside), self.offset(start)

    # ---- reads -------------------------------------------------------------------------------

    def _by_registers(self, layout: Layout) -> ThreadAccesses:
        steps = self._steps(layout)
        others = [1 << bit for bit in range(len(layout.register)) if 1 << bit not in steps]
        groups = []
        for repeat, start in enumerate(self._repeats):
            for choice in range(1 << len(others)):
                first = combine(others, choice)
                inside = layout.coordinates(first, 0, 0)
                place = tuple(a + b for a, b in zip(start, inside, strict=True))
                base = first | repeat << len(layout.register)
                held = tuple(base ^ combine(steps, i) for i in range(1 << len(steps)))
                groups.append((held, place))
        return self.accesses(layout, groups)

    def _steps(self, layout: Layout) -> list[int]:
        """Bits of registers whose elements are neighbours in memory: a vector of one access."""
        places = [self.offset(vector) for vector in layout.register]
        threads = [self.offset(vector) for vector in (*layout.lane, *layout.warp)]
        steps: list[int] = []
        while (2 << len(steps)) * self.memory.element_bytes <= VECTOR_BYTES:
            size = 1 << len(steps)
            if size not in places:
                break
            others = [place for place in places if place != size and place not in range(1, size)]
            if any(place & (2 * size - 1) for place in (*threads, *others)):
                break
            steps.append(1 << places.index(size))
        return steps

    def _by_matrices(self, layout: Layout) -> Iterator[MatrixAccesses]:
        size, bits = self.memory.element_bytes, prod(layout.block).bit_length() - 1
        register, lane, warp = (
            tuple(map(layout.flat, vectors))
            for vectors in (layout.register, layout.lane, layout.warp)
        )
        if len(Reduced(register).pivots) < len(register):
            return  # copies in registers
        total = prod(self.memory.shape).bit_length()
        places = [self.offset(self._at(1 << bit)) for bit in range(bits)]
        for form in matrix_forms(register, lane, size):
            held = Holding(register, warp, bits, 1)
            found = matrix_accesses(form, held, LinearMap(tuple(places), total), size)
            if found is not None:
                yield self._repeated(layout, found)

    def _at(self, flat: int) -> Basis:
        """The coordinate of a row-major index in the block."""
        found = []
        for extent in reversed(self.shape):
            flat, inside = divmod(flat, extent & -extent)
            found.append(inside)
        return tuple(reversed(found))

    def _repeated(self, layout: Layout, one: MatrixAccesses) -> MatrixAccesses:
        """The same for each repeat of the block."""
        found = []
        for repeat, start in enumerate(self._repeats):
            base = repeat << len(layout.register)
            for access in one.accesses:
                held = tuple(base | register for register in access.registers)
                found.append(Access(held, access.xor, access.add + self.offset(start)))
        return MatrixAccesses(
            one.lane,
            one.warp,
            tuple(found),
            warp_mask=one.warp_mask,
            matrices=one.matrices,
            transposed=one.transposed,
        )

    def _wavefronts(self, one: ThreadAccesses) -> int:
        """By linearity each access takes as many as the first."""
        size, first = self.memory.element_bytes, one.accesses[0]
        addresses = [
            one.offset(first, lane, 0) * size if one.takes_part(lane, 0) else None
            for lane in range(LANES)
        ]
        is_matrix = isinstance(one, MatrixAccesses)
        width = ROW_BYTES if is_matrix else size * len(first.registers)
        return len(one.accesses) * bank_conflicts(addresses, width)
