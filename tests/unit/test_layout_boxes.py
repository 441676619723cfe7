"""Tiles in boxes: each element once, where TMA looks for it, and where a warp finds it by rows."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from layout_strategies import layouts

from tilec.layout import Layout, blocked
from tilec.layout.boxes import boxes_of
from tilec.layout.matrix_access import MatrixAccesses
from tilec.layout.simulate import simulate_boxes
from tilec.layout.views import transposed
from tilec.layout.wgmma import accumulator_layout


def expect_whole(layout: Layout, element_bytes: int) -> None:
    boxes = boxes_of(layout, element_bytes)
    assert boxes is not None
    numbers = np.arange(prod(layout.shape)).reshape(layout.shape)
    source = layout.elements()
    buffers, by_rows = simulate_boxes(boxes, source)
    np.testing.assert_array_equal(by_rows, boxes.by_rows.elements())
    seen = []
    for box, buffer in zip(boxes.boxes, buffers, strict=True):
        for warp in range(layout.warps):
            first = np.array(box.start) + _first_of(layout, warp)
            own = buffer.reshape(layout.warps, -1)[warp]
            for place in np.ndindex(boxes.box.shape):
                at = boxes.box.offset_of(place) // element_bytes
                assert own[at] == numbers[tuple(first + place)]
            seen.append(own)
    np.testing.assert_array_equal(np.sort(np.concatenate(seen)), numbers.ravel())


def _first_of(layout: Layout, warp: int) -> np.ndarray:
    bits = [np.array(v) for i, v in enumerate(layout.warp) if warp >> i & 1]
    return sum(bits, np.zeros(layout.rank, int))


@pytest.mark.parametrize(
    ("shape", "groups", "element_bytes"),
    [
        ((128, 256), 2, 2), ((128, 192), 2, 2), ((256, 64), 2, 2), ((64, 80), 1, 2),
        ((128, 96), 2, 4), ((64, 16), 1, 2), ((1, 64, 64), 1, 2), ((64, 32), 1, 1),
        ((64, 64), 1, 8),
    ],
)  # fmt: skip
def test_sums_of_products(shape: tuple[int, ...], groups: int, element_bytes: int) -> None:
    expect_whole(accumulator_layout(shape, groups), element_bytes)


@pytest.mark.parametrize(
    ("shape", "groups", "element_bytes", "columns"),
    [((128, 256), 2, 4, 16), ((128, 64), 2, 2, 16), ((64, 128), 1, 4, 16)],
)
def test_sums_that_are_transposed(
    shape: tuple[int, int], groups: int, element_bytes: int, columns: int
) -> None:
    """A warp has 16 columns of them."""
    layout = transposed(accumulator_layout(shape, groups), (1, 0)).layout
    expect_whole(layout, element_bytes)
    boxes = boxes_of(layout, element_bytes)
    assert boxes is not None and boxes.box.shape == (16, columns)


def test_elements_of_sixteen_bits_are_stored_as_matrices() -> None:
    boxes = boxes_of(accumulator_layout((128, 256), 2), 2)
    assert boxes is not None
    writes = [box.writes for box in boxes.boxes]
    assert all(isinstance(one, MatrixAccesses) and one.matrices == 4 for one in writes)
    assert [len(one.accesses) for one in writes] == [4] * 4


@settings(max_examples=60, deadline=None)
@given(layouts())
def test_what_has_boxes_has_them_whole(layout: Layout) -> None:
    for element_bytes in (2, 4):
        if boxes_of(layout, element_bytes) is not None:
            expect_whole(layout, element_bytes)


@pytest.mark.parametrize(
    "layout",
    [
        blocked((64, 64), 4, (0, 1), 8),  # a warp has no rows
        accumulator_layout((64, 8), 1),  # rows of 16 bytes
        blocked((64,), 4, (0,), 1),
        blocked((4, 64), 1, (1, 0), 1),
    ],
)
def test_what_has_none(layout: Layout) -> None:
    assert boxes_of(layout, 2) is None
