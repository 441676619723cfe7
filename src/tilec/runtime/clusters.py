"""Launches in clusters of thread blocks, which `cuLaunchKernel` knows nothing of."""

from __future__ import annotations

from collections.abc import Callable

from cuda.bindings import driver as bindings

from tilec.artifact.geometry import Grid
from tilec.artifact.manifest import Variant

_launch_extended = bindings.cuLaunchKernelEx


def cluster_launch(
    grid: Grid, variant: Variant, function: bindings.CUfunction, parameters: int
) -> Callable[[bindings.CUstream], bindings.CUresult]:
    """A function that launches on a stream. Not for two threads at once, as frames are not."""
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

    def launch(queue: bindings.CUstream) -> bindings.CUresult:
        config.hStream = queue
        [status] = _launch_extended(config, function, parameters, 0)
        return status

    return launch
