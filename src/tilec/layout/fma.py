"""Layouts of matrix products that each thread computes by itself, from rows and columns of factors.

Shapes:   tiles are (…, M, K), (…, K, N) and (…, M, N), at most one batch axis
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.layout.facts import unique_holders
from tilec.layout.layout import LANE_BITS, Layout
from tilec.layout.over_warps import Places, doubling, independent, warp_bits


def fma_accumulator_layout(shape: Sequence[int], warps: int) -> Layout:
    """The layout of a product that threads compute alone: up to 4 columns in neighbouring
    registers, lanes over 8 of these and over 4 rows, warps as for `mma`."""
    places = Places(shape)
    bits = {axis: (shape[axis] & -shape[axis]).bit_length() - 1 for axis in (-2, -1)}
    register_bits = min(2, bits[-1])
    across = min(3, bits[-1] - register_bits)
    down = min(LANE_BITS - across, bits[-2])
    across = min(LANE_BITS - down, bits[-1] - register_bits)
    columns = [places.at(0, 1 << bit) for bit in range(register_bits + across)]
    rows = [places.at(1 << bit, 0) for bit in range(down)]
    nowhere = (0,) * len(shape)
    lane = (*columns[register_bits:], *rows)
    taken = 1 << down, 1 << register_bits + across
    over = warp_bits(shape, warps, *taken, rows_first=False)
    left = [v for v in places.beyond(*taken) if v not in over]
    return Layout(
        tuple(shape),
        (*columns[:register_bits], *left),
        (*lane, *[nowhere] * (LANE_BITS - len(lane))),
        (*over, *[nowhere] * (warps.bit_length() - 1 - len(over))),
    )


def is_fma_accumulator_layout(layout: Layout) -> bool:
    """Whether threads can add products to a tile that they hold so."""
    vectors = (*layout.register, *layout.lane, *layout.warp)
    along_axes = all(sum(map(bool, vector)) <= 1 for vector in vectors)
    return along_axes and unique_holders(layout).register == 0


def fma_operand_layouts(accumulator: Layout, depth: int) -> tuple[Layout, Layout]:
    """The layouts of factors of which each thread has the rows and columns that its elements of
    the product take, all along k."""
    *batch, rows, columns = accumulator.shape
    ks = doubling(1, depth & -depth)
    zeros = (0,) * len(batch)
    a = Layout(
        (*batch, rows, depth),
        independent([(*zeros, 0, k) for k in ks], [(*v[:-1], 0) for v in accumulator.register]),
        tuple((*v[:-1], 0) for v in accumulator.lane),
        tuple((*v[:-1], 0) for v in accumulator.warp),
    )
    b = Layout(
        (*batch, depth, columns),
        independent(
            [(*v[:-2], 0, v[-1]) for v in accumulator.register], [(*zeros, k, 0) for k in ks]
        ),
        tuple((*v[:-2], 0, v[-1]) for v in accumulator.lane),
        tuple((*v[:-2], 0, v[-1]) for v in accumulator.warp),
    )
    return a, b
