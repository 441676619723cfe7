"""The thread blocks of a launch of one variant (docs/abi.md, "Launch geometry")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from tilec.artifact.abi import GRID_X_LIMIT, GRID_YZ_LIMIT, NUMBERED_LIMIT, launch_grid
from tilec.artifact.manifest import Variant

# The most blocks of a cluster that every device with clusters takes (CUDA C++ Programming Guide,
# "Thread Block Clusters").
CLUSTER_LIMIT = 8

ALONE = (1, 1, 1)  # the cluster of a variant without clusters

Grid = tuple[int, int, int]


def grid_of(variant: Variant, extents: Sequence[int], sm_count: Callable[[], int]) -> Grid | None:
    """The blocks along x, y and z for a grid of programs; None if the hardware has not so many, or
    the variant does not.

    `sm_count` is the number of multiprocessors, which only persistent variants ask for.

    Assumes:  all extents are above 0, their product at most COUNT_LIMIT
    """
    if variant.tensor_maps and prod(extents) > NUMBERED_LIMIT:
        return None
    if variant.persistent_blocks_per_sm is not None:
        blocks = variant.persistent_blocks_per_sm * sm_count()
        return _persistent_grid(prod(extents), blocks, variant.cluster[0])
    if variant.cluster == ALONE:
        return launch_grid(extents)
    if variant.split > 1:
        x, y, z = launch_grid(extents)
        return (x * variant.split, y, z) if x * variant.split <= GRID_X_LIMIT else None
    return _clustered_grid(extents, variant.cluster)


def _persistent_grid(programs: int, blocks: int, cluster: int) -> Grid:
    """As many blocks as there are programs, but no more than `blocks`; whole clusters, one at
    least."""
    wanted = -(-programs // cluster) * cluster
    return max(min(wanted, blocks // cluster * cluster), cluster), 1, 1


def _clustered_grid(extents: Sequence[int], cluster: Grid) -> Grid | None:
    """Blocks are programs at their own coordinates, each axis rounded up to whole clusters."""
    *outer, y, x = (1, 1, *extents)
    rounded = [
        -(-extent // blocks) * blocks
        for extent, blocks in zip((x, y, prod(outer)), cluster, strict=True)
    ]
    if rounded[0] > GRID_X_LIMIT or max(rounded[1:]) > GRID_YZ_LIMIT:
        return None
    return rounded[0], rounded[1], rounded[2]
