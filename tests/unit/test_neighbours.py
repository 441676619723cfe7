"""Who shares what in a cluster: ranks are row-major places; sharers differ along their sides."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from tilec.layout.neighbours import Cluster, Sharers, Side

CLUSTERS = [((0, 2),), ((1, 4),), ((0, 2), (1, 2)), ((0, 4), (2, 2)), ((0, 2), (1, 2), (2, 2))]


@pytest.mark.parametrize("sides", CLUSTERS, ids=str)
def test_sharers_are_those_that_differ_along_their_sides_only(
    sides: tuple[tuple[int, int], ...],
) -> None:
    cluster = Cluster(tuple(Side(blocks, axis) for axis, blocks in sides))
    places = list(product(*(range(blocks) for _, blocks in sides)))
    assert cluster.blocks == len(places)
    assert cluster.axes == tuple(axis for axis, _ in sides)
    for place, rank in zip(places, range(cluster.blocks), strict=True):
        assert sum(p * s for p, s in zip(place, cluster.steps, strict=True)) == rank
    for bits in range(1 << len(sides)):
        sharers = Sharers.of_bits(cluster, bits)
        assert sharers.bits == bits
        assert sharers.axes == tuple(axis for n, (axis, _) in enumerate(sides) if bits >> n & 1)
        assert sharers.blocks == prod(count for n, (_, count) in enumerate(sides) if bits >> n & 1)
        first = sum(
            1 << rank
            for rank, place in enumerate(places)
            if all(place[n] == 0 for n in sharers.others)
        )
        assert sharers.first_ranks == first
