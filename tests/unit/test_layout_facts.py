"""Facts about layouts, against their definitions by enumeration."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts, shapes

from tilec.layout.blocked import blocked
from tilec.layout.facts import contiguous_elements, register_permutation, unique_holders
from tilec.layout.layout import LANES, Layout, LayoutError, from_flat

modest = settings(max_examples=60, deadline=None)


def holds_runs(layout: Layout, axis: int, count: int) -> bool:
    """Whether aligned groups of `count` registers hold aligned runs along the axis."""
    table = layout.table()
    if layout.registers % count:
        return False
    runs = table.reshape(*table.shape[:2], -1, count, layout.rank)
    step = np.zeros((count, layout.rank), dtype=np.int64)
    step[:, axis] = np.arange(count)
    starts = runs[..., :1, :]
    return bool((runs == starts + step).all() and (starts[..., axis] % count == 0).all())


@modest
@given(layouts())
def test_contiguous_elements_is_the_longest_run(layout: Layout) -> None:
    for axis in range(layout.rank):
        found = contiguous_elements(layout, axis)
        assert holds_runs(layout, axis, found)
        longer = 2 * found
        in_block = longer <= min(layout.block[axis], 1 << len(layout.register))
        assert not (in_block and holds_runs(layout, axis, longer))


@modest
@given(shapes(min_rank=1), st.integers(0, 2), st.data())
def test_blocked_holds_its_vector_in_neighbouring_registers(shape, vector, data) -> None:  # type: ignore[no-untyped-def]
    order = data.draw(st.permutations(range(len(shape))))
    layout = blocked(shape, 4, order, 1 << vector)
    assert contiguous_elements(layout, order[0]) >= min(1 << vector, layout.block[order[0]])


@modest
@given(layouts())
def test_each_element_has_one_holder_that_counts(layout: Layout) -> None:
    holders = unique_holders(layout)
    elements = layout.elements()
    counting = [
        int(elements[warp, lane, register])
        for warp in range(layout.warps)
        for lane in range(LANES)
        for register in range(layout.registers)
        if holders.counts(register, lane, warp)
    ]
    assert sorted(counting) == list(range(prod(layout.shape)))


@modest
@given(layouts(), st.data())
def test_register_permutation_finds_the_same_elements(layout: Layout, data: st.DataObject) -> None:
    flat = layout.to_dict()
    shuffled = data.draw(st.permutations(flat["register"]))
    other = from_flat(layout.shape, shuffled, flat["lane"], flat["warp"])
    indices = register_permutation(layout, other)
    assert indices is not None
    assert np.array_equal(layout.elements()[:, :, list(indices)], other.elements())


@modest
@given(shapes(), st.integers(0, 2), st.data())
def test_register_permutation_is_none_only_where_a_thread_lacks_an_element(
    shape, warps, data
) -> None:  # type: ignore[no-untyped-def]
    one = data.draw(layouts(shape, warps))
    two = data.draw(layouts(shape, warps))
    indices = register_permutation(one, two)
    if indices is not None:
        assert np.array_equal(one.elements()[:, :, list(indices)], two.elements())
    elif (one.lane, one.warp) == (two.lane, two.warp):
        assert not set(two.elements()[0, 0].tolist()) <= set(one.elements()[0, 0].tolist())


def test_facts_refuse_what_does_not_fit() -> None:
    layout = blocked((4, 4), 1, (1, 0), 1)
    with pytest.raises(LayoutError, match="rank 2"):
        contiguous_elements(layout, 2)
    with pytest.raises(LayoutError, match="equal shapes"):
        register_permutation(layout, blocked((16,), 1, (0,), 1))
