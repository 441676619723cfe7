"""Reductions: plans executed on tiles, against NumPy."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts

from tilec.layout.blocked import blocked
from tilec.layout.layout import Layout, LayoutError
from tilec.layout.reduction import Butterfly, reduction_plan
from tilec.layout.simulate import simulate_reduction
from tilec.layout.traffic import of_reduction


@settings(max_examples=150, deadline=None)
@given(layouts(), st.data())
def test_every_thread_gets_the_sum_of_all_it_took_part_in(layout: Layout, data) -> None:  # type: ignore[no-untyped-def]
    if not layout.rank:
        return
    axes = tuple(data.draw(st.sets(st.integers(0, layout.rank - 1), min_size=1)))
    # Sums count copies twice, where maxima would hide them.
    tile = np.random.default_rng(0).integers(-1000, 1000, prod(layout.shape))
    plan = reduction_plan(layout, *axes)
    element_bytes = data.draw(st.sampled_from([1, 2, 4, 8]))
    result = simulate_reduction(plan, tile[layout.elements()], np.add, element_bytes)
    expected = tile.reshape(layout.shape).sum(axis=axes, keepdims=True)
    assert plan.result.shape == expected.shape
    assert np.array_equal(result, expected.reshape(-1)[plan.result.elements()])


@settings(max_examples=150, deadline=None)
@given(layouts(), st.data())
def test_no_exchange_between_warps_has_bank_conflicts(layout: Layout, data) -> None:  # type: ignore[no-untyped-def]
    if not layout.rank:
        return
    axes = tuple(data.draw(st.sets(st.integers(0, layout.rank - 1), min_size=1)))
    traffic = of_reduction(reduction_plan(layout, *axes), (1, 2, 4, 8))
    assert traffic.wavefronts == traffic.least_wavefronts


@pytest.mark.parametrize(
    ("element_bytes", "columns", "stores", "loads", "wavefronts"),
    [
        (4, 4, 1, 8, 4 + 8 * 4),  # four columns of a thread in one access
        (2, 8, 1, 8, 4 + 8 * 4),
        (8, 4, 2, 16, 2 * 4 + 16 * 4),
        (4, 8, 2, 16, 2 * 4 + 16 * 4),
        (4, 2, 1, 8, 2 + 8 * 2),
        (4, 1, 1, 8, 1 + 8),
    ],
)
def test_sums_of_columns_by_eight_warps_move_vectors_without_conflicts(
    element_bytes: int, columns: int, stores: int, loads: int, wavefronts: int
) -> None:
    layout = blocked((16, 32 * columns), 8, (1, 0), columns)
    traffic = of_reduction(reduction_plan(layout, 0), (element_bytes,))
    assert (traffic.stores, traffic.loads) == (stores, loads)
    assert traffic.wavefronts == traffic.least_wavefronts == wavefronts
    assert traffic.shared_bytes == 8 * 32 * columns * element_bytes


def test_values_of_unlike_sizes_give_their_partials_in_one_order() -> None:
    # What is combined is a value with its index: each must come from the same warp.
    plan = reduction_plan(blocked((2, 1024), 8, (1, 0), 2), 1)
    orders = set()
    for element_bytes in (1, 2, 4, 8):
        exchange = plan.exchange(element_bytes)
        assert exchange is not None
        wrote = np.full(exchange.elements, -1)
        for warp in range(8):
            for access in exchange.write.accesses:
                start = exchange.write.offset(access, 0, warp)
                wrote[start : start + len(access.registers)] = warp
        order: dict[int, list[int]] = {}
        for access in exchange.read.accesses:
            start = exchange.read.offset(access, 0, 0)
            for place, register in enumerate(access.registers):
                order.setdefault(register, []).append(int(wrote[start + place]))
        orders.add(str(order))
    assert len(orders) == 1


def test_warps_along_the_other_axis_need_no_shared_memory() -> None:
    plan = reduction_plan(blocked((4, 1024), 4, (1, 0), 4), 1)
    assert plan.exchange(4) is None
    assert plan.butterflies == tuple(Butterfly(1 << bit, 0) for bit in range(5))
    assert [len(fold) for fold in plan.folds] == [32]


def test_a_row_over_four_warps_exchanges_four_partials() -> None:
    plan = reduction_plan(blocked((1, 1024), 4, (1, 0), 4), 1)
    exchange = plan.exchange(4)
    assert exchange is not None and exchange.elements == 4
    writers = [lane for lane in range(32) if exchange.write.takes_part(lane, 3)]
    assert writers == [0]
    [read] = exchange.read.accesses
    assert read.registers == (0, 0, 0, 0)


def test_rows_of_a_thread_are_written_together() -> None:
    lanes = ((0, 1), (0, 2), (0, 4), (0, 8), (0, 16))
    plan = reduction_plan(Layout((4, 128), ((1, 0), (2, 0)), lanes, ((0, 32), (0, 64))), 1)
    exchange = plan.exchange(4)
    assert exchange is not None
    assert [access.registers for access in exchange.write.accesses] == [(0, 1, 2, 3)]
    assert [access.registers for access in exchange.read.accesses] == [(0, 1, 2, 3)] * 4


@pytest.mark.parametrize("shape", [(48, 64), (48, 80), (16, 96), (80, 8)])
def test_warps_exchange_the_results_of_every_repeat(shape: tuple[int, int]) -> None:
    layout = blocked(shape, 4, (0, 1), 1)
    plan = reduction_plan(layout, 1)
    assert plan.exchange(4) is not None
    tile = np.random.default_rng(0).integers(-1000, 1000, prod(shape))
    result = simulate_reduction(plan, tile[layout.elements()], np.add)
    expected = tile.reshape(shape).sum(axis=1)
    assert np.array_equal(result, expected[plan.result.elements()])


def test_copies_in_lanes_and_warps_are_not_combined() -> None:
    plan = reduction_plan(blocked((4,), 4, (0,), 1), 0)
    assert [step.lane_mask for step in plan.butterflies] == [1, 2]
    assert plan.exchange(4) is None


def test_lanes_that_move_along_two_axes_swap_registers() -> None:
    # Lane 1 holds row 1 as well, in the other order of columns.
    skewed = Layout((2, 2), ((0, 1),), ((1, 1), (0, 0), (0, 0), (0, 0), (0, 0)), ())
    assert reduction_plan(skewed, 0).butterflies == (Butterfly(1, 1),)


def test_refuses_axes_that_are_not_there() -> None:
    layout = blocked((4, 4), 1, (1, 0), 1)
    with pytest.raises(LayoutError, match="rank 2"):
        reduction_plan(layout, 2)
    with pytest.raises(LayoutError, match="distinct axes"):
        reduction_plan(layout, 1, 1)
