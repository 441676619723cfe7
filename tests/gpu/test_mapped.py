"""Tensor maps, clusters and persistent blocks on a GPU, by kernels that are written by hand.

`mapped_kernels` makes the cubin (`pack.py` calls it). A copy is right if it is bit for bit what it
was made of; the guards say that nothing else was written.
"""

from __future__ import annotations

import numpy as np
import pytest
from cubins import FOLDER
from host_driver import DRY_RUN

import tilec.runtime as rt
from tilec.runtime.array import contiguous_strides

pytestmark = pytest.mark.skipif(DRY_RUN, reason="these kernels have no source to execute")


@pytest.fixture
def mapped(load):
    return load(f"{FOLDER}/mapped")


def copied(zones, mapped, shape, variant, *, widths=None, offset=0):
    """Copies a tensor of this shape, whose rows lie in a wider tensor if `widths` says so."""
    strides = None if widths is None else contiguous_strides((*shape[:-1], widths))
    values = np.random.default_rng(len(shape)).integers(-128, 128, shape)
    x = zones.input(values, "bf16", strides=strides, misaligned_bytes=offset)
    y = zones.output(shape, "bf16", strides=strides, misaligned_bytes=offset)
    copy = mapped[f"copy{len(shape)}"]
    assert copy.plan(y, x).variant.symbol == f"copy{len(shape)}{variant}"
    for _ in range(2):  # the second time from what is remembered
        copy(y, x)
    np.testing.assert_array_equal(zones.values(y), values)


@pytest.mark.parametrize(
    "shape",
    [
        (8,),
        (64,),
        (72,),
        (100_000,),
        (1, 8),
        (7, 8),
        (8, 64),
        (9, 72),
        (131, 200),
        (2000, 640),  # 2500 boxes: each block takes several
        (1, 1, 8),
        (3, 17, 88),
        (2, 3, 9, 72),
        (1, 1, 1, 1, 8),
        (3, 2, 2, 17, 136),
    ],
)
def test_tensors_are_copied_by_their_maps(zones, mapped, shape):
    copied(zones, mapped, shape, "__tma")


@pytest.mark.parametrize("widths", [72, 96, 128])
@pytest.mark.parametrize("shape", [(20, 72), (3, 20, 72), (2, 2, 3, 20, 72)])
def test_views_are_copied_and_their_gaps_are_left(zones, mapped, shape, widths):
    copied(zones, mapped, shape, "__tma", widths=widths)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((64,), {"offset": 2}),
        ((20, 72), {"offset": 8}),
        ((20, 72), {"widths": 73}),
        ((20, 71), {"widths": 72}),
        ((20, 1), {}),
        ((0, 72), {}),
        ((20, 0), {}),
    ],
)
def test_tensors_without_a_map_take_another_variant(zones, mapped, shape, options):
    copied(zones, mapped, shape, "", **options)


def test_an_offset_of_16_bytes_has_a_map(zones, mapped):
    copied(zones, mapped, (20, 72), "__tma", offset=16)


def test_each_address_has_its_own_map(zones, mapped):
    for seed in range(100):
        values = np.random.default_rng(seed).integers(-128, 128, (9, 72))
        x, y = zones.input(values, "bf16"), zones.output((9, 72), "bf16")
        mapped.copy2(y, x)
        np.testing.assert_array_equal(zones.values(y), values)


def test_a_transposed_view_is_read(zones, mapped):
    values = np.random.default_rng(0).integers(-128, 128, (6, 20, 72))
    x = zones.input(values, "bf16", strides=(72, 6 * 72, 1))
    y = zones.output(values.shape, "bf16")
    assert mapped.copy3.plan(y, x).variant.symbol == "copy3__tma"
    mapped.copy3(y, x)
    np.testing.assert_array_equal(zones.values(y), values)


def test_a_persistent_grid_is_that_of_the_device(zones, mapped):
    from cuda.core import Device

    x, y = zones.input(np.zeros((4000, 640)), "bf16"), zones.output((4000, 640), "bf16")
    count = Device(y.device).properties.multiprocessor_count
    assert mapped.copy2.plan(y, x).grid == (count // 2 * 2, 1, 1)
    mapped.copy2(y, x)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 1000])
def test_blocks_are_launched_in_clusters(mapped, zones, count):
    y = zones.output((count, 3), "i32")
    mapped.report(y)
    blocks = -(-count // 4) * 4
    expected = [(blocks, 4, block % 4) for block in range(count)]
    np.testing.assert_array_equal(y.numpy(), expected)


def test_a_map_that_the_driver_refuses_is_an_error(mapped, zones, monkeypatch):
    from tilec.runtime import encoding

    monkeypatch.setitem(encoding._SWIZZLES, 128, 99)
    x, y = zones.input(np.zeros((3, 8)), "bf16"), zones.in_place(np.zeros((3, 8)), "bf16")
    with pytest.raises(rt.LaunchError, match=r"a tensor map of `x`.*INVALID_VALUE"):
        mapped.copy2(y, x)
