"""What layouts cost, about: enough to choose between them, and quick to tell.

The unit is a cycle of a multiprocessor's memory unit, for one warp: a shuffle, and an access to
shared memory that hits each bank once, take one. Plans know it better (`conversion`), but making
one takes far longer than telling layouts apart.
"""

from __future__ import annotations

from functools import lru_cache

from tilec.layout.facts import contiguous_elements, register_permutation
from tilec.layout.layout import LANES, Layout

# A barrier and the latency of what it waits for; arithmetic on one register, four schedulers wide.
BARRIER = 24.0
ARITHMETIC = 0.25
SECTOR_BYTES = 32  # the least that memory moves
# What a sector takes on its way from or to the L2 cache, whose bandwidth is some 24 bytes a cycle
# for each multiprocessor (H100: 5.5 TB/s); an instruction takes one cycle however little it moves.
_SECTOR = 1.5
_WAVEFRONT_BYTES = 128


@lru_cache(maxsize=4096)
def conversion_cost(source: Layout, target: Layout, element_bytes: int) -> float:
    """Of a change of layout; 0 where it is none."""
    if source == target:
        return 0.0
    if register_permutation(source, target) is not None:
        return ARITHMETIC * target.registers
    words = max(1.0, element_bytes / 4)
    shared = BARRIER + sum(
        layout.registers * element_bytes * LANES / _WAVEFRONT_BYTES for layout in (source, target)
    )
    if source.warp != target.warp:
        return shared
    return min(shared, words * target.registers * (1 + ARITHMETIC))


@lru_cache(maxsize=4096)
def access_cost(
    layout: Layout, contiguous: int | None, element_bytes: int, vector_bytes: int
) -> float:
    """Of a load or store of a tile, `contiguous` being the axis of stride 1.

    Units:    `vector_bytes`: the widest access that alignment allows
    """
    width = 1
    if contiguous is not None:
        width = min(contiguous_elements(layout, contiguous), max(1, vector_bytes // element_bytes))
    instructions = layout.registers / width
    return instructions * max(1.0, _SECTOR * sectors(layout, contiguous, element_bytes, width))


def sectors(layout: Layout, contiguous: int | None, element_bytes: int, width: int) -> int:
    """How many sectors one instruction of a warp touches, where rows lie far apart.

    Units:    `width` in elements
    """
    lanes = layout.table()[0, :, 0, :].copy()
    if contiguous is not None:
        lanes[:, contiguous] = lanes[:, contiguous] * element_bytes // SECTOR_BYTES
    distinct = len(set(map(tuple, lanes.tolist())))
    return distinct * max(1, width * element_bytes // SECTOR_BYTES)


def least_sectors(layout: Layout, element_bytes: int, width: int) -> int:
    """How many sectors would hold what one instruction of a warp moves, side by side."""
    distinct = len(set(map(tuple, layout.table()[0, :, 0, :].tolist())))
    return -(-distinct * width * element_bytes // SECTOR_BYTES)


@lru_cache(maxsize=4096)
def reduction_cost(layout: Layout, result: Layout, axes: tuple[int, ...]) -> float:
    """Of combining the elements along axes; `result` is the layout without them.

    Butterflies for each lane bit that moves along the axes, and the partial results of warps
    through shared memory.
    """
    lanes = sum(any(vector[axis] for axis in axes) for vector in layout.lane)
    warps = any(vector[axis] for axis in axes for vector in layout.warp)
    cost = ARITHMETIC * layout.registers + lanes * result.registers * (1 + ARITHMETIC)
    return cost + (2 * BARRIER + 2 * result.registers if warps else 0.0)


@lru_cache(maxsize=4096)
def scan_cost(layout: Layout, axis: int) -> float:
    """Of combining each element with all before it along an axis.

    Registers that are neighbours fold into one block first. Then a shuffle for each lane bit that
    moves along the axis, and one more; the totals of warps go through shared memory.
    """
    lanes = sum(vector[axis] > 0 for vector in layout.lane)
    warps = sum(vector[axis] > 0 for vector in layout.warp)
    blocks = layout.registers / contiguous_elements(layout, axis)
    cost = 2 * ARITHMETIC * layout.registers
    if lanes:
        cost += (lanes + 1) * blocks * (1 + 2 * ARITHMETIC)
    if warps:
        cost += 2 * BARRIER + (2 << warps) * blocks * ARITHMETIC
    return cost
