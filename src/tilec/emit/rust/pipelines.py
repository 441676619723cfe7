"""What a file says of its pipelines as data: the structs of `support/pipelines.rs`, filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.artifact.expression import text_of
from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.emit.expressions import Expressions
from tilec.emit.messages import in_words
from tilec.emit.names import identifier
from tilec.emit.numbering import tensor_numbers
from tilec.emit.rust.expressions import RUST
from tilec.emit.rust.functions import Build, set_lines
from tilec.emit.rust.tables import claim, dtype, kernel_lines
from tilec.emit.rust.text import listed, string, structure
from tilec.emit.sets import LaunchSet, contract_of

PIPELINES = "PIPELINES_"  # begins the names of `Pipelines`


def pipeline_lines(sets: Sequence[LaunchSet], builds: Sequence[Build]) -> Iterator[str]:
    """The data of all pipelines: what they launch, then a `Pipelines` for each set."""
    manifest = builds[0].manifest
    launched: dict[tuple[str, ...], str] = {}
    kernels = {kernel.symbol: kernel for kernel in manifest.kernels}
    for pipeline in manifest.pipelines:
        for launch in pipeline.launches:
            if launch.instances not in launched:
                launched[launch.instances] = name = f"SET_{len(launched)}_in_pipelines"
                members = tuple(kernels[symbol] for symbol in launch.instances)
                yield from set_lines(LaunchSet(launch.kernel, members), builds, name)
    rows = {}
    for pipeline in manifest.pipelines:
        contract = contract_of(pipeline)
        expressions = Expressions(contract, RUST)
        rows[pipeline.symbol] = _pipeline(pipeline, contract, launched, expressions)
        yield from kernel_lines(contract, _contract_name(contract), 0, expressions)
    for one in sets:
        yield _pipelines(one, rows, builds[0])


def _pipelines(one: LaunchSet, rows: Mapping[str, str], build: Build) -> str:
    members = [f"&KERNEL_{_contract_name(contract)}" for contract in one.kernels]
    group = structure("Group", kernels=listed(members), tables=listed(()))
    first = structure("Build", cubin=f"&CUBIN_{build.own}", groups=listed([group]))
    contracts = structure("Set", name=string(one.label), builds=listed([first]))
    value = structure(
        "Pipelines",
        contracts=f"&{contracts}",
        pipelines=listed(rows[contract.symbol] for contract in one.kernels),
    )
    return f"pub(super) static {PIPELINES}{one.name}: Pipelines = {value};\n"


def _contract_name(contract: Kernel) -> str:
    """What ends the names of the statics of a pipeline's contract."""
    return f"of_pipeline_{identifier(contract.symbol)}"


def _pipeline(
    pipeline: Pipeline,
    contract: Kernel,
    launched: Mapping[tuple[str, ...], str],
    expressions: Expressions,
) -> str:
    numbers = tensor_numbers(pipeline)
    return structure(
        "Pipeline",
        contract=f"&KERNEL_{_contract_name(contract)}",
        slots=len({temporary.slot for temporary in pipeline.temporaries}),
        temporaries=listed(_temporary(t, contract, expressions) for t in pipeline.temporaries),
        launches=listed(
            _launch(launch, launched[launch.instances], numbers, contract, expressions)
            for launch in pipeline.launches
        ),
    )


def _temporary(temporary: Temporary, contract: Kernel, expressions: Expressions) -> str:
    return structure(
        "Temporary",
        name=string(temporary.name),
        dtype=dtype(temporary.element),
        slot=temporary.slot,
        extents=listed(claim(x, text_of(x), contract, expressions) for x in temporary.extents),
    )


def _launch(
    launch: PipelineLaunch,
    launched: str,
    numbers: Mapping[str, int],
    contract: Kernel,
    expressions: Expressions,
) -> str:
    return structure(
        "PipelineLaunch",
        set=f"&{launched}",
        text=string(in_words(launch)),
        after=listed(launch.after),
        given=listed(_given(one, numbers, contract, expressions) for one in launch.arguments),
    )


def _given(
    argument: Argument, numbers: Mapping[str, int], contract: Kernel, expressions: Expressions
) -> str:
    if argument.tensor is not None:
        axes = argument.axes if argument.axes != tuple(range(len(argument.axes))) else ()
        return f"Given::Tensor({numbers[argument.tensor]}, {listed(axes)})"
    assert argument.value is not None, "a manifest's pipelines are checked when it is read"
    kind = f"Kind::{expressions.kind(argument.value).capitalize()}"
    value = claim(argument.value, text_of(argument.value), contract, expressions, is_value=True)
    return f"Given::Value({kind}, {value})"
