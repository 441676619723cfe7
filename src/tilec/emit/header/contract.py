"""The comment over each kernel's functions: what callers promise, and what is launched."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.artifact.manifest import Manifest
from tilec.emit.comments import contract_lines
from tilec.emit.header.text import in_comment
from tilec.emit.overview import aligned, overview
from tilec.emit.sets import LaunchSet


def contract_comment(launched: LaunchSet, manifest: Manifest, prefix: str) -> list[str]:
    """A comment on a launch function."""
    lines = contract_lines(launched, manifest, prefix)
    return ["/*", *(f" * {in_comment(line)}".rstrip() for line in lines), " */"]


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
