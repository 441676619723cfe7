"""Layouts: coordinates, validation, blocked layouts, linear maps."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts, shapes

from tilec.layout.blocked import blocked
from tilec.layout.layout import LANES, Layout, LayoutError
from tilec.layout.linear_map import LinearMap, identity, intersection

modest = settings(max_examples=60, deadline=None)


@st.composite
def linear_maps(draw: st.DrawFn, rows: int | None = None) -> LinearMap:
    rows = draw(st.integers(0, 6)) if rows is None else rows
    columns = draw(st.lists(st.integers(0, (1 << rows) - 1), max_size=7))
    return LinearMap(tuple(columns), rows)


@modest
@given(linear_maps())
def test_a_linear_map_is_the_xor_of_the_columns_of_its_argument(linear: LinearMap) -> None:
    images = linear.images()
    for x, y in [(0, len(images) - 1), (len(images) // 3, len(images) // 2)]:
        assert linear(x) == images[x] and images[x ^ y] == images[x] ^ images[y]


@modest
@given(linear_maps())
def test_rank_kernel_and_solutions_agree_with_enumeration(linear: LinearMap) -> None:
    images = linear.images().tolist()
    assert 1 << linear.rank == len(set(images))
    assert 1 << len(linear.kernel) == images.count(0)
    assert all(linear(vector) == 0 for vector in linear.kernel)
    for image in range(1 << linear.rows):
        solution = linear.solve(image)
        assert (solution is not None) == (image in images)
        assert solution is None or images[solution] == image


@modest
@given(linear_maps())
def test_a_right_inverse_exists_exactly_for_surjective_maps(linear: LinearMap) -> None:
    inverse = linear.right_inverse()
    assert (inverse is not None) == (set(linear.images().tolist()) == set(range(1 << linear.rows)))
    if inverse is not None:
        assert linear.compose(inverse) == identity(linear.rows)


@modest
@given(linear_maps(), linear_maps())
def test_dividing_a_direct_sum_gives_the_other_part(low: LinearMap, high: LinearMap) -> None:
    columns = low.columns + tuple(column << low.rows for column in high.columns)
    assert LinearMap(columns, low.rows + high.rows).divide_left(low) == high


def test_division_refuses_columns_that_reach_into_the_factor() -> None:
    assert LinearMap((1, 3), 2).divide_left(identity(1)) is None
    assert LinearMap((2, 1), 2).divide_left(identity(1)) is None


@modest
@given(st.lists(st.integers(0, 31), max_size=5), st.lists(st.integers(0, 31), max_size=5))
def test_an_intersection_is_what_both_spans_have(one: list[int], other: list[int]) -> None:
    def span(vectors: tuple[int, ...] | list[int]) -> set[int]:
        return set(LinearMap(tuple(vectors), 5).images().tolist())

    basis = intersection(one, other)
    assert span(basis) == span(one) & span(other)
    assert len(span(basis)) == 1 << len(basis)


@modest
@given(layouts(), st.data())
def test_coordinates_follow_the_definition(layout: Layout, data: st.DataObject) -> None:
    register = data.draw(st.integers(0, layout.registers - 1))
    lane = data.draw(st.integers(0, LANES - 1))
    warp = data.draw(st.integers(0, layout.warps - 1))
    coordinate = [0] * layout.rank
    for vectors, index in ((layout.register, register), (layout.lane, lane), (layout.warp, warp)):
        for bit, vector in enumerate(vectors):
            if index >> bit & 1:
                coordinate = [a ^ b for a, b in zip(coordinate, vector, strict=True)]
    repeat = register >> len(layout.register)
    for axis in reversed(range(layout.rank)):
        count = layout.shape[axis] // layout.block[axis]
        coordinate[axis] += repeat % count * layout.block[axis]
        repeat //= count
    assert layout.coordinates(register, lane, warp) == tuple(coordinate)
    assert tuple(layout.table()[warp, lane, register]) == tuple(coordinate)


@modest
@given(layouts())
def test_every_element_has_a_place(layout: Layout) -> None:
    assert set(layout.elements().ravel().tolist()) == set(range(prod(layout.shape)))


@modest
@given(layouts())
def test_a_layout_survives_encoding(layout: Layout) -> None:
    encoded = layout.to_dict()
    assert all(type(n) is int for numbers in encoded.values() for n in numbers)
    assert Layout.from_dict(encoded) == layout


LANE = ((1,), (2,), (4,), (8,), (16,))


@pytest.mark.parametrize(
    ("shape", "register", "lane", "fault"),
    [
        ((64,), (), LANE, "every element"),
        ((32,), ((32,),), LANE, "inside the block"),
        ((96,), ((64,),), LANE, "inside the block"),
        ((32,), ((1, 0),), LANE, "1 numbers"),
        ((32,), (), LANE[:4], "5 lane vectors"),
        ((0,), (), LANE, "positive extents"),
    ],
)
def test_refuses_what_is_no_layout(shape, register, lane, fault) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LayoutError, match=fault):
        Layout(shape, register, lane, ())


@pytest.mark.parametrize(
    ("shape", "zeros", "fault"),
    [
        ([2**70], 0, "every element"),  # one block of more elements than an index has bits for
        ([2**70 + 1], 0, "no more than"),  # a block of one element, repeated as often
        ([1], 60, "no more than"),
        ([1] * 70, 0, "no more than"),
    ],
)
def test_refuses_numbers_that_are_no_layout_of_a_block(shape, zeros, fault) -> None:  # type: ignore[no-untyped-def]
    encoded = {"shape": shape, "register": [0] * zeros, "lane": [0] * 5, "warp": []}
    with pytest.raises(LayoutError, match=fault):
        Layout.from_dict(encoded)


def test_ninety_six_is_thirty_two_three_times() -> None:
    layout = Layout((96,), (), LANE, ())
    assert (layout.block, layout.repeats, layout.registers) == ((32,), (3,), 3)
    assert layout.coordinates(2, 5, 0) == (69,)


@modest
@given(shapes(), st.integers(0, 3), st.integers(0, 3), st.data())
def test_blocked_is_a_layout_of_any_shape(shape, warps, vector, data) -> None:  # type: ignore[no-untyped-def]
    order = data.draw(st.permutations(range(len(shape))))
    layout = blocked(shape, 1 << warps, order, 1 << vector)
    assert layout.shape == shape and layout.warps == 1 << warps
    block = prod(layout.block)
    assert layout.registers == prod(layout.repeats) * max(
        block >> 5 + warps, min(1 << vector, layout.block[order[0]]) if shape else 1
    )


def test_a_row_spreads_over_all_warps() -> None:
    layout = blocked((1, 1024), 4, (1, 0), 4)
    assert layout.registers == 8
    assert len(set(layout.elements().ravel().tolist())) == layout.elements().size


def test_lanes_run_along_the_fastest_axis_then_the_next() -> None:
    layout = blocked((128, 64), 4, (1, 0), 4)
    assert [layout.coordinates(0, lane, 0) for lane in (0, 1, 15, 16)] == [
        (0, 0),
        (0, 4),
        (0, 60),
        (1, 0),
    ]
    assert layout.coordinates(3, 0, 0) == (0, 3)


def test_warps_take_the_slowest_axis_first() -> None:
    layout = blocked((4, 1024), 4, (1, 0), 4)
    assert [layout.coordinates(0, 0, warp)[0] for warp in range(4)] == [0, 1, 2, 3]


def test_an_order_reversed_runs_lanes_along_columns() -> None:
    layout = blocked((64, 32), 2, (0, 1), 2)
    assert layout.coordinates(1, 0, 0) == (1, 0) and layout.coordinates(0, 1, 0) == (2, 0)


def test_a_small_tile_is_held_by_all_lanes_and_warps() -> None:
    layout = blocked((4,), 4, (0,), 1)
    assert layout.registers == 1
    assert np.array_equal(layout.elements()[:, :, 0], np.tile(np.arange(4), (4, 8)))


def test_blocked_refuses_what_is_no_order() -> None:
    with pytest.raises(LayoutError, match="order of 2 axes"):
        blocked((4, 4), 4, (0, 0), 1)
    with pytest.raises(LayoutError, match="power of two as `warps`"):
        blocked((4, 4), 3, (0, 1), 1)
