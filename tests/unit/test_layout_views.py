"""Views: each one against NumPy on the tile that holds its own row-major indices."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts, shapes

from tilec.layout.blocked import blocked
from tilec.layout.layout import Layout, LayoutError
from tilec.layout.views import (
    View,
    dropped,
    expanded,
    projected,
    reshaped,
    sliced,
    tiled,
    transposed,
)

modest = settings(max_examples=60, deadline=None)
Tile = npt.NDArray[np.int64]


def tile_of(shape: tuple[int, ...]) -> Tile:
    return np.arange(prod(shape)).reshape(shape)


def held(layout: Layout, tile: Tile) -> Tile:
    """What every register holds when `tile` is laid out: [warps, lanes, registers]."""
    return tile.reshape(-1)[layout.elements()]


def assert_same_data(old: Layout, view: View, before: Tile, after: Tile) -> None:
    assert view.layout.shape == after.shape
    registers, viewed = held(old, before), held(view.layout, after)
    assert np.array_equal(registers[..., list(view.to_old)], viewed)
    kept = [(register, new) for register, new in enumerate(view.to_new) if new is not None]
    assert np.array_equal(registers[..., [r for r, _ in kept]], viewed[..., [n for _, n in kept]])


@modest
@given(layouts(), st.data())
def test_transposed_is_numpy_transpose(layout: Layout, data: st.DataObject) -> None:
    permutation = tuple(data.draw(st.permutations(range(layout.rank))))
    tile = tile_of(layout.shape)
    assert_same_data(layout, transposed(layout, permutation), tile, tile.transpose(permutation))


@modest
@given(layouts(), st.data())
def test_expanded_is_numpy_expand_dims(layout: Layout, data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, layout.rank))
    tile = tile_of(layout.shape)
    assert_same_data(layout, expanded(layout, axis), tile, np.expand_dims(tile, axis))


@modest
@given(layouts(), st.data())
def test_projected_holds_the_operand_of_a_broadcast(layout: Layout, data: st.DataObject) -> None:
    axes = data.draw(st.sets(st.integers(0, layout.rank - 1))) if layout.rank else set()
    operand = tile_of(tuple(1 if a in axes else n for a, n in enumerate(layout.shape)))
    view = projected(layout, *sorted(axes))
    assert_same_data(layout, view, np.broadcast_to(operand, layout.shape), operand)
    assert None not in view.to_new
    short = dropped(layout, *sorted(axes))
    assert_same_data(
        layout, short, np.broadcast_to(operand, layout.shape), operand.squeeze(tuple(axes))
    )


@modest
@given(layouts())
def test_projection_leaves_no_register_twice(layout: Layout) -> None:
    for axis in range(layout.rank):
        first = projected(layout, axis).layout.elements()[0, 0].tolist()
        assert len(set(first)) == len(first)


@modest
@given(layouts(), st.data())
def test_reshaped_is_numpy_reshape(layout: Layout, data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    count = prod(layout.shape)
    rest = count // prod(sizes) if count % prod(sizes) == 0 else 0
    shape = (*sizes, rest) if rest else (count,)
    view = reshaped(layout, shape)
    tile = tile_of(layout.shape)
    if view is None:
        assert any(n & (n - 1) for n in (*layout.shape, *shape))
        return
    assert_same_data(layout, view, tile, tile.reshape(shape))


def test_repeats_reshape_where_threads_keep_whole_blocks() -> None:
    tall = blocked((96, 32), 4, (1, 0), 2)
    assert reshaped(tall, (3072,)) is not None
    wide = blocked((32, 96), 4, (1, 0), 2)
    assert reshaped(wide, (3072,)) is None


@modest
@given(layouts(), st.data())
def test_sliced_is_a_numpy_slice(layout: Layout, data: st.DataObject) -> None:
    offsets, sizes = [], []
    for extent in layout.shape:
        size = data.draw(st.sampled_from([n for n in range(1, extent + 1) if extent % n == 0]))
        sizes.append(size)
        offsets.append(size * data.draw(st.integers(0, extent // size - 1)))
    view = sliced(layout, tuple(offsets), tuple(sizes))
    if view is None:
        return
    tile = tile_of(layout.shape)
    cut = tile[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
    assert_same_data(layout, view, tile, cut)
    assert sum(new is not None for new in view.to_new) * cut.size >= len(view.to_old)


@modest
@given(layouts(), st.integers(1, 3), st.data())
def test_tiled_has_the_slices_it_was_made_of(layout, count, data) -> None:  # type: ignore[no-untyped-def]
    if not layout.rank:
        return
    axis = data.draw(st.integers(0, layout.rank - 1))
    whole = tiled(layout, axis, count)
    for copy in range(count):
        offsets = tuple(layout.shape[a] * copy if a == axis else 0 for a in range(layout.rank))
        view = sliced(whole, offsets, layout.shape)
        assert view is not None
        assert (view.layout.lane, view.layout.warp) == (layout.lane, layout.warp)


def test_a_slice_that_threads_share_unevenly_is_none() -> None:
    assert sliced(blocked((64,), 1, (0,), 1), (0,), (16,)) is None


def test_views_refuse_axes_that_are_not_there() -> None:
    layout = blocked((4, 4), 1, (1, 0), 1)
    with pytest.raises(LayoutError, match="permutation of 2 axes"):
        transposed(layout, (0, 0))
    with pytest.raises(LayoutError, match="rank 2"):
        projected(layout, 2)
    with pytest.raises(LayoutError, match="16 elements"):
        reshaped(layout, (8,))
