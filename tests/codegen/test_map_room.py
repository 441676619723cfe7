"""Where parameters have no room for all tensor maps, what gets none is copied otherwise."""

from __future__ import annotations

from dataclasses import replace

import lowered
import numpy as np
import pytest
from lowered import ALIGNED, program
from overlapped import expect, small, wide

from tilec.target.resolve import resolve

SUMS = """
#[kernel]
#[hint(stages = 2)]
pub fn k<M: Dim, N: Dim, K: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 64, 32>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
    u: &Tensor<bf16, M, K>, v: &Tensor<bf16, K, N>, half: bool,
) {
    let mut s = Tile::<f32, 64, 32>::zeros();
    for k in 0..K.div_ceil(32) {
        s = dot(x.load::<64, 16>([z.id(0), 2 * k]), y.load::<16, 32>([2 * k, z.id(1)]), s);
        s = dot(u.load::<64, 32>([z.id(0), k]), v.load::<32, 32>([k, z.id(1)]), s);
    }
    z.store(s);
}
"""
# Five tensors of two axes, a truth value, three `Dim`s.
_OTHERS = 5 * 16 + 8 + 3 * 8
_ALIGNED = 128


def _with_parameters(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(
        lowered, "resolve", lambda name: replace(resolve(name), parameter_bytes=size)
    )


# The larger operands first, then the other product's, then the result.
@pytest.mark.parametrize(
    ("room", "mapped"),
    [(5, "xyuvz"), (4, "xyuv"), (3, "uvz"), (1, "")],
)
def test_the_largest_operands_get_the_maps_that_fit(monkeypatch, room, mapped):
    assert _OTHERS <= _ALIGNED
    _with_parameters(monkeypatch, _ALIGNED + room * 128 + 127)
    given = {"z": small(70, 40, element="f32"), "x": small(70, 70), "y": small(70, 40)}
    given |= {"u": small(70, 70), "v": small(70, 40), "half": True}
    x, y, u, v = (wide(given[name]) for name in "xyuv")
    # Of x and y, the even pieces of 16.
    even = np.repeat(np.arange(0, 5) % 2 == 0, 16)[:70]
    wanted = (x * even) @ y + u @ v
    with program(SUMS) as threads:
        expect(threads, "k", given, {"z": wanted}, overlaps=bool(mapped))
        point, _ = threads.lowered("k", ALIGNED)
    assert {one.param for one in point.tensor_maps} == set(mapped)
    assert len(point.tensor_maps) <= room
