"""Pipelines: what one call launches, in which order, and with which memory between; as data.

A pipeline is launches in a row (loops are unrolled, calls of other pipelines inlined). Each names
the tensors that it is given: parameters of the pipeline, or temporaries, which lie in one workspace
that whoever runs the pipeline brings (`artifact/workspace.py` says how large).
"""

from __future__ import annotations

from dataclasses import dataclass

from tilec.artifact.expression import Expression
from tilec.artifact.signature import Coverage, Generic, Parameter, Requirement


@dataclass(frozen=True)
class Temporary:
    """A tensor that lives as long as the pipeline runs: packed, the last axis the innermost.

    It lies at the start of the workspace's part `slot`. Temporaries of one slot are never in use
    at one time, whatever launches run side by side as `after` allows.

    Units:    `extents` are elements, expressions over the pipeline's `Dim`s and scalars
    """

    name: str
    element: str
    extents: tuple[Expression, ...]
    slot: int


@dataclass(frozen=True)
class Argument:
    """What a launch gives for one parameter of its kernel: a tensor, or the value of a scalar.

    `tensor` names a parameter of the pipeline or a temporary. Where `axes` is not empty, axis i of
    what is given is axis `axes[i]` of the tensor; the last axis stays the last. `value` is over the
    pipeline's `Dim`s and scalars.
    """

    parameter: str
    tensor: str | None = None
    axes: tuple[int, ...] = ()
    value: Expression | None = None


@dataclass(frozen=True)
class PipelineLaunch:
    """One launch. `arguments` are in the order of the kernel's parameters.

    `instances` are the symbols that may be launched, all of the kernel `kernel`, in the order of
    the manifest: which one, the arguments decide as for a launch by the kernel's name. `after` are
    the launches, by number, that must be done before this one starts, except those that another of
    them comes after anyway. What no path of them orders may run at the same time.

    Units:    `line` is one-based, in the source `file`
    """

    kernel: str
    instances: tuple[str, ...]
    arguments: tuple[Argument, ...]
    after: tuple[int, ...]
    file: str
    line: int


@dataclass(frozen=True)
class Pipeline:
    """One instance of a pipeline.

    `parameters` are owned "shared", "mut" or "atomic". The contract is that of a kernel with these
    parameters, `dims` and `requires`, and of each launch with what it is given; all of it holds
    before anything is launched. `coverage` is of the parameters that may be written.
    """

    name: str
    symbol: str
    generics: tuple[Generic, ...]
    documentation: str
    line: int
    parameters: tuple[Parameter, ...]
    dims: tuple[str, ...]
    requires: tuple[Requirement, ...]
    temporaries: tuple[Temporary, ...]
    launches: tuple[PipelineLaunch, ...]
    coverage: tuple[Coverage, ...]
