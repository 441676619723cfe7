"""Loads cubins that tilec built, and launches their kernels.

    import tilec.runtime as rt
    add = rt.load("build/add.sm_90a.cubin").add
    add(z, x, y)                            # tensors of PyTorch, CuPy, JAX, or `rt.Tensor`
    handle = add.launch(z, x, y, stream=s)  # asynchronous; `handle.wait()`

Before each launch the contract in the cubin's manifest is checked: element types, extents, strides,
`requires!`, overlap. A broken one raises `ContractError` and launches nothing. Importing this needs
no GPU; what does need one raises `NoDevice` without it.
"""

from __future__ import annotations

from tilec.runtime.arguments import TensorLike
from tilec.runtime.errors import (
    ArchitectureError,
    ArtifactError,
    BorrowError,
    ContractError,
    LaunchError,
    NoDevice,
    TilecError,
    Trapped,
)
from tilec.runtime.fitted import LaunchPlan
from tilec.runtime.graph import Graph
from tilec.runtime.launch import Launch
from tilec.runtime.launcher import Launcher
from tilec.runtime.module import Module, load
from tilec.runtime.ordering import order_conflicts, ordered
from tilec.runtime.pipeline import PipelineLauncher
from tilec.runtime.pipeline_plan import PipelinePlan
from tilec.runtime.tensor import Tensor, empty, to_device

__all__ = [
    "ArchitectureError",
    "ArtifactError",
    "BorrowError",
    "ContractError",
    "Graph",
    "Launch",
    "LaunchError",
    "LaunchPlan",
    "Launcher",
    "Module",
    "NoDevice",
    "PipelineLauncher",
    "PipelinePlan",
    "Tensor",
    "TensorLike",
    "TilecError",
    "Trapped",
    "empty",
    "load",
    "order_conflicts",
    "ordered",
    "to_device",
]
