"""Conversions: plans executed, against the definition of the target layout."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts, shapes

from tilec.layout.banks import bank_conflicts
from tilec.layout.blocked import blocked
from tilec.layout.conversion import ConversionPlan, RegisterPermutation, plan_conversion
from tilec.layout.layout import Layout, LayoutError, from_flat
from tilec.layout.matrix_access import ROW_BYTES, MatrixAccesses
from tilec.layout.shared_memory import shared_memory_plan
from tilec.layout.shuffle import Shuffle, shuffle_plans
from tilec.layout.simulate import simulate_conversion

modest = settings(max_examples=100, deadline=None)


def assert_converts(plan: ConversionPlan, source: Layout, target: Layout) -> None:
    # Elements are told apart by their row-major index.
    assert np.array_equal(simulate_conversion(plan, source.elements()), target.elements())


@st.composite
def layout_pairs(draw: st.DrawFn) -> tuple[Layout, Layout]:
    shape, warp_bits = draw(shapes()), draw(st.integers(0, 2))
    return draw(layouts(shape, warp_bits)), draw(layouts(shape, warp_bits))


@st.composite
def pairs_within_warps(draw: st.DrawFn) -> tuple[Layout, Layout]:
    """A layout, and another that has the same elements in each warp."""
    source = draw(layouts())
    flat = source.to_dict()
    inside = [*flat["register"], *flat["lane"]]
    vectors = draw(st.permutations(inside)) if draw(st.booleans()) else inside
    if draw(st.booleans()):  # add one vector to another: the span stays
        one, two = (draw(st.integers(0, len(vectors) - 1)) for _ in range(2))
        vectors = [v ^ vectors[two] if i == one != two else v for i, v in enumerate(vectors)]
    warp = [v ^ draw(st.sampled_from([0, *inside])) for v in flat["warp"]]
    count = len(flat["register"])
    return source, from_flat(source.shape, vectors[:count], vectors[count:], warp)


@modest
@given(layout_pairs(), st.sampled_from([1, 2, 4, 8]))
def test_any_two_layouts_convert(pair: tuple[Layout, Layout], element_bytes: int) -> None:
    assert_converts(plan_conversion(*pair, element_bytes), *pair)


@modest
@given(layout_pairs(), st.sampled_from([1, 2, 4, 8]))
def test_shared_memory_converts_any_two_layouts(pair, element_bytes) -> None:  # type: ignore[no-untyped-def]
    plan = shared_memory_plan(*pair, element_bytes, has_stmatrix=True)
    assert plan.elements == prod(pair[0].shape)
    assert_converts(plan, *pair)


@settings(max_examples=200, deadline=None)
@given(pairs_within_warps())
def test_shuffles_convert_whatever_stays_in_its_warp(pair: tuple[Layout, Layout]) -> None:
    plans = list(shuffle_plans(*pair))
    assert len(plans) == 2
    for plan in plans:
        assert_converts(plan, *pair)


@modest
@given(layout_pairs())
def test_shuffles_exist_only_where_each_warp_has_what_it_needs(pair) -> None:  # type: ignore[no-untyped-def]
    had, wanted = ([set(warp.ravel().tolist()) for warp in one.elements()] for one in pair)
    plans = list(shuffle_plans(*pair))
    if not all(want <= have for have, want in zip(had, wanted, strict=True)):
        assert not plans
    if had == wanted:
        assert len(plans) == 2
    for plan in plans:
        assert_converts(plan, *pair)


def test_lanes_that_are_too_few_for_one_round_go_through_shared_memory() -> None:
    # Both warps have all, each row in eight lanes; a round would want 32 elements of two rows.
    columns = [1, 2, 4, 8, 16]
    source = from_flat((4, 32), columns, [0, 0, 0, 32, 64], [0])
    target = from_flat((4, 32), [64], columns, [32])
    assert not list(shuffle_plans(source, target))
    assert_converts(plan_conversion(source, target), source, target)


def test_another_order_of_registers_costs_nothing() -> None:
    one, two = blocked((64, 64), 4, (1, 0), 4), blocked((64, 64), 4, (1, 0), 1)
    assert isinstance(plan_conversion(one, one), RegisterPermutation)
    flat = one.to_dict()
    other = from_flat(one.shape, flat["register"][::-1], flat["lane"], flat["warp"])
    assert isinstance(plan_conversion(one, other), RegisterPermutation)
    assert not isinstance(plan_conversion(one, two), RegisterPermutation)


def test_a_small_transpose_within_a_warp_shuffles() -> None:
    one, two = blocked((8, 8), 1, (1, 0), 2), blocked((8, 8), 1, (0, 1), 2)
    plan = plan_conversion(one, two)
    assert isinstance(plan, Shuffle) and plan.instructions <= 2


def test_lanes_that_hold_copies_select_and_do_not_shuffle() -> None:
    # All lanes hold all 32 elements; lane l wants element l.
    copies = from_flat((32,), [1, 2, 4, 8, 16], [0] * 5, [])
    plan = plan_conversion(copies, blocked((32,), 1, (0,), 1))
    assert isinstance(plan, Shuffle) and plan.instructions == 0
    assert_converts(plan, copies, blocked((32,), 1, (0,), 1))


@pytest.mark.parametrize("shape", [(64, 64), (128, 32), (96, 64), (48, 80)])
@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
def test_a_transpose_through_shared_memory_meets_no_bank_twice(shape, element_bytes) -> None:  # type: ignore[no-untyped-def]
    vector = 16 // element_bytes
    one, two = blocked(shape, 4, (1, 0), vector), blocked(shape, 4, (0, 1), vector)
    plan = shared_memory_plan(one, two, element_bytes)
    for side in (plan.write, plan.read):
        for access in side.accesses:
            width = element_bytes * len(access.registers)
            addresses = [
                side.offset(access, lane, 1) * element_bytes if side.takes_part(lane, 1) else None
                for lane in range(32)
            ]
            assert bank_conflicts(addresses, width) <= max(1, width // 4)


@modest
@given(layout_pairs(), st.sampled_from([1, 2, 4, 8]))
def test_counted_wavefronts_are_those_of_every_access(pair, element_bytes) -> None:  # type: ignore[no-untyped-def]
    plan = shared_memory_plan(*pair, element_bytes, has_stmatrix=True)
    counted = 0
    for side in (plan.write, plan.read):
        for access in side.accesses:
            addresses = [
                side.offset(access, lane, 0) * element_bytes if side.takes_part(lane, 0) else None
                for lane in range(32)
            ]
            width = element_bytes * len(access.registers)
            if isinstance(side, MatrixAccesses):
                width = ROW_BYTES
            counted += bank_conflicts(addresses, width)
    assert plan.wavefronts == counted


def test_vectors_are_sixteen_bytes_where_both_sides_have_them() -> None:
    one = blocked((64, 64), 4, (1, 0), 4)
    flat = one.to_dict()
    other = from_flat(
        one.shape, flat["register"], flat["warp"] + flat["lane"][:3], flat["lane"][3:]
    )
    plan = shared_memory_plan(one, other, 4)
    sides = (plan.write, plan.read)
    assert {len(access.registers) for side in sides for access in side.accesses} == {4}


def test_bank_conflicts_counts_wavefronts() -> None:
    assert bank_conflicts([4 * lane for lane in range(32)], 4) == 1
    assert bank_conflicts([128 * lane for lane in range(32)], 4) == 32
    assert bank_conflicts([0] * 32, 4) == 1
    assert bank_conflicts([2 * lane for lane in range(32)], 2) == 1
    assert bank_conflicts([8 * lane for lane in range(32)], 8) == 2
    assert bank_conflicts([16 * lane for lane in range(32)], 16) == 4
    assert bank_conflicts([128 * lane for lane in range(32)], 16) == 32
    assert bank_conflicts([None] * 31 + [64], 4) == 1
    assert bank_conflicts([None] * 32, 4) == 0


def test_refuses_tiles_that_differ() -> None:
    layout = blocked((4, 4), 2, (1, 0), 1)
    with pytest.raises(LayoutError, match="equal shapes"):
        plan_conversion(layout, blocked((16,), 2, (0,), 1))
    with pytest.raises(LayoutError, match="equal warps"):
        plan_conversion(layout, blocked((4, 4), 4, (1, 0), 1))
