"""Views: the layout of the same registers when the tile gets another shape.

Nothing moves between threads. The number of registers may change, since a thread that held one
element twice needs it once, and their numbering may; `View` has the maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from tilec.layout.layout import LANE_BITS, Layout, LayoutError, from_flat
from tilec.layout.linear_map import Reduced

Table = npt.NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """A layout, and how its registers relate to those of the layout it was made from.

    `to_old[r]` is the old register whose value register r of `layout` has; `to_new[r]` is the
    register of `layout` that stands for the old register r, None if none does (`sliced` only).
    Both hold in every thread.
    """

    layout: Layout
    to_old: tuple[int, ...]
    to_new: tuple[int | None, ...]


@lru_cache(maxsize=256)
def transposed(layout: Layout, permutation: tuple[int, ...]) -> View:
    """Axis i of the result is axis `permutation[i]` of the given layout."""
    if sorted(permutation) != list(range(layout.rank)):
        raise LayoutError(f"expected a permutation of {layout.rank} axes, got {permutation}")
    shape = tuple(layout.shape[axis] for axis in permutation)
    return _certain(fit(shape, layout.table()[..., list(permutation)]))


@lru_cache(maxsize=256)
def projected(layout: Layout, *axes: int) -> View:
    """The axes cut to extent 1: each thread keeps the other coordinates of what it holds.

    It is the layout of what a reduction along `axes` gives to every thread that took part:
    register `to_new[r]` has the result for the elements of old register r. And it is the layout
    that an operand of extent 1 needs when it is broadcast along `axes` to the given layout:
    register r of the broadcast tile is register `to_new[r]` of the operand.
    """
    _check_axes(layout, axes)
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(layout.shape))
    kept = np.array([axis not in axes for axis in range(layout.rank)], dtype=np.int64)
    return _certain(fit(shape, layout.table() * kept))


@lru_cache(maxsize=256)
def dropped(layout: Layout, *axes: int) -> View:
    """`projected`, and the axes removed from the shape."""
    _check_axes(layout, axes)
    kept = [axis for axis in range(layout.rank) if axis not in axes]
    return _certain(fit(tuple(layout.shape[axis] for axis in kept), layout.table()[..., kept]))


@lru_cache(maxsize=256)
def expanded(layout: Layout, axis: int) -> View:
    """An axis of extent 1 inserted, as axis `axis` of the result."""
    if not 0 <= axis <= layout.rank:
        raise LayoutError(f"expected an axis from 0 to {layout.rank}, got {axis}")
    shape = (*layout.shape[:axis], 1, *layout.shape[axis:])
    return _certain(fit(shape, np.insert(layout.table(), axis, 0, axis=-1)))


@lru_cache(maxsize=256)
def reshaped(layout: Layout, shape: tuple[int, ...]) -> View | None:
    """The same elements in row-major order under another shape.

    None if no layout describes that; there always is one when all extents are powers of two.
    """
    if prod(shape) != prod(layout.shape):
        raise LayoutError(f"expected a shape of {prod(layout.shape)} elements, got {shape}")
    return fit(shape, _unflatten(layout.elements(), shape))


@lru_cache(maxsize=256)
def sliced(layout: Layout, offsets: tuple[int, ...], shape: tuple[int, ...]) -> View | None:
    """The elements from `offsets` on, `shape` many along each axis: some registers of each thread.

    None if different threads would keep different registers. Splitting a tile takes the slices of
    one layout; joining tiles puts them into the slices of the result's layout (`tiled` makes one
    that has them).
    """
    ends = [offset + n for offset, n in zip(offsets, shape, strict=True)]
    if any(o < 0 or end > n for o, end, n in zip(offsets, ends, layout.shape, strict=True)):
        raise LayoutError(f"expected a slice of {layout.shape}, got {shape} at {offsets}")
    table = layout.table()
    inside = np.asarray(((table >= offsets) & (table < ends)).all(axis=-1))
    kept = inside[0, 0]
    if not (inside == kept).all():
        return None
    old = np.flatnonzero(kept)
    view = fit(shape, table[:, :, old] - np.array(offsets, dtype=np.int64))
    if view is None:
        return None
    to_new: list[int | None] = [None] * layout.registers
    for index, register in enumerate(old):
        to_new[register] = view.to_new[index]
    return View(view.layout, tuple(int(old[r]) for r in view.to_old), tuple(to_new))


@lru_cache(maxsize=256)
def tiled(layout: Layout, axis: int, count: int) -> Layout:
    """The layout of `count` tiles side by side along an axis, each in registers as `layout` says.

    `sliced` at any multiple of the old extent gives back `layout`, up to register numbers. Where
    the registers of `layout` are in row-major order, so are those of the result.
    """
    _check_axes(layout, (axis,))
    step = np.zeros(layout.rank, dtype=np.int64)
    step[axis] = layout.shape[axis]
    tables = [layout.table() + copy * step for copy in range(count)]
    shape = tuple(n * count if a == axis else n for a, n in enumerate(layout.shape))
    found = _certain(fit(shape, np.concatenate(tables, axis=2))).layout
    order = [layout.flat(vector) for vector in layout.register]
    if order == sorted(order):
        return replace(found, register=tuple(sorted(found.register, key=found.flat)))
    return found


def fit(shape: tuple[int, ...], table: Table) -> View | None:
    """The layout in which every thread holds what `table` says it holds; None if there is none.

    Registers keep their order as far as the numbering rule of `Layout` allows.

    Shapes:   `table` is [warps, lanes, old registers, rank]: coordinates in a tile of `shape`
    """
    block = tuple(extent & -extent for extent in shape)
    inside = _flatten(table % np.array(block, dtype=np.int64), block)
    first = np.asarray((table < np.array(block, dtype=np.int64)).all(axis=-1))  # first repeat
    own = np.flatnonzero(first[0, 0])
    zero = [register for register in own if inside[0, 0, register] == 0]
    if not zero:
        return None
    start = int(zero[0])
    span = Reduced()
    register = [int(inside[0, 0, r]) for r in own if span.add(int(inside[0, 0, r]))]
    lanes = [(0, 1 << bit) for bit in range(LANE_BITS)]
    warps = [(1 << bit, 0) for bit in range(table.shape[0].bit_length() - 1)]
    if not all(first[w, n, start] for w, n in lanes + warps):
        return None
    lane, warp = ([int(inside[w, n, start]) for w, n in threads] for threads in (lanes, warps))
    try:
        layout = from_flat(shape, register, lane, warp)
    except LayoutError:
        return None
    return _relate(layout, table)


def _relate(layout: Layout, table: Table) -> View | None:
    """The maps between the registers of `table` and of `layout`, if they hold in every thread."""
    new = layout.elements()
    old = _flatten(table, layout.shape)
    place = {int(element): index for index, element in reversed(list(enumerate(new[0, 0])))}
    if not all(int(element) in place for element in old[0, 0]):
        return None
    to_new = [place[int(element)] for element in old[0, 0]]
    source = {int(element): index for index, element in reversed(list(enumerate(old[0, 0])))}
    if not all(int(element) in source for element in new[0, 0]):
        return None
    to_old = [source[int(element)] for element in new[0, 0]]
    if not ((new[:, :, to_new] == old).all() and (old[:, :, to_old] == new).all()):
        return None
    return View(layout, tuple(to_old), tuple(to_new))


def _flatten(table: Table, shape: Sequence[int]) -> Table:
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return table @ np.array(strides, dtype=np.int64)


def _unflatten(elements: Table, shape: tuple[int, ...]) -> Table:
    if not shape:
        return np.zeros((*elements.shape, 0), dtype=np.int64)
    return np.stack(np.unravel_index(elements, shape), axis=-1).astype(np.int64)


def _check_axes(layout: Layout, axes: Sequence[int]) -> None:
    if any(not 0 <= axis < layout.rank for axis in axes):
        raise LayoutError(f"expected axes of a tile of rank {layout.rank}, got {tuple(axes)}")


def _certain(view: View | None) -> View:
    assert view is not None, "this view of a layout is always a layout"
    return view
