"""What a header says of its pipelines as data: the structs of `support/pipelines.h`, filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.artifact.expression import text_of
from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Argument, Pipeline, PipelineLaunch, Temporary
from tilec.emit.expressions import Expressions
from tilec.emit.header.expressions import C
from tilec.emit.header.functions import Build, set_lines, set_name, value_count
from tilec.emit.header.tables import (
    Arrays,
    add_kernel,
    braced_row,
    claim,
    claim_of,
    dtype,
)
from tilec.emit.header.text import braced, filled, string
from tilec.emit.messages import in_words
from tilec.emit.names import identifier
from tilec.emit.numbering import tensor_numbers
from tilec.emit.sets import LaunchSet, contract_of


def pipeline_lines(sets: Sequence[LaunchSet], builds: Sequence[Build], unit: str) -> Iterator[str]:
    """The data of all pipelines: what they launch, then a `tilec_pipelines` for each set."""
    manifest = builds[0].manifest
    arrays = Arrays(f"{unit}_contracts")
    launched = Launched(builds, unit)
    rows = {}
    for pipeline in manifest.pipelines:
        rows[pipeline.symbol] = _pipeline(pipeline, launched, arrays, builds[0].cubin)
        yield from launched.taken()
        yield from arrays.taken()
    for one in sets:
        own = arrays.array(
            "tilec_pipeline",
            f"instances_{identifier(one.name)}",
            [rows[contract.symbol] for contract in one.kernels],
        )
        yield from arrays.taken()
        fields = (string(one.label), own, len(one.kernels), value_count(one))
        name = pipelines_name(unit, one)
        yield filled(f"static const tilec_pipelines {name} = {{", fields, "};")
        yield ""


def pipelines_name(unit: str, one: LaunchSet) -> str:
    """The name of the `tilec_pipelines` of a pipeline's functions."""
    return f"{unit}_pipelines_{one.name}"


class Launched:
    """The `tilec_set` of each choice of instances that launches have, each once."""

    def __init__(self, builds: Sequence[Build], unit: str) -> None:
        self._builds, self._unit = builds, unit
        self._kernels = {kernel.symbol: kernel for kernel in builds[0].manifest.kernels}
        self._known: dict[tuple[str, ...], LaunchSet] = {}
        self._lines: list[str] = []

    def set_of(self, launch: PipelineLaunch) -> tuple[str, LaunchSet]:
        """The name of the set, and the set."""
        known = self._known.get(launch.instances)
        if known is None:
            kernels = tuple(self._kernels[symbol] for symbol in launch.instances)
            known = LaunchSet(f"{len(self._known)}_in_pipelines_{launch.kernel}", kernels)
            self._known[launch.instances] = known
            self._lines += set_lines(known, self._builds, self._unit)
        return set_name(self._unit, known), known

    def taken(self) -> list[str]:
        """The definitions since the last call."""
        lines, self._lines = self._lines, []
        return lines

    def most(self, symbols: Sequence[str]) -> tuple[int, int]:
        """The most cells, and the most tensor maps, that a launch of one of these has."""
        variants = [
            variant
            for build in self._builds
            for kernel in build.manifest.kernels
            if kernel.symbol in symbols
            for variant in kernel.variants
        ]
        return max(len(v.slots) for v in variants), max(len(v.tensor_maps) for v in variants)


def _pipeline(pipeline: Pipeline, launched: Launched, arrays: Arrays, cubin: str) -> str:
    contract, own = contract_of(pipeline), identifier(pipeline.symbol)
    expressions = Expressions(contract, C)
    numbers = tensor_numbers(pipeline)
    ranks = {p.name: p.rank for p in pipeline.parameters}
    ranks |= {t.name: len(t.extents) for t in pipeline.temporaries}
    temporaries = arrays.array(
        "tilec_temporary",
        f"temporaries_{own}",
        [_temporary(one, contract, expressions, arrays) for one in pipeline.temporaries],
    )
    rows = []
    for number, launch in enumerate(pipeline.launches):
        given = [
            _given(one, numbers, ranks, contract, expressions, arrays) for one in launch.arguments
        ]
        after = arrays.array("int32_t", "after", [braced_row(launch.after)] if launch.after else [])
        listed = arrays.array("tilec_given", f"given_{own}_{number}", given)
        fields = (string(in_words(launch)), len(launch.after), after, listed)
        rows.append(braced((f"&{launched.set_of(launch)[0]}", *fields)))
    launches = arrays.array("tilec_pipeline_launch", f"launches_{own}", rows)
    name = add_kernel(contract, cubin, arrays, 0, expressions)
    most = [launched.most(launch.instances) for launch in pipeline.launches]
    slots = len({temporary.slot for temporary in pipeline.temporaries})
    counts = (len(pipeline.temporaries), slots, len(pipeline.launches))
    sums = (sum(cells for cells, _ in most), sum(maps for _, maps in most))
    return braced((f"&{name}", *counts, *sums, temporaries, launches))


def _temporary(
    temporary: Temporary, contract: Kernel, expressions: Expressions, arrays: Arrays
) -> str:
    extents = arrays.array(
        "tilec_claim",
        f"extents_{identifier(contract.symbol)}_{identifier(temporary.name)}",
        [claim(one, text_of(one), contract, expressions, arrays) for one in temporary.extents],
    )
    fields = (len(temporary.extents), dtype(temporary.element), temporary.slot, extents)
    return braced((string(temporary.name), *fields))


def _given(
    argument: Argument,
    numbers: Mapping[str, int],
    ranks: Mapping[str, int],
    contract: Kernel,
    expressions: Expressions,
    arrays: Arrays,
) -> str:
    if argument.tensor is not None:
        axes = argument.axes or tuple(range(ranks[argument.tensor]))
        return braced((numbers[argument.tensor], "TILEC_TRUTH", "NULL", braced(axes or [0])))
    assert argument.value is not None, "a manifest's pipelines are checked when it is read"
    number = expressions.value(argument.value)
    kind = f"TILEC_{expressions.kind(argument.value).upper()}"
    value = arrays.array(
        "tilec_claim",
        f"value_{identifier(contract.symbol)}_{identifier(argument.parameter)}",
        [claim_of(number, argument.value, text_of(argument.value), contract, arrays)],
    )
    return braced((-1, kind, value, braced([0])))
