"""Scans: plans executed on tiles, against the definition; the combination has an order."""

from __future__ import annotations

from functools import reduce
from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import shapes

from tilec.layout.blocked import blocked
from tilec.layout.layout import LANE_BITS, Layout, LayoutError, from_flat
from tilec.layout.scan import BetweenLanes, BetweenWarps, InThread, can_scan, scan_plan
from tilec.layout.simulate import simulate_scan

# Maps x -> a x + b modulo a prime, as the number a P + b. One after another is another map, and the
# order matters.
P = 1009


def after(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    (a, b), (c, d) = divmod(first, P), divmod(second, P)
    return a * c % P * P + (b * c + d) % P


def maps(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(P, P * P, count)


def expected(tile: np.ndarray, start: np.ndarray, axis: int, *, reverse: bool) -> np.ndarray:
    moved = np.moveaxis(tile, axis, 0)
    found, so_far = [], np.moveaxis(start, axis, 0)[0]
    for items in moved[::-1] if reverse else moved:
        so_far = after(so_far, items)
        found.append(so_far)
    return np.moveaxis(np.stack(found[::-1] if reverse else found), 0, axis)


def check(layout: Layout, axis: int, *, reverse: bool) -> None:
    tile = maps(prod(layout.shape)).reshape(layout.shape)
    start = np.broadcast_to(
        maps(prod(layout.shape), 1).reshape(layout.shape).take([0], axis), layout.shape
    )
    plan = scan_plan(layout, axis, reverse=reverse)
    elements = layout.elements()
    result = simulate_scan(plan, tile.ravel()[elements], start.ravel()[elements], after)
    wanted = expected(tile, start, axis, reverse=reverse)
    assert np.array_equal(result, wanted.ravel()[elements])


@st.composite
def scannable(draw: st.DrawFn) -> tuple[Layout, int]:
    """A layout in which each bit of an axis has a place of its own; the rest is anything."""
    shape = draw(shapes(min_rank=1, max_rank=3))
    axis = draw(st.integers(0, len(shape) - 1))
    inside = prod(n & -n for n in shape[axis + 1 :])
    own = (shape[axis] & -shape[axis]).bit_length() - 1
    bits = prod(n & -n for n in shape).bit_length() - 1
    along = [inside << bit for bit in range(own)]
    across = [1 << bit for bit in range(bits) if 1 << bit not in along]
    warp_bits = draw(st.integers(0, 3))
    room = [bits + 1, LANE_BITS, warp_bits]
    places: list[list[int]] = [[], [], []]
    for vector in draw(st.permutations(along + across)):
        kind = draw(st.sampled_from([k for k in range(3) if len(places[k]) < room[k]]))
        places[kind].append(vector)
    room[0] = len(places[0]) + draw(st.sampled_from([0, 0, 1]))
    for kind, vectors in enumerate(places):
        while len(vectors) < room[kind]:
            copies = draw(st.sets(st.sampled_from(across))) if across else set()
            copy = reduce(int.__xor__, copies, 0)
            vectors.insert(draw(st.integers(0, len(vectors))), copy)
    return from_flat(shape, *places), axis


@settings(max_examples=200, deadline=None)
@given(scannable(), st.booleans())
def test_every_element_is_combined_with_all_before_it(
    drawn: tuple[Layout, int], reverse: bool
) -> None:
    layout, axis = drawn
    assert can_scan(layout, axis)
    check(layout, axis, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "layout",
    [
        blocked((1, 4096), 4, (1, 0), 4),
        blocked((8, 512), 4, (1, 0), 4),
        blocked((64, 64), 4, (1, 0), 4),
        blocked((96,), 2, (0,), 2),
        blocked((16, 96), 8, (1, 0), 8),
        blocked((4,), 4, (0,), 1),
        blocked((1,), 2, (0,), 1),
    ],
    ids=str,
)
def test_blocked_layouts_along_every_axis(layout: Layout, reverse: bool) -> None:
    for axis in range(layout.rank):
        check(layout, axis, reverse=reverse)


def test_a_long_row_takes_six_shuffles_a_vector_and_one_exchange() -> None:
    plan = scan_plan(blocked((1, 4096), 4, (1, 0), 4), 1)
    low, lanes, warps, high = plan.levels
    assert isinstance(low, InThread) and len(low.runs) == 8
    assert isinstance(lanes, BetweenLanes) and len(lanes.steps) == 5 and not lanes.spreads
    assert isinstance(warps, BetweenWarps) and warps.partials == 4
    assert warps.elements == 8 * 4
    assert isinstance(high, InThread) and high.runs == (tuple(range(8)),)


def test_only_the_last_lane_of_a_warp_writes_its_total() -> None:
    for reverse, writer in ((False, 31), (True, 0)):
        plan = scan_plan(blocked((1, 4096), 4, (1, 0), 4), 1, reverse=reverse)
        warps = plan.levels[2]
        assert isinstance(warps, BetweenWarps)
        assert [lane for lane in range(32) if warps.write.takes_part(lane, 1)] == [writer]


def test_a_row_in_a_warp_needs_no_shared_memory() -> None:
    plan = scan_plan(blocked((4, 1024), 4, (1, 0), 4), 1)
    assert [type(level) for level in plan.levels] == [InThread, BetweenLanes, InThread]


def test_lanes_in_any_order() -> None:
    for order in permutations((1, 2, 4)):
        layout = from_flat((8,), [], [*order, 0, 0], [])
        check(layout, 0, reverse=False)


def test_refuses_layouts_in_which_a_bit_has_no_place_of_its_own() -> None:
    skewed = Layout((2, 2), ((0, 1),), ((1, 1), (0, 0), (0, 0), (0, 0), (0, 0)), ())
    assert can_scan(skewed, 0) is False
    twice = from_flat((2,), [1], [1, 0, 0, 0, 0], [])
    assert not can_scan(twice, 0)
    with pytest.raises(LayoutError, match="a place for each bit"):
        scan_plan(skewed, 0)
    with pytest.raises(LayoutError, match="rank 2"):
        scan_plan(skewed, 2)
