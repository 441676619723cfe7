"""What the launches of a pipeline ask of those who call it, in the pipeline's own terms.

Its contract is its own and that of each launch with what it is given (docs/abi.md): the `requires!`
of the kernel, extents that are numbers or occur twice, and temporaries that exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tilec.artifact.expression import Expression
from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Pipeline, PipelineLaunch
from tilec.compatibility.implied import renamed

Conditions: TypeAlias = tuple[Expression, ...]


@dataclass(frozen=True)
class Demand:
    """One launch, by number: all conditions of one of its instances must hold."""

    launch: int
    kernel: str
    alternatives: tuple[Conditions, ...]


def demands_of(pipeline: Pipeline, kernels: Mapping[str, Kernel]) -> list[Demand]:
    """What each launch asks for; nothing, where it is of a kernel or tensor that is not there."""
    extents: dict[str, Conditions] = {
        **{p.name: p.extents for p in pipeline.parameters if p.is_tensor},
        **{t.name: t.extents for t in pipeline.temporaries},
    }
    return [
        Demand(
            number,
            launch.kernel,
            tuple(
                tuple(_conditions(launch, kernels[symbol], extents)) for symbol in launch.instances
            ),
        )
        for number, launch in enumerate(pipeline.launches)
        if _is_there(launch, kernels, extents)
    ]


def _is_there(
    launch: PipelineLaunch, kernels: Mapping[str, Kernel], extents: Mapping[str, object]
) -> bool:
    names = [argument.parameter for argument in launch.arguments]
    tensors = [one.tensor for one in launch.arguments if one.tensor is not None]
    return (
        bool(launch.instances)
        and all(symbol in kernels for symbol in launch.instances)
        and all([p.name for p in kernels[s].parameters] == names for s in launch.instances)
        and all(tensor in extents for tensor in tensors)
    )


def extents_from_0(pipeline: Pipeline) -> Iterator[tuple[str, Expression]]:
    """The temporaries that have an extent which may be below 0, with the condition that it is not.

    The others are made of `Dim`s, which are not.
    """
    for temporary in pipeline.temporaries:
        for extent in temporary.extents:
            if not _is_from_0(extent, pipeline.dims):
                yield temporary.name, ("ge", extent, 0)


def _is_from_0(extent: Expression, dims: tuple[str, ...]) -> bool:
    match extent:
        case str(name):
            return name in dims
        case ("add" | "mul" | "div" | "ceildiv" | "rem" | "min", first, second):
            return _is_from_0(first, dims) and _is_from_0(second, dims)
        case ("max", first, second):
            return _is_from_0(first, dims) or _is_from_0(second, dims)
        case tuple():
            return False
    return extent >= 0


def _conditions(
    launch: PipelineLaunch, kernel: Kernel, extents: Mapping[str, Conditions]
) -> Iterator[Expression]:
    values: dict[str, Expression] = {}
    for argument, parameter in zip(launch.arguments, kernel.parameters, strict=True):
        if argument.value is not None:
            values[parameter.name] = argument.value
        if argument.tensor is None:
            continue
        given = extents[argument.tensor]
        axes = argument.axes or range(len(given))
        for extent, axis in zip(parameter.extents, axes, strict=False):
            wanted = values.setdefault(extent, given[axis]) if isinstance(extent, str) else extent
            if wanted != given[axis]:
                yield "eq", given[axis], wanted
    yield from (renamed(one.expression, values) for one in kernel.requires)
