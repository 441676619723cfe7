"""Layout: which element of a tile each register of each thread of a block holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from tilec.layout.linear_map import LinearMap, combine

LANE_BITS = 5
LANES = 1 << LANE_BITS

# Far more than any block has registers. What is read may say anything, and is then not built up.
_MOST_BITS = 24

Basis = tuple[int, ...]


class LayoutError(Exception):
    """A layout that cannot be: the message says what was expected."""


@dataclass(frozen=True)
class Layout:
    """Where a block of threads keeps a tile.

    The largest power of two in each extent is the extent of the *block*, the odd rest is how
    often the block is *repeated* along that axis, in registers. (96, 64) is a (32, 64) block
    repeated (3, 1) times. Within the block a coordinate is the XOR of the basis vectors of the
    set bits of register, lane and warp; a zero or dependent basis vector means that several
    registers or threads hold the same element.

    Registers of a thread are numbered with the repeats outermost (row-major) and the register
    bits innermost: `register = repeat_index << len(layout.register) | bits`.

    Shapes:   one basis vector a bit, one number an axis; `lane` has five vectors
    Raises:   LayoutError where a vector leaves the block, or an element of the block is nowhere
    Source:   "Linear Layouts"; the repeats are ours
    """

    shape: tuple[int, ...]
    register: tuple[Basis, ...]
    lane: tuple[Basis, ...]
    warp: tuple[Basis, ...]

    def __post_init__(self) -> None:
        if any(extent < 1 for extent in self.shape):
            raise LayoutError(f"expected positive extents, got shape {self.shape}")
        if len(self.lane) != LANE_BITS:
            raise LayoutError(f"expected {LANE_BITS} lane vectors, got {len(self.lane)}")
        for vector in (*self.register, *self.lane, *self.warp):
            if len(vector) != self.rank:
                raise LayoutError(f"expected {self.rank} numbers a vector, got {vector}")
            if any(not 0 <= x < extent for x, extent in zip(vector, self.block, strict=True)):
                raise LayoutError(f"expected a vector inside the block {self.block}, got {vector}")
        if not self.linear.is_surjective:
            raise LayoutError(f"expected every element of the block {self.block} to have a place")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Layouts are keys of many tables: hashing their tuples each time is what those would cost.
        return hash((self.shape, self.register, self.lane, self.warp))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @cached_property
    def block(self) -> tuple[int, ...]:
        """The extents of the block that is repeated: powers of two."""
        return tuple(extent & -extent for extent in self.shape)

    @property
    def repeats(self) -> tuple[int, ...]:
        """How often the block is repeated along each axis: odd numbers."""
        return tuple(n // m for n, m in zip(self.shape, self.block, strict=True))

    @cached_property
    def registers(self) -> int:
        """How many registers of one element a thread has."""
        return prod(self.repeats) << len(self.register)

    @property
    def warps(self) -> int:
        return 1 << len(self.warp)

    @cached_property
    def linear(self) -> LinearMap:
        """Register bits, then lane bits, then warp bits -> row-major index within the block."""
        vectors = (*self.register, *self.lane, *self.warp)
        return LinearMap(tuple(map(self.flat, vectors)), prod(self.block).bit_length() - 1)

    def flat(self, vector: Sequence[int]) -> int:
        """The row-major index of a coordinate within the block; XOR of vectors is XOR of these."""
        index = 0
        for coordinate, extent in zip(vector, self.block, strict=True):
            index = index * extent + coordinate
        return index

    def coordinates(self, register: int, lane: int, warp: int) -> tuple[int, ...]:
        """The coordinates in the tile of the element that this register of this thread holds."""
        assert 0 <= register < self.registers and 0 <= lane < LANES and 0 <= warp < self.warps
        repeat = np.unravel_index(register >> len(self.register), self.repeats or (1,))
        bits = register & ((1 << len(self.register)) - 1)
        return tuple(
            int(repeat[axis]) * self.block[axis]
            + (
                combine([v[axis] for v in self.register], bits)
                ^ combine([v[axis] for v in self.lane], lane)
                ^ combine([v[axis] for v in self.warp], warp)
            )
            for axis in range(self.rank)
        )

    def table(self) -> npt.NDArray[np.int64]:
        """All coordinates at once: an array [warps, lanes, registers, rank], not to be changed."""
        return _table(self)

    def elements(self) -> npt.NDArray[np.int64]:
        """The row-major index in the tile of each element: an array [warps, lanes, registers]."""
        strides = [prod(self.shape[axis + 1 :]) for axis in range(self.rank)]
        return self.table() @ np.array(strides, dtype=np.int64)

    def to_dict(self) -> dict[str, list[int]]:
        """This layout as lists of integers; a basis vector is its row-major index in the block."""
        return {
            "shape": list(self.shape),
            "register": [self.flat(vector) for vector in self.register],
            "lane": [self.flat(vector) for vector in self.lane],
            "warp": [self.flat(vector) for vector in self.warp],
        }

    @staticmethod
    def from_dict(encoded: Mapping[str, Sequence[int]]) -> Layout:
        """The layout that `to_dict` wrote.

        Raises:   LayoutError if the numbers make no layout
        """
        shape = tuple(encoded["shape"])
        if any(extent < 1 for extent in shape):
            raise LayoutError(f"expected positive extents, got shape {shape}")
        vectors = [encoded[name] for name in ("register", "lane", "warp")]
        repeats = prod(extent // (extent & -extent) for extent in shape)
        # Bits first: what is shifted by them is a number of as many.
        bits = sum(map(len, vectors))
        if max(bits, len(shape)) > _MOST_BITS or repeats << bits > 1 << _MOST_BITS:
            raise LayoutError(
                f"expected no more than 2^{_MOST_BITS} places and {_MOST_BITS} axes, got shape "
                f"{shape} and {bits} bits"
            )
        return from_flat(shape, *vectors)


def from_flat(
    shape: tuple[int, ...], register: Sequence[int], lane: Sequence[int], warp: Sequence[int]
) -> Layout:
    """The layout whose basis vectors are given as row-major indices in the block."""
    block = tuple(extent & -extent for extent in shape)
    if prod(block) > 1 << (len(register) + len(lane) + len(warp)):
        raise LayoutError(f"expected every element of the block {block} to have a place")

    def vectors(indices: Sequence[int]) -> tuple[Basis, ...]:
        if any(not 0 <= index < prod(block) for index in indices):
            raise LayoutError(f"expected vectors inside the block {block}, got {list(indices)}")
        return tuple(tuple(map(int, np.unravel_index(i, block))) if block else () for i in indices)

    return Layout(shape, vectors(register), vectors(lane), vectors(warp))


@lru_cache(maxsize=256)
def _table(layout: Layout) -> npt.NDArray[np.int64]:
    axes = []
    grid = np.indices(layout.repeats, dtype=np.int64)
    repeats = grid.reshape(layout.rank, prod(layout.repeats))
    for axis, extent in enumerate(layout.block):
        bits = extent.bit_length() - 1
        register, lane, warp = (
            LinearMap(tuple(vector[axis] for vector in vectors), bits).images()
            for vectors in (layout.register, layout.lane, layout.warp)
        )
        inside = warp[:, None, None] ^ lane[None, :, None] ^ register[None, None, :]
        whole = inside[:, :, None, :] + (repeats[axis] * extent)[None, None, :, None]
        axes.append(whole.reshape(layout.warps, LANES, layout.registers))
    shape = (layout.warps, LANES, layout.registers, layout.rank)
    table = np.stack(axes, axis=-1) if axes else np.zeros(shape, dtype=np.int64)
    table.setflags(write=False)
    return table
