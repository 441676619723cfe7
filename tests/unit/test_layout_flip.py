"""A plan for a flip, executed with NumPy: every thread gets what lies on the other side."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from layout_strategies import layouts

from tilec.layout import LANES
from tilec.layout.flip import plan_flip
from tilec.layout.layout import Layout
from tilec.layout.simulate import _offsets, _written


@settings(max_examples=60)
@given(st.data())
def test_every_thread_gets_what_lies_on_the_other_side(data: st.DataObject) -> None:
    layout: Layout = data.draw(layouts())
    if not layout.rank:
        return
    axis = data.draw(st.integers(0, layout.rank - 1))
    limit = data.draw(st.sampled_from([1 << 16, 1]))
    plan = plan_flip(layout, axis)
    wanted = np.flip(np.arange(int(np.prod(layout.shape))).reshape(layout.shape), axis).ravel()
    renamed = layout.elements()[..., list(plan.registers)]
    lanes, warps = np.arange(LANES) ^ plan.lane_xor, np.arange(layout.warps) ^ plan.warp_xor
    expected = wanted[layout.elements()]
    np.testing.assert_array_equal(renamed[warps][:, lanes], expected)
    read = np.empty_like(renamed)
    for part in plan.exchange(layout.registers, 4, layout.warps, limit):
        buffer, _ = _written(part.write, part.elements, renamed)
        for access, offsets in _offsets(part.read):
            for place, register in enumerate(access.registers):
                read[..., register] = buffer[offsets + place]
    np.testing.assert_array_equal(read, expected)
