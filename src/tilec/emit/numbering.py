"""The numbers that stand for names in the tables of files, the same in all languages."""

from __future__ import annotations

from tilec.artifact.expression import Expression, names_in
from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Pipeline
from tilec.artifact.signature import Parameter


def extent_numbers(parameter: Parameter, kernel: Kernel) -> list[int]:
    """The extents of a parameter: those that are fixed, and -1 less the number of a `Dim`."""
    return [
        extent if isinstance(extent, int) else -1 - kernel.dims.index(extent)
        for extent in parameter.extents
    ]


def value_numbers(expression: Expression, kernel: Kernel) -> list[int]:
    """The values that an expression names, each once: `Dim`s, and behind them parameters."""
    places = [*kernel.dims, *(parameter.name for parameter in kernel.parameters)]
    return [places.index(name) for name in dict.fromkeys(names_in(expression))]


def tensor_numbers(pipeline: Pipeline) -> dict[str, int]:
    """The number of each parameter of a pipeline and, behind these, of each temporary."""
    names = [parameter.name for parameter in pipeline.parameters]
    names += [temporary.name for temporary in pipeline.temporaries]
    return {name: number for number, name in enumerate(names)}
