"""Launches that `cuLaunchKernel` cannot make: in clusters of thread blocks, and early ones."""

from __future__ import annotations

from collections.abc import Callable

from cuda.bindings import driver as bindings

from tilec.artifact.geometry import ALONE, Grid
from tilec.artifact.manifest import Variant

_launch_extended = bindings.cuLaunchKernelEx
_clusters_at_once = bindings.cuOccupancyMaxActiveClusters
# Multiprocessors come in pairs at least, so that each of these has room somewhere.
_PAIR = 2
_SUCCESS = bindings.CUresult.CUDA_SUCCESS


def extended_launch(
    config: bindings.CUlaunchConfig, function: bindings.CUfunction, parameters: int
) -> Callable[[bindings.CUstream], bindings.CUresult]:
    """A function that launches on a stream. Not for two threads at once, as frames are not."""

    def launch(queue: bindings.CUstream) -> bindings.CUresult:
        config.hStream = queue
        [status] = _launch_extended(config, function, parameters, 0)
        return status

    return launch


def configuration(
    grid: Grid, variant: Variant, function: bindings.CUfunction, early: bool
) -> bindings.CUlaunchConfig:
    """What a launch is but for its function, its stream and its parameters.

    `early`: it starts while what is before it on its stream still runs, if that is a kernel.

    Assumes:  the device's context is current; an early variant waits for earlier kernels itself
    """
    return _configuration(launched_grid(grid, variant, function), variant, early)


def launched_grid(grid: Grid, variant: Variant, function: bindings.CUfunction) -> Grid:
    """The grid, but of a persistent variant no more blocks than all run at one time.

    Multiprocessors come in groups, which hold whole clusters: on an H100 only 32 of 33 clusters of
    4 blocks have room at once, and the last one would begin when all others are done.

    Assumes:  the device's context is current
    """
    if variant.persistent_blocks_per_sm is None or variant.cluster[0] <= _PAIR:
        return grid
    status, clusters = _clusters_at_once(function, _configuration(grid, variant))
    if status != _SUCCESS or not clusters:
        return grid
    x, y, z = grid
    return min(x, int(clusters) * variant.cluster[0]), y, z


def _configuration(grid: Grid, variant: Variant, early: bool = False) -> bindings.CUlaunchConfig:
    attributes = [] if variant.cluster == ALONE else [_cluster_attribute(variant)]
    attributes += [_early_attribute()] if early else []
    config = bindings.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = variant.threads, 1, 1
    config.sharedMemBytes = variant.dynamic_smem_bytes
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _cluster_attribute(variant: Variant) -> bindings.CUlaunchAttribute:
    """The clusters that a variant is launched in."""
    attribute = bindings.CUlaunchAttribute()
    attribute.id = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    cluster = attribute.value.clusterDim
    cluster.x, cluster.y, cluster.z = variant.cluster
    return attribute


def _early_attribute() -> bindings.CUlaunchAttribute:
    attribute = bindings.CUlaunchAttribute()
    attribute.id = (
        bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    )
    attribute.value.programmaticStreamSerializationAllowed = 1
    return attribute
