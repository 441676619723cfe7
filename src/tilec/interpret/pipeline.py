"""A pipeline's plan made ready for the CPU: contract, workspace, and an instance for each launch.

All of it is done before the first launch starts, so that a broken contract leaves nothing half run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from mlir import ir

from tilec.artifact.expression import TooLarge, Value, evaluate, holds, too_large, values_in
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch
from tilec.artifact.signature import Parameter, Requirement
from tilec.artifact.workspace import Workspace, WorkspaceError, workspace_of
from tilec.interpret import contract
from tilec.interpret.candidates import Candidate, check_unambiguous
from tilec.interpret.contract import DTYPES, BrokenContract, bind, parameters_of
from tilec.interpret.launch import WRITTEN, fitted, kernels_of, symbol_of
from tilec.interpret.machine import Code, code_of
from tilec.interpret.memory import Array
from tilec.interpret.run import check_launch

# What memory holds that nobody wrote: NaN in all floats, -1 in signed integers.
POISON = 0xFF


@dataclass(frozen=True)
class Launch:
    """One launch, whose contract holds; `arguments` are windows on the pipeline's memory."""

    number: int
    told: PipelineLaunch
    function: ir.OpView
    arguments: Mapping[str, Any]

    @property
    def sizes(self) -> str:
        """The extents and scalars of this launch, for reading."""
        _, dims = bind(parameters_of(self.function), self.arguments)
        scalars = {k: v for k, v in self.arguments.items() if not isinstance(v, np.ndarray)}
        return _listed({**dims, **scalars})


@dataclass(frozen=True)
class Ready:
    """A pipeline with its arguments: copies of those given, or zeros.

    Shapes:     `memory` is the bytes of the workspace, `temporaries` are windows on it
    Guarantees: the contract of the pipeline and of every launch holds
    """

    pipeline: Pipeline
    tensors: Mapping[str, Array]
    unset: frozenset[str]  # the outputs among the zeros
    values: Mapping[str, Value]
    workspace: Workspace
    memory: Array
    temporaries: Mapping[str, Array]
    launches: tuple[Launch, ...]
    code: Code

    @property
    def sizes(self) -> str:
        """The extents and scalars, for reading."""
        return _listed(self.values)


def make_ready(
    pipelines: Sequence[Pipeline], module: ir.Module, name: str, given: Mapping[str, Any]
) -> Ready:
    """The first instance of a pipeline whose contract holds, or the one of this symbol.

    A tensor that is not given is zeros, where the others bind its extents.

    Raises:   BrokenContract if no instance fits, or several of different types
    """
    instances = [p for p in pipelines if p.symbol == name] or [
        p for p in pipelines if p.name == name
    ]
    assert instances, f"there is no pipeline `{name}`"
    functions = {symbol_of(function): function for function in kernels_of(module)}
    reasons: list[str] = []
    found: dict[Candidate, Ready] = {}
    for pipeline in instances:
        candidate = _candidate(pipeline)
        if any(one.types == candidate.types for one in found):
            continue
        try:
            found[candidate] = _ready(pipeline, functions, given)
        except BrokenContract as broken:
            reasons.append(f"`{pipeline.symbol}`: {broken}")
    if not found:
        raise BrokenContract("; ".join(reasons))
    check_unambiguous(name, [*found], given)
    return next(iter(found.values()))


def _candidate(pipeline: Pipeline) -> Candidate:
    parameters = tuple(map(_parameter, pipeline.parameters))
    types = ((g.name, g.value) for g in pipeline.generics if g.kind == "type")
    return Candidate(pipeline.symbol, parameters, tuple((name, str(v)) for name, v in types))


def _ready(
    pipeline: Pipeline, functions: Mapping[str, ir.OpView], given: Mapping[str, Any]
) -> Ready:
    parameters = tuple(map(_parameter, pipeline.parameters))
    arguments = fitted(parameters, given)
    arrays, dims = bind(parameters, arguments, whose="pipeline")
    values: dict[str, Value] = {**dims}
    for parameter in pipeline.parameters:
        if not parameter.is_tensor:
            values[parameter.name] = _number(parameter.element, arguments[parameter.name])
    _check_requires(pipeline.requires, values)
    try:
        workspace = workspace_of(pipeline, values)
    except WorkspaceError as error:
        raise BrokenContract(str(error)) from None
    try:
        memory = np.full(workspace.bytes, POISON, np.uint8)
    except (MemoryError, ValueError):
        raise BrokenContract(f"there is no room for {workspace.bytes} bytes of workspace") from None
    temporaries = {
        t.name: _window(memory, workspace.offsets[t.name], t.element, workspace.extents[t.name])
        for t in pipeline.temporaries
    }
    tensors = {p.name: arrays[p.name] for p in pipeline.parameters if p.is_tensor}
    code = code_of(next(iter(functions.values()))) if functions else Code({})
    places = {**tensors, **temporaries}
    launches = tuple(
        _launch(number, told, functions, places, values, code)
        for number, told in enumerate(pipeline.launches)
    )
    outputs = {p.name for p in pipeline.parameters if p.own in WRITTEN}
    unset = frozenset(outputs - given.keys())
    return Ready(pipeline, tensors, unset, values, workspace, memory, temporaries, launches, code)


def _parameter(parameter: Parameter) -> contract.Parameter:
    extents = parameter.extents if parameter.is_tensor else None
    return contract.Parameter(parameter.name, parameter.element, extents, parameter.own)


def _number(element: str, given: Any) -> Value:
    """A scalar as expressions see it: rounded to its own type."""
    wanted = np.dtype(DTYPES[element])
    if wanted.kind == "b":
        return bool(given)
    return int(given) if wanted.kind in "iu" else float(np.asarray(given).astype(wanted))


def _check_requires(requires: Sequence[Requirement], values: Mapping[str, Value]) -> None:
    for requirement in requires:
        if not holds(requirement.expression, values):
            where = values_in(requirement.expression, values)
            raise BrokenContract(f"`requires!({requirement.text})` does not hold{where}")


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _window(memory: Array, offset: int, element: str, extents: tuple[int, ...]) -> Array:
    dtype = np.dtype(DTYPES[element])
    end = offset + prod(extents) * dtype.itemsize
    return memory[offset:end].view(dtype).reshape(extents)


def _launch(
    number: int,
    told: PipelineLaunch,
    functions: Mapping[str, ir.OpView],
    places: Mapping[str, Array],
    values: Mapping[str, Value],
    code: Code,
) -> Launch:
    """A launch of the first of its instances whose contract holds."""
    try:
        arguments = {a.parameter: _given(a, places, values) for a in told.arguments}
    except BrokenContract as broken:
        raise BrokenContract(f"{launch_text(told)}: {broken}") from None
    reasons: list[str] = []
    for symbol in told.instances:
        function = functions[symbol]
        try:
            check_launch(function, arguments, code)
        except BrokenContract as broken:
            reasons.append(f"`{symbol}`: {broken}")
            continue
        return Launch(number, told, function, arguments)
    raise BrokenContract(f"{launch_text(told)}: {'; '.join(reasons)}")


def launch_text(told: PipelineLaunch) -> str:
    """A launch, for messages."""
    given = ", ".join(f"{a.parameter} = {a.tensor}" for a in told.arguments if a.tensor)
    return f"the launch of `{told.kernel}` in {told.file}:{told.line} ({given})"


def _given(argument: Argument, places: Mapping[str, Array], values: Mapping[str, Value]) -> Any:
    if argument.tensor is None:
        assert argument.value is not None, "an argument is a tensor or a number"
        try:
            return evaluate(argument.value, values)
        except TooLarge:
            raise BrokenContract(too_large(argument.value, values)) from None
    tensor = places[argument.tensor]
    return tensor.transpose(argument.axes) if argument.axes else tensor
