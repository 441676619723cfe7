"""The comment over each kernel's functions: what callers promise, and what is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from tilec.artifact.expression import text_of
from tilec.artifact.manifest import Kernel, Manifest, Precondition, Variant
from tilec.emit.contract import parameter_rows, requirements
from tilec.emit.header.sets import LaunchSet
from tilec.emit.header.text import identifier, in_comment
from tilec.emit.overview import aligned, overview


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


_FUNCTIONS = (
    ("NAME_launch(stream, ...)", "checks the contract, starts it on a stream, returns at once"),
    ("NAME_check(...)", "checks the contract, and launches nothing"),
    ("NAME_plan(..., &plan)", "says what would be launched"),
)
_OF_PIPELINES = (
    ("NAME_launch(stream, ...)", "checks all contracts, starts all launches, returns at once"),
    ("NAME_check(...)", "checks all contracts, and launches nothing"),
    ("NAME_plan(..., plans, room, &count)", "says what each launch would be"),
    ("NAME_workspace(..., &bytes)", "says how much memory temporaries need"),
    ("NAME_launch_with(stream, workspace, bytes, ...)", "the same in memory of the caller's"),
    ("NAME_launch_on(streams, count, ...)", "on several streams, of which the first has it all"),
    ("NAME_graph(&graph, ...)", "makes a CUDA graph of it"),
    ("NAME_graph_update(graph, ...)", "gives that other arguments"),
    ("tilec_graph_launch(graph, stream)", "launches a graph"),
    ("tilec_graph_destroy(graph)", "gives it back"),
)


def file_comment(
    manifests: Sequence[Manifest],
    sets: Sequence[LaunchSet],
    pipelines: Sequence[LaunchSet],
    prefix: str,
    file: str,
) -> list[str]:
    """The comment that a header begins with; `file` begins the names of what is for all of it."""
    first = manifests[0]
    targets = ", ".join(manifest.target for manifest in manifests)
    lines = [
        f"Kernels of {first.source.file}, with their machine code for {targets}.",
        f"Made by tilec {first.toolchain.tilec}; changes are lost when it is made again.",
        "",
        "C99 or later, C++17 or later. Include it, call, link with -ldl -lpthread where the C",
        "library is older than glibc 2.34. Nothing of CUDA is needed to compile or link.",
        "",
        *overview("Kernels", sets, prefix, _FUNCTIONS),
        "",
    ]
    if pipelines:
        lines += [*overview("Pipelines", pipelines, prefix, _OF_PIPELINES), ""]
    loading = (
        (f"{file}_load(device)", "loads the machine code now, not by the first launch"),
        (f"{file}_unload()", "gives it back"),
    )
    in_cxx = "tilec::NAME(stream, ...)"
    if pipelines:
        in_cxx += ", and of pipelines NAME_workspace, NAME_with, NAME_on, NAME_graph"
    lines += [
        "For the file:",
        *aligned(loading),
        "",
        f"In C++ also {in_cxx.replace('NAME', f'{prefix}NAME')},",
        "overloaded by types.",
        "",
        "All of that is at the end of this file, under comments that say the contracts.",
        "Tensors are made by tilec_vector, tilec_matrix, tilec_packed and tilec_strided. All",
        "functions give a tilec_status, TILEC_SUCCESS or what is wrong, which",
        "tilec_last_message() says in words. A launch of no programs is a success. Tensors must",
        "stay alive and unchanged by others until the kernel is done. See docs/launchers.md of",
        "tilec.",
    ]
    if first.checked:
        lines += [
            "",
            "This is a checked build: what its checks find ends a launch with CUDA_ERROR_ASSERT,",
            "after which CUDA takes no more work from the process.",
        ]
    return ["/*", *(f" * {in_comment(line)}".rstrip() for line in lines), " */"]
