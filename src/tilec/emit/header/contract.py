"""The comment over each kernel's functions: what callers promise, and what is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tilec.artifact.expression import text_of
from tilec.artifact.manifest import Kernel, Manifest, Precondition, Variant
from tilec.artifact.signature import Parameter
from tilec.emit.header.sets import LaunchSet
from tilec.emit.header.text import identifier, in_comment

_OWN = {
    "shared": "read",
    "mut": "written",
    "part": "written",
    "atomic": "updated atomically",
}  # fmt: skip


def contract_comment(launched: LaunchSet, manifest: Manifest, prefix: str) -> list[str]:
    """A comment on a launch function."""
    lines = contract_lines(launched, manifest, prefix)
    return ["/*", *(f" * {in_comment(line)}".rstrip() for line in lines), " */"]


def contract_lines(launched: LaunchSet, manifest: Manifest, prefix: str) -> Iterator[str]:
    """What a launch function promises and asks for, in the comments of any language."""
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
    yield from parameter_lines(kernel)
    yield f"  programs  {' x '.join(map(text_of, kernel.grid)) or '1'}"
    for variant in kernel.variants:
        text = f"{variant.symbol}: {', '.join(_variant(variant))}"
        yield from wrap(text, 100, initial_indent="  variant   ", subsequent_indent=" " * 12)


def parameter_lines(kernel: Kernel) -> Iterator[str]:
    """A line for each parameter and each `requires!`."""
    width = max((len(p.name) for p in kernel.parameters), default=0)
    for parameter in kernel.parameters:
        yield f"  {parameter.name.ljust(width)}  {_parameter(parameter)}"
    for requirement in kernel.requires:
        yield f"  requires  {requirement.text}"


def _parameter(parameter: Parameter) -> str:
    if not parameter.is_tensor:
        return parameter.element
    extents = ", ".join(map(str, parameter.extents))
    text = f"{parameter.element} [{extents}], {_OWN[parameter.own or 'shared']}"
    if parameter.block:
        text += f", by blocks of [{', '.join(map(str, parameter.block))}]"
    return text


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
    names = [kernel.symbol for kernel in launched.kernels]
    in_families = {member for family in manifest.families for member in family.members}
    yield "  Launches the instance for the arguments: the first whose types and contract fit" + (
        ";" if in_families.intersection(names) else "."
    )
    if in_families.intersection(names):
        yield "  of those that differ in their tiles only, that measured or estimated as fastest."
    yield from (f"    {prefix}{identifier(name)}" for name in names)


def file_comment(
    manifests: Sequence[Manifest],
    sets: Sequence[LaunchSet],
    pipelines: Sequence[LaunchSet],
    prefix: str,
) -> list[str]:
    """The comment that a header begins with."""
    first = manifests[0]
    targets = ", ".join(manifest.target for manifest in manifests)
    lines = [
        f"Kernels of {first.source.file}, with their machine code for {targets}.",
        f"Made by tilec {first.toolchain.tilec}; changes are lost when it is made again.",
        "",
        "C99 or later, C++17 or later. Include it, call, link with -ldl -lpthread where the C",
        "library is older than glibc 2.34. Nothing of CUDA is needed to compile or link.",
        "",
        *kernels_and_instances(sets, prefix),
        "",
        "There are, for each, and for each of the instances by its own name,",
        f"  {prefix}NAME_launch(stream, ...)  starts it on a stream, and returns at once",
        f"  {prefix}NAME_check(...)           checks the contract, and launches nothing",
        f"  {prefix}NAME_plan(..., &plan)     says what would be launched",
        *(_of_pipelines(pipelines, prefix) if pipelines else ()),
        "at the end of this file, under comments that say the contracts. Everything that contracts",
        "ask for is checked before anything is launched.",
        "",
        "All give a tilec_status, TILEC_SUCCESS or what is wrong; tilec_last_message() says it in",
        "words. A launch of no programs is a success. Tensors must stay alive and unchanged by",
        "others until the kernel is done. See docs/launchers.md of tilec.",
    ]
    if first.checked:
        lines += [
            "",
            "This is a checked build: what its checks find ends a launch with CUDA_ERROR_ASSERT,",
            "after which CUDA takes no more work from the process.",
        ]
    return ["/*", *(f" * {in_comment(line)}".rstrip() for line in lines), " */"]


def _of_pipelines(pipelines: Sequence[LaunchSet], prefix: str) -> Iterator[str]:
    yield ""
    yield from kernels_and_instances(pipelines, prefix, "Pipelines")
    yield ""
    yield "There are, for each, and for each of the instances by its own name, NAME_launch,"
    yield f"  {prefix}NAME_check(...)                       and"
    yield f"  {prefix}NAME_plan(..., plans, room, &count)   says what it would launch, a plan each"
    yield f"  {prefix}NAME_workspace(..., &bytes)         says what memory temporaries need"
    yield f"  {prefix}NAME_launch_with(stream, workspace, bytes, ...)  starts it in memory of yours"
    yield f"  {prefix}NAME_launch_on(streams, count, ...) on several streams; the first has it all"
    yield f"  {prefix}NAME_graph(&graph, ...)             a CUDA graph, for tilec_graph_launch"
    yield f"  {prefix}NAME_graph_update(graph, ...)       gives it other arguments"
    yield "  tilec_graph_destroy(graph)             gives it back"
    yield ""
    yield "Kernels and pipelines are"


def kernels_and_instances(
    sets: Sequence[LaunchSet], prefix: str, what: str = "Kernels"
) -> Iterator[str]:
    """What a file has, in the comment that it begins with: of a kernel without a function by its
    name, the instances."""
    by_name = {launched.name for launched in sets}
    yield f"{what}, with the number of their instances:"
    for launched in sets:
        kernel = launched.kernels[0]
        if launched.name == kernel.name or kernel.name not in by_name:
            given = ", ".join(parameter.name for parameter in kernel.parameters)
            yield f"  {prefix}{identifier(launched.name)}({given}), {len(launched.kernels)}"
