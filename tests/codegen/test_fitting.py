"""Rings make room for what is beside them, and are given up where there is none."""

from __future__ import annotations

import pytest
from lowered import ALIGNED, program

import tilec.schedule.plan as planning

TEXT = """
#[kernel]
pub fn k<M: Dim, N: Dim, K: Dim>(
    c: Part<&mut Tensor<bf16, M, N>, 128, 256>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, 128, 256>::zeros();
    for k in 0..K.div_ceil(64) {
        sum = dot(a.load::<128, 64>([c.id(0), k]), b.load::<64, 256>([k, c.id(1)]), sum);
    }
    c.store((sum + c.load().to::<f32>()).to::<bf16>());
}
"""
# A slot has 48 KiB, the results 64 on their way out (they are stored as in any kernel, for they are
# read, too), a block at most 227.


def test_a_ring_is_as_deep_as_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if nothing were known of the results: four slots would be tried.
    monkeypatch.setattr(planning, "_stored_bytes", lambda *_: 0)
    with program(TEXT) as compiled:
        point, _ = compiled.lowered("k", ALIGNED)
    [channel] = point.schedule.channels
    assert channel.depth == 3
    assert 3 * 48 * 1024 < point.smem_bytes <= 227 * 1024
    assert any("does not fit" in one.why for one in point.schedule.choices)


def test_without_room_for_two_slots_there_are_no_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_LEAST_DEPTH", 4)
    monkeypatch.setattr(planning, "_stored_bytes", lambda *_: 0)
    with program(TEXT) as compiled:
        point, _ = compiled.lowered("k", ALIGNED)
    assert not point.tensor_maps and not point.schedule.roles
