"""Partial results of warps, which meet in shared memory: where each of them lies there.

Algorithm: a place in the buffer is a number whose bits are coordinates in a basis that is made of
what the threads hold, low bits first:
1. results in registers of one thread, as many as a vector of 16 bytes takes: they are written and
   read together;
2. partials of one result, as many as are left of the vector: they are read together. Where lanes
   hold results of their own, these must still fit into the banks, for what they write lies apart;
3. results of lanes;
4. other results in registers, results of warps, other partials.
So neither what the lanes of a warp write nor what they read comes to one bank twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tilec.layout.banks import BANKS
from tilec.layout.layout import LANE_BITS, Layout
from tilec.layout.linear_map import LinearMap, Reduced, combine, intersection
from tilec.layout.shared_access import ThreadAccesses, thread_accesses
from tilec.layout.shared_memory import VECTOR_BYTES
from tilec.layout.views import projected


@dataclass(frozen=True)
class Exchange:
    """Partial results of warps through shared memory: write, barrier, read, combine.

    The buffer has `elements` elements. Registers are those of the result. All that is read into
    one register is combined, in the order of the accesses and of the elements in each, which is
    the same whatever the size of the elements. If the buffer is used again, a barrier must come
    before.
    """

    elements: int
    write: ThreadAccesses
    read: ThreadAccesses


@lru_cache(maxsize=256)
def exchange_of(layout: Layout, axes: tuple[int, ...], element_bytes: int) -> Exchange | None:
    """The exchange of a reduction along axes; None if no warp holds what another needs."""
    places = _Places(layout, axes, element_bytes)
    if not places.partial_bits:
        return None
    return Exchange(places.elements, places.write(), places.read())


class _Places:
    """The numbering of partial results."""

    def __init__(self, layout: Layout, axes: Sequence[int], element_bytes: int) -> None:
        view = projected(layout, *axes)
        own = [layout.flat(vector) for vector in layout.register]
        self._register = [
            combine(own, view.to_old[1 << bit]) for bit in range(len(view.layout.register))
        ]
        self._lane = [layout.flat(vector) for vector in layout.lane]
        self._warp = [layout.flat(vector) for vector in layout.warp]
        along = _along(layout, axes)
        # What one warp reaches along the axes without leaving a result is folded already.
        folded = intersection([*own, *self._lane], along)
        span = Reduced(folded)
        partial = [vector for vector in along if span.add(vector)]
        lane = [vector for vector in self._lane if span.add(vector)]
        warp = [vector for vector in self._warp if span.add(vector)]
        register = [bit for bit, vector in enumerate(self._register) if span.add(vector)]

        vector_bits, bank_bits = (
            (size // element_bytes).bit_length() - 1 for size in (VECTOR_BYTES, BANKS.bytes_at_once)
        )
        self._neighbours = register[:vector_bits]
        first = len(self._neighbours)
        near = max(0, min(vector_bits, bank_bits - len(lane)) - first)
        neighbours, others = (
            [self._register[bit] for bit in bits] for bits in (register[:first], register[first:])
        )
        basis = [*neighbours, *partial[:near], *lane, *others, *warp, *partial[near:]]
        self._basis = LinearMap((*folded, *basis), (prod(layout.block) - 1).bit_length())
        assert self._basis.rank == len(self._basis.columns), "coordinates are unique"
        self._folded = len(folded)
        self.partial_bits = len(partial)
        self._near, self._far = len(partial[:near]), len(partial[near:])
        self._block = 1 << len(basis)
        self._repeats = prod(view.layout.repeats)

    @property
    def elements(self) -> int:
        return self._block * self._repeats

    def write(self) -> ThreadAccesses:
        register, lane, warp = self._columns(self._block - 1)
        free = _free((*register, *lane, *warp)) >> len(register)
        return thread_accesses(
            lane, warp, self._vectors(register),
            lane_mask=free & ((1 << LANE_BITS) - 1), warp_mask=free >> LANE_BITS,
        )  # fmt: skip

    def read(self) -> ThreadAccesses:
        top = self._block >> self._far
        near = ((1 << self._near) - 1) << len(self._neighbours)
        register, lane, warp = self._columns(top - 1 & ~near)
        accesses = [
            (registers * (1 << self._near), xor, add + far * top)
            for registers, xor, add in self._vectors(register)
            for far in range(1 << self._far)
        ]
        return thread_accesses(lane, warp, accesses)

    def _columns(self, kept: int) -> list[tuple[int, ...]]:
        """Of registers, lanes and warps: the place of each bit of their numbers, in `kept` bits."""
        return [
            tuple(self._place(vector) & kept for vector in vectors)
            for vectors in (self._register, self._lane, self._warp)
        ]

    def _place(self, element: int) -> int:
        """Where the partial result goes that an element of the block goes into."""
        coordinates = self._basis.solve(element)
        assert coordinates is not None, "threads hold the whole block"
        return coordinates >> self._folded

    def _vectors(self, register: Sequence[int]) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Registers that lie side by side, in order, and their constants to XOR and to add."""
        low = (1 << len(self._neighbours)) - 1
        inside = [1 << bit for bit in self._neighbours]
        numbers = [n for n in range(1 << len(register)) if not n & sum(inside)]
        for repeat in range(self._repeats):
            for number in numbers:
                place = combine(register, number)
                first = repeat << len(register) | number
                registers = tuple(
                    first | combine(inside, index ^ place & low) for index in range(low + 1)
                )
                yield registers, place & ~low, repeat * self._block


def _along(layout: Layout, axes: Sequence[int]) -> list[int]:
    """The bits of coordinates along the axes, as elements of the block: neighbours first."""
    found = []
    for axis in reversed(range(layout.rank)):
        for bit in range(layout.block[axis].bit_length() - 1):
            unit = tuple(1 << bit if a == axis else 0 for a in range(layout.rank))
            if axis in axes:
                found.append(layout.flat(unit))
    return found


def _free(columns: Sequence[int]) -> int:
    """The mask of the columns that are combinations of earlier ones."""
    pivots = Reduced(columns).pivots
    return sum(1 << index for index in range(len(columns)) if index not in pivots)
