"""What must hold of the pipelines of a manifest, so that readers can rely on it.

Order and memory are not taken on trust: for any two launches that must not change places, a path of
`after` is asked for, and for any two temporaries at one place, that one is done with first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.expression import names_in, text_of
from tilec.artifact.number_kinds import fault_of_number, real_names
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.artifact.signature import Parameter, number_kind

if TYPE_CHECKING:
    from tilec.artifact.manifest import Kernel, Manifest


def faults_of_pipelines(manifest: Manifest) -> Iterator[str]:
    """What is wrong in the pipelines, each with the instance that it is in."""
    kernels = {kernel.symbol: kernel for kernel in manifest.kernels}
    taken = {*kernels, *(k.name for k in manifest.kernels), *(f.name for f in manifest.families)}
    symbols: set[str] = set()
    for pipeline in manifest.pipelines:
        for name in dict.fromkeys((pipeline.symbol, pipeline.name)):
            if name in taken:
                yield f"the pipeline `{name}` has the name of a kernel"
        if pipeline.symbol in symbols:
            yield f"the pipeline `{pipeline.symbol}` occurs twice"
        symbols.add(pipeline.symbol)
        yield from (f"`{pipeline.symbol}`: {fault}" for fault in _faults_of(pipeline, kernels))


def comes_after(launches: tuple[PipelineLaunch, ...]) -> list[frozenset[int]]:
    """For each launch all those that are done when it starts.

    Assumes:  `after` names earlier launches only
    """
    before: list[frozenset[int]] = []
    for launch in launches:
        before.append(frozenset(launch.after).union(*(before[n] for n in launch.after)))
    return before


def _faults_of(pipeline: Pipeline, kernels: Mapping[str, Kernel]) -> Iterator[str]:
    found = [*_faults_of_names(pipeline)]
    tensors: dict[str, Parameter | Temporary] = {
        **{p.name: p for p in pipeline.parameters if p.is_tensor},
        **{t.name: t for t in pipeline.temporaries},
    }
    for number, launch in enumerate(pipeline.launches):
        faults = _faults_of_launch(number, launch, pipeline, tensors, kernels)
        found += [f"launch {number} of `{launch.kernel}` {fault}" for fault in faults]
    yield from found
    if not found:
        yield from _faults_of_order(pipeline, kernels)


def _faults_of_names(pipeline: Pipeline) -> Iterator[str]:
    names = [p.name for p in pipeline.parameters] + [t.name for t in pipeline.temporaries]
    names += pipeline.dims  # expressions name them beside scalars
    yield from (f"the name `{n}` occurs twice" for n in dict.fromkeys(names) if names.count(n) > 1)
    bound = {x for p in pipeline.parameters for x in p.extents if isinstance(x, str)}
    yield from (f"no tensor binds the `Dim` `{d}`" for d in pipeline.dims if d not in bound)
    yield from (f"`{x}` is no `Dim`" for x in sorted(bound.difference(pipeline.dims)))
    for parameter in pipeline.parameters:
        if parameter.element not in ELEMENT_BYTES:
            yield f"`{parameter.name}` has the unknown element type `{parameter.element}`"
        if parameter.is_tensor and parameter.own in (None, "part"):
            yield f"the tensor `{parameter.name}` has the ownership {parameter.own}"
    known = _values(pipeline)
    for temporary in pipeline.temporaries:
        if temporary.element not in ELEMENT_BYTES:
            yield f"`{temporary.name}` has the unknown element type `{temporary.element}`"
        for name in (n for extent in temporary.extents for n in names_in(extent)):
            if name not in known:
                yield f"an extent of `{temporary.name}` names the unknown `{name}`"
    slots = {t.slot for t in pipeline.temporaries}
    if slots != set(range(len(slots))):
        yield "the slots of the workspace have no consecutive numbers"
    for name in (n for r in pipeline.requires for n in names_in(r.expression)):
        if name not in known:
            yield f"a `requires!` names the unknown `{name}`"
    yield from _faults_of_numbers(pipeline)


def _faults_of_numbers(pipeline: Pipeline) -> Iterator[str]:
    reals = real_names(pipeline.parameters)
    for required in pipeline.requires:
        fault = fault_of_number(required.expression, reals)
        if fault is not None:
            yield f"`requires!({text_of(required.expression)})` {fault}"
    for temporary in pipeline.temporaries:
        for extent in temporary.extents:
            fault = fault_of_number(extent, reals, may_be_real=False)
            if fault is not None:
                yield f"the extent `{text_of(extent)}` of `{temporary.name}` {fault}"


def _values(pipeline: Pipeline) -> set[str]:
    return {*pipeline.dims, *(p.name for p in pipeline.parameters if not p.is_tensor)}


def _faults_of_launch(
    number: int,
    launch: PipelineLaunch,
    pipeline: Pipeline,
    tensors: Mapping[str, Parameter | Temporary],
    kernels: Mapping[str, Kernel],
) -> Iterator[str]:
    if not launch.instances:
        yield "has no instance"
    if list(launch.after) != sorted(set(launch.after)) or not all(
        0 <= n < number for n in launch.after
    ):
        yield f"comes after {list(launch.after)}"
    for symbol in launch.instances:
        kernel = kernels.get(symbol)
        if kernel is None or kernel.name != launch.kernel:
            yield f"names `{symbol}`, which is no instance of it"
        elif [a.parameter for a in launch.arguments] != [p.name for p in kernel.parameters]:
            yield f"does not give the parameters of `{symbol}`"
        else:
            for argument, parameter in zip(launch.arguments, kernel.parameters, strict=True):
                faults = _faults_of_argument(argument, parameter, pipeline, tensors)
                yield from (f"gives `{argument.parameter}` {fault}" for fault in faults)


def _faults_of_argument(
    argument: Argument,
    parameter: Parameter,
    pipeline: Pipeline,
    tensors: Mapping[str, Parameter | Temporary],
) -> Iterator[str]:
    if not parameter.is_tensor:
        if argument.value is None or argument.tensor is not None or argument.axes:
            yield "no number"
            return
        known = _values(pipeline)
        yield from (f"the unknown `{n}`" for n in names_in(argument.value) if n not in known)
        may_be_real = number_kind(parameter.element) == "real"
        reals = real_names(pipeline.parameters)
        fault = fault_of_number(argument.value, reals, may_be_real=may_be_real)
        if fault is not None:
            yield f"`{text_of(argument.value)}`, which {fault}"
        return
    tensor = tensors.get(argument.tensor or "")
    if argument.value is not None or tensor is None:
        yield "no tensor"
        return
    rank = len(tensor.extents)
    if (tensor.element, rank) != (parameter.element, parameter.rank):
        yield f"`{tensor.name}`, which has another element type or rank"
    axes = argument.axes or tuple(range(rank))
    if sorted(axes) != list(range(rank)) or (rank and axes[-1] != rank - 1):
        yield f"the axes {list(axes)} of `{tensor.name}`"
    if parameter.is_written and isinstance(tensor, Parameter) and not tensor.is_written:
        yield f"`{tensor.name}` to be written, which is shared"
    if parameter.own == "shared" and isinstance(tensor, Parameter) and tensor.own == "atomic":
        yield f"the atomic `{tensor.name}` to be read"


def _faults_of_order(pipeline: Pipeline, kernels: Mapping[str, Kernel]) -> Iterator[str]:
    before = comes_after(pipeline.launches)
    uses: dict[str, list[tuple[int, bool]]] = {}
    for number, launch in enumerate(pipeline.launches):
        seen: dict[str, list[bool]] = {}
        of_each = zip(*(kernels[one].parameters for one in launch.instances), strict=True)
        for argument, parameters in zip(launch.arguments, of_each, strict=True):
            if argument.tensor is not None:
                may_write = any(parameter.is_written for parameter in parameters)
                seen.setdefault(argument.tensor, []).append(may_write)
        for tensor, written in seen.items():
            if len(written) > 1 and any(written):
                yield f"launch {number} is given `{tensor}` twice, and writes it"
            uses.setdefault(tensor, []).append((number, any(written)))
    for tensor, used in uses.items():
        for (one, writes), (other, also) in combinations(used, 2):
            if (writes or also) and one not in before[other]:
                yield f"launches {one} and {other} share `{tensor}`, and have no order"
    for a, b in combinations(pipeline.temporaries, 2):
        of_a = [n for n, _ in uses.get(a.name, [])]
        of_b = [n for n, _ in uses.get(b.name, [])]
        if a.slot == b.slot and not (
            _all_done(of_a, of_b, before) or _all_done(of_b, of_a, before)
        ):
            yield f"`{a.name}` and `{b.name}` lie at one place, and may be in use at one time"


def _all_done(first: list[int], then: list[int], before: list[frozenset[int]]) -> bool:
    return all(one in before[other] for one in first for other in then)
