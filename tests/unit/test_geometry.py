"""The blocks of variants in clusters, and of persistent ones."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from manifest_samples import copy_kernel

from tilec.artifact.abi import COUNT_LIMIT, launch_grid
from tilec.artifact.geometry import grid_of
from tilec.artifact.manifest import TensorMap

GENERAL = copy_kernel().variants[-1]
CLUSTERS = st.sampled_from([(2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1), (4, 2, 1), (3, 1, 1)])


def unasked():
    raise AssertionError("only persistent variants ask for the multiprocessors")


def clustered(extents, cluster):
    return grid_of(replace(GENERAL, cluster=cluster), extents, unasked)


def persistent(extents, blocks_per_sm, sms, cluster=1):
    variant = replace(GENERAL, persistent_blocks_per_sm=blocks_per_sm, cluster=(cluster, 1, 1))
    return grid_of(variant, extents, lambda: sms)


@pytest.mark.parametrize("extents", [(5,), (3, 4), (2**40,), (70000, 2)])
def test_without_clusters_it_is_the_grid_of_all_launches(extents):
    assert grid_of(GENERAL, extents, unasked) == launch_grid(extents)


@given(st.lists(st.integers(1, 15), min_size=1, max_size=5), CLUSTERS)
def test_a_grid_is_whole_clusters_that_hold_every_program_at_its_coordinates(extents, cluster):
    grid = clustered(extents, cluster)
    *outer, y, x = (1, 1, *extents)
    for blocks, programs, along in zip(grid, (x, y, prod(outer)), cluster, strict=True):
        assert blocks % along == 0
        assert programs <= blocks < programs + along


@pytest.mark.parametrize(
    ("extents", "cluster", "grid"),
    [
        ((7,), (2, 1, 1), (8, 1, 1)),
        ((7,), (1, 2, 1), (7, 2, 1)),
        ((3, 5), (1, 2, 1), (5, 4, 1)),
        ((2, 1), (2, 2, 1), (2, 2, 1)),
        ((2**31 - 2,), (2, 1, 1), (2**31 - 2, 1, 1)),
        ((2**31 - 1,), (2, 1, 1), None),  # rounded up, it is beyond the hardware
        ((65535, 1), (1, 2, 1), None),
        ((65535, 1, 1), (1, 1, 2), None),
        ((2**16, 2), (2, 1, 1), None),
    ],
)
def test_a_clustered_grid_is_within_the_hardware_or_there_is_none(extents, cluster, grid):
    assert clustered(extents, cluster) == grid


@pytest.mark.parametrize(
    ("programs", "blocks_per_sm", "sms", "cluster", "blocks"),
    [
        (1, 1, 132, 1, 1),
        (131, 1, 132, 1, 131),
        (132, 1, 132, 1, 132),
        (10**9, 1, 132, 1, 132),
        (10**9, 2, 132, 1, 264),
        (2**40, 1, 132, 1, 132),
        (1, 1, 132, 2, 2),
        (131, 1, 132, 2, 132),
        (1000, 1, 133, 2, 132),
        (1000, 1, 132, 8, 128),
        (5, 1, 132, 8, 8),
        (1000, 1, 3, 8, 8),  # one cluster at least, though the device is smaller
    ],
)
def test_persistent_blocks_are_those_of_the_device_or_fewer(
    programs, blocks_per_sm, sms, cluster, blocks
):
    assert persistent((programs,), blocks_per_sm, sms, cluster) == (blocks, 1, 1)


@given(
    st.lists(st.integers(1, 2**14), min_size=1, max_size=4).filter(lambda e: prod(e) < COUNT_LIMIT),
    st.integers(1, 4),
    st.integers(1, 200),
    st.integers(1, 8),
)
def test_persistent_grids_are_whole_clusters(extents, blocks_per_sm, sms, cluster):
    x, y, z = persistent(extents, blocks_per_sm, sms, cluster)
    assert (y, z) == (1, 1) and x % cluster == 0 and x >= 1
    assert x <= max(blocks_per_sm * sms, cluster)
    assert x < prod(extents) + cluster


@pytest.mark.parametrize("extents", [(7,), (3, 5), (65535, 2), (4, 1), (2, 3, 4)])
@pytest.mark.parametrize("blocks", [2, 4, 8])
def test_a_split_grid_has_so_many_blocks_for_each_of_another(extents, blocks):
    variant = replace(GENERAL, cluster=(blocks, 1, 1), split=blocks)
    x, y, z = launch_grid(extents)
    assert grid_of(variant, extents, unasked) == (blocks * x, y, z)


def test_a_split_grid_is_within_the_hardware_or_there_is_none():
    variant = replace(GENERAL, cluster=(2, 1, 1), split=2)
    assert grid_of(variant, (2**30 - 1,), unasked) == (2**31 - 2, 1, 1)
    assert grid_of(variant, (2**30,), unasked) is None


def test_variants_with_tensor_maps_number_programs_in_32_bits():
    mapped = replace(GENERAL, tensor_maps=(TensorMap("x", (64, 64), 128, False),))
    assert grid_of(mapped, (2**13, 2**13), unasked) == (2**13, 2**13, 1)
    assert grid_of(mapped, (2**13, 2**13 + 1), unasked) is None
    assert grid_of(GENERAL, (2**13, 2**13 + 1), unasked) == (2**13 + 1, 2**13, 1)
