"""Who reads what whom wrote, in a pipeline: the tensors on the edges between its launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Pipeline


@dataclass(frozen=True)
class Use:
    """What a launch does with one tensor of the pipeline.

    `reads` is true too where it writes only a part, so that what was there before goes on.
    """

    tensor: str
    reads: bool
    writes: bool


@dataclass(frozen=True)
class Flow:
    """A tensor as one launch leaves it, and the next one finds it.

    `source` is None for what the caller gives, `target` for what the caller gets.
    """

    tensor: str
    source: int | None
    target: int | None


def uses_of(pipeline: Pipeline, kernels: Mapping[str, Kernel]) -> list[tuple[Use, ...]]:
    """For each launch the tensors that it is given, each once.

    Assumes:  the manifest that both are of has no fault
    """
    return [tuple(_uses(pipeline, number, kernels)) for number in range(len(pipeline.launches))]


def _uses(pipeline: Pipeline, number: int, kernels: Mapping[str, Kernel]) -> Iterator[Use]:
    launch = pipeline.launches[number]
    found: dict[str, tuple[bool, bool]] = {}
    instances = [kernels[symbol] for symbol in launch.instances]
    for position, argument in enumerate(launch.arguments):
        if argument.tensor is None:
            continue
        reads, writes = found.get(argument.tensor, (False, False))
        writes |= instances[0].parameters[position].is_written
        reads |= any(_reads(kernel, position) for kernel in instances)
        found[argument.tensor] = reads, writes
    return (Use(name, *used) for name, used in found.items())


def _reads(kernel: Kernel, position: int) -> bool:
    parameter = kernel.parameters[position]
    if not parameter.is_written:
        return True
    known = [one for one in kernel.coverage if one.tensor == parameter.name]
    return not known or known[0].reads_first or not known[0].writes_all


def flows_of(pipeline: Pipeline, kernels: Mapping[str, Kernel]) -> list[Flow]:
    """All flows, those into an earlier launch first; those to the caller last."""
    written_by: dict[str, int] = {}
    flows: list[Flow] = []
    temporaries = {t.name for t in pipeline.temporaries}
    for number, uses in enumerate(uses_of(pipeline, kernels)):
        for use in uses:
            source = written_by.get(use.tensor)
            if use.reads and not (source is None and use.tensor in temporaries):
                flows.append(Flow(use.tensor, source, number))
        written_by.update({use.tensor: number for use in uses if use.writes})
    outputs = [p.name for p in pipeline.parameters if p.name in written_by]
    return flows + [Flow(name, written_by[name], None) for name in outputs]
