"""Launches in clusters of thread blocks, which `cuLaunchKernel` knows nothing of."""

from __future__ import annotations

from collections.abc import Callable

from cuda.bindings import driver as bindings

from tilec.artifact.geometry import Grid
from tilec.artifact.manifest import Variant

_launch_extended = bindings.cuLaunchKernelEx
_clusters_at_once = bindings.cuOccupancyMaxActiveClusters
# Multiprocessors come in pairs at least, so that each of these has room somewhere.
_PAIR = 2
_SUCCESS = bindings.CUresult.CUDA_SUCCESS


def cluster_launch(
    grid: Grid, variant: Variant, function: bindings.CUfunction, parameters: int
) -> Callable[[bindings.CUstream], bindings.CUresult]:
    """A function that launches on a stream. Not for two threads at once, as frames are not.

    Assumes:  the device's context is current
    """
    attribute = bindings.CUlaunchAttribute()
    attribute.id = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    cluster = attribute.value.clusterDim
    cluster.x, cluster.y, cluster.z = variant.cluster
    config = bindings.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = variant.threads, 1, 1
    config.sharedMemBytes = variant.dynamic_smem_bytes
    config.attrs = [attribute]
    config.numAttrs = 1
    if variant.persistent_blocks_per_sm is not None and variant.cluster[0] > _PAIR:
        config.gridDimX = _at_once(config, function, grid[0], variant.cluster[0])

    def launch(queue: bindings.CUstream) -> bindings.CUresult:
        config.hStream = queue
        [status] = _launch_extended(config, function, parameters, 0)
        return status

    return launch


def _at_once(
    config: bindings.CUlaunchConfig, function: bindings.CUfunction, blocks: int, cluster: int
) -> int:
    """So many of the blocks of a persistent variant that all their clusters run at one time.

    Multiprocessors come in groups, which hold whole clusters: on an H100 only 32 of 33 clusters of
    4 blocks have room at once, and the last one would begin when all others are done.
    """
    status, clusters = _clusters_at_once(function, config)
    if status != _SUCCESS or not clusters:
        return blocks
    return min(blocks, int(clusters) * cluster)
