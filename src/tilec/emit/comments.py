"""What the comments over functions say: what callers promise, and what is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tilec.artifact.expression import text_of
from tilec.artifact.manifest import Kernel, Manifest, Precondition, Variant
from tilec.artifact.pipeline import Pipeline
from tilec.emit.contract import parameter_rows, requirements
from tilec.emit.names import identifier
from tilec.emit.sets import LaunchSet

_LISTED = 12  # launches; of a pipeline with more, only their number is told


def contract_lines(launched: LaunchSet, manifest: Manifest, prefix: str) -> Iterator[str]:
    """What a launch function promises and asks for."""
    yield from _head(launched, manifest, prefix)
    yield ""
    if len(launched.kernels) == 1:
        yield from _details(launched.kernels[0])
    else:
        yield from _choice(launched, manifest, prefix)


def _head(launched: LaunchSet, manifest: Manifest, prefix: str) -> Iterator[str]:
    kernel = launched.kernels[0]
    yield f"{prefix}{identifier(launched.name)}   ({manifest.source.file}:{kernel.line})"
    if kernel.documentation:
        yield ""
        yield from (f"  {line}".rstrip() for line in kernel.documentation.splitlines())


def _details(kernel: Kernel) -> Iterator[str]:
    yield from parameter_lines([kernel])
    for parameter in kernel.parameters:
        if parameter.block:
            yield f"  blocks    of {parameter.name}: {' x '.join(map(str, parameter.block))}"
    yield f"  programs  {' x '.join(map(text_of, kernel.grid)) or '1'}"
    for variant in kernel.variants:
        text = f"{variant.symbol}: {', '.join(_variant(variant))}"
        yield from wrap(text, 100, initial_indent="  variant   ", subsequent_indent=" " * 12)


def parameter_lines(kernels: Sequence[Kernel]) -> Iterator[str]:
    """A line for each parameter, and each `requires!` of all instances."""
    for row in parameter_rows(kernels):
        yield f"  {row}"
    for text, symbol in requirements(kernels):
        if symbol is None:
            yield f"  requires  {text}"


def _variant(variant: Variant) -> Iterator[str]:
    yield f"{variant.threads} threads"
    if variant.dynamic_smem_bytes:
        yield f"{variant.dynamic_smem_bytes} bytes of dynamic shared memory"
    if variant.split > 1:
        yield f"each program by {variant.split} blocks"
    elif variant.cluster != (1, 1, 1):
        yield f"clusters of {' x '.join(map(str, variant.cluster))}"
    if variant.persistent_blocks_per_sm:
        yield f"{variant.persistent_blocks_per_sm} persistent blocks a multiprocessor"
    if variant.tensor_maps:
        yield f"tensor maps of {', '.join(m.param for m in variant.tensor_maps)}"
    for precondition in variant.preconditions:
        yield from _asked(precondition)


def _asked(precondition: Precondition) -> Iterator[str]:
    name = precondition.param
    if precondition.base_alignment_bytes > 1:
        yield f"{name} at a multiple of {precondition.base_alignment_bytes} bytes"
    if precondition.stride_multiple_bytes > 1:
        yield f"strides of {name} multiples of {precondition.stride_multiple_bytes} bytes"
    if precondition.row_multiple > 1:
        yield f"rows of {name} of a multiple of {precondition.row_multiple} elements"


def _choice(launched: LaunchSet, manifest: Manifest, prefix: str) -> Iterator[str]:
    yield from parameter_lines(launched.kernels)
    yield ""
    names = [kernel.symbol for kernel in launched.kernels]
    in_families = {member for family in manifest.families for member in family.members}
    yield "  Launches the instance for the arguments: the first whose types and contract fit" + (
        ";" if in_families.intersection(names) else "."
    )
    if in_families.intersection(names):
        yield "  of those that differ in their tiles only, that measured or estimated as fastest."
    yield from (f"    {prefix}{identifier(name)}" for name in names)


def pipeline_lines(launched: LaunchSet, manifest: Manifest, prefix: str) -> list[str]:
    """What the functions of a pipeline promise and ask for."""
    contract = launched.kernels[0]
    lines = [f"{prefix}{identifier(launched.name)}   ({manifest.source.file}:{contract.line})", ""]
    if contract.documentation:
        lines += [*(f"  {line}".rstrip() for line in contract.documentation.splitlines()), ""]
    if len(launched.kernels) == 1:
        [pipeline] = [one for one in manifest.pipelines if one.symbol == contract.symbol]
        lines += [*_pipeline_details(contract, pipeline)]
    else:
        lines += [*parameter_lines(launched.kernels), ""]
        lines.append("  Runs the first instance whose types and contract fit the arguments.")
        lines += [f"    {prefix}{identifier(one.symbol)}" for one in launched.kernels]
    return lines


def _pipeline_details(contract: Kernel, pipeline: Pipeline) -> Iterator[str]:
    yield from parameter_lines([contract])
    if len(pipeline.launches) > _LISTED:
        yield f"  launches  {len(pipeline.launches)}"
        return
    for number, launch in enumerate(pipeline.launches):
        after = ", ".join(map(str, launch.after))
        yield f"  launch {number}  {launch.kernel} ({launch.file}:{launch.line})" + (
            f", after {after}" if after else ""
        )
