"""Layouts that suit memory: how the threads of a block share an access to it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.ir.types import is_tile
from tilec.layout import LANES, Layout, blocked, contiguous_elements
from tilec.layout.costs import access_cost
from tilec.layout.wgmma import WORD_BYTES, is_accumulator_layout
from tilec.ops.bounds import Bounds
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import bit_width
from tilec.ops.rules import AccessShape, Placing

# Of one thread, where what it holds was chosen by wider elements that it is converted from.
_ENOUGH_BYTES = 8
# Of one thread: less than what an exchange through shared memory takes.
_FEW_REGISTERS = 4


def memory_layout(access: AccessShape, bounds: Sequence[Bounds], placing: Placing) -> Layout:
    """The layout in which threads move a tile best: wide accesses, neighbours side by side."""
    rank = len(access.shape)
    contiguous = contiguous_axis(access.view)
    order = [axis for axis in reversed(range(rank)) if axis != contiguous]
    if contiguous is not None:
        order.insert(0, contiguous)
    width = 1
    if contiguous is not None:
        width = _memory_width(access, contiguous, bounds, placing)
    return blocked(access.shape, placing.warps, order, width)


def held_layout(tile: ir.Value, warps: int) -> Layout:
    """The layout of what an access loads or stores; a scalar is held by every thread."""
    return layout_of(tile.type) if is_tile(tile) else blocked((), warps, ())


def _memory_width(
    access: AccessShape, contiguous: int, bounds: Sequence[Bounds], placing: Placing
) -> int:
    """As wide as memory allows, but narrow enough for every thread to have a part of its own.

    Only the largest power of two in each extent is spread over threads (`Layout`).
    """
    element_bytes = bit_width(ir.MemRefType(access.view.type).element_type) // 8
    width = max(1, placing.vector_bytes // element_bytes)
    extent = access.shape[contiguous]
    spread = prod(extent & -extent for extent in access.shape)
    width = min(width, extent & -extent, max(1, spread // (placing.warps * LANES)))
    while bounds[contiguous].divisor % width:
        width //= 2
    return width


def cost_of_access(
    layout: Layout, access: AccessShape, bounds: Sequence[Bounds], placing: Placing
) -> float:
    """What moving a tile costs in this layout (`tilec.layout.costs`)."""
    element_bytes = bit_width(ir.MemRefType(access.view.type).element_type) // 8
    contiguous = contiguous_axis(access.view)
    widest = placing.vector_bytes
    if contiguous is not None:
        while widest > element_bytes and bounds[contiguous].divisor % (widest // element_bytes):
            widest //= 2
    return access_cost(layout, contiguous, element_bytes, widest)


def is_as_wide(
    layout: Layout, access: AccessShape, bounds: Sequence[Bounds], placing: Placing
) -> bool:
    """Whether threads that hold a tile so move it in pieces as wide as in its best layout, and no
    more of them.

    Of what is long along one axis at most each may have copies, and so may a thread that holds very
    little: caches serve it.
    """
    least = memory_layout(access, bounds, placing).registers
    is_short = sum(extent > 1 for extent in access.shape) <= 1
    if not is_short and layout.registers > max(least, _FEW_REGISTERS):
        return False
    contiguous = contiguous_axis(access.view)
    if contiguous is None:
        return True
    best = _memory_width(access, contiguous, bounds, placing)
    if bit_width(ir.MemRefType(access.view.type).element_type) == 8:
        # A warp moves 256 bytes at once then, which costs less than another layout for more.
        best = min(best, _ENOUGH_BYTES)
    return contiguous_elements(layout, contiguous) >= best and _is_coalesced(layout, contiguous)


def is_beside_sums(layout: Layout, access: AccessShape) -> bool:
    """Whether it is to meet the sums of asynchronous products, a word or more at a time.

    Neighbouring accesses use up what a sector has while it is in the cache. Beside rings there is
    no room for all of a tile, and its threads would meet at barriers.
    """
    contiguous = contiguous_axis(access.view)
    if contiguous is None or len(access.shape) < 2 or not is_accumulator_layout(layout):
        return False
    size = bit_width(ir.MemRefType(access.view.type).element_type) // 8
    return contiguous_elements(layout, contiguous) * size >= WORD_BYTES


def _is_coalesced(layout: Layout, contiguous: int) -> bool:
    """Whether neighbouring lanes hold neighbouring elements, as far as there are any."""
    first = layout.lane[0]
    along = first[contiguous]
    return (
        along != 0
        or layout.block[contiguous] <= contiguous_elements(layout, contiguous)
        or not any(first)
    )


def contiguous_axis(view: ir.Value) -> int | None:
    """The axis of a view whose stride is known to be 1."""
    strides, _ = ir.MemRefType(view.type).get_strides_and_offset()
    return strides.index(1) if 1 in strides else None
