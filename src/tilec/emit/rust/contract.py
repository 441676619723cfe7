"""The comment over each function: what callers promise, and what is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.manifest import Manifest
from tilec.emit.header.contract import contract_lines, kernels_and_instances
from tilec.emit.header.sets import LaunchSet
from tilec.emit.rust.text import in_comment


def documentation_of(launched: LaunchSet, manifest: Manifest, prefix: str) -> list[str]:
    """The contract of a function, as text that no tool reads as markup."""
    lines = [in_comment(line) for line in contract_lines(launched, manifest, prefix)]
    return ["```text", *(line.replace("```", "'''") for line in lines), "```"]


def file_comment(
    manifests: Sequence[Manifest],
    sets: Sequence[LaunchSet],
    pipelines: Sequence[LaunchSet],
    prefix: str,
) -> Iterator[str]:
    """The comment that a file begins with."""
    first = manifests[0]
    targets = ", ".join(manifest.target for manifest in manifests)
    yield f"// Kernels of {in_comment(first.source.file)}, with their machine code for {targets}."
    yield f"// Made by tilec {first.toolchain.tilec}; changes are lost when it is made again."
    yield "//"
    yield "// Rust 1.82 or later, edition 2021 or 2024, nothing but the standard library. Make it a"
    yield '// module (`#[path = "…"] mod name;`) and call it; the first launch opens the driver.'
    yield "//"
    for line in kernels_and_instances(sets, prefix):
        yield f"// {in_comment(line)}"
    yield "//"
    yield "// There are, for each, and for each of the instances by its own name,"
    yield f"//   {prefix}NAME(&stream, …)        starts it on a stream, returns when it is done"
    yield f"//   {prefix}NAME_launch(&scope, …)  starts it in a scope of a stream, returns at once"
    yield f"//   {prefix}NAME_check(…)           checks the contract, launches nothing"
    yield f"//   {prefix}NAME_plan(…)            says what would be launched"
    if pipelines:
        yield from _of_pipelines(pipelines, prefix)
    yield "// at the end of this file, under comments that say the contracts. Everything that they"
    yield "// ask for is checked before anything is launched; a launch of no programs is a success."
    yield "// See docs/launchers-rust.md of tilec."
    if first.checked:
        yield "//"
        yield "// This is a checked build: what its checks find ends a launch with"
        yield "// CUDA_ERROR_ASSERT, after which CUDA takes no more work from the process."


def _of_pipelines(pipelines: Sequence[LaunchSet], prefix: str) -> Iterator[str]:
    yield "//"
    for line in kernels_and_instances(pipelines, prefix, "Pipelines"):
        yield f"// {in_comment(line)}"
    yield "//"
    yield "// There are, for each, and for each of the instances by its own name, NAME,"
    yield f"//   {prefix}NAME_launch(&scope, …), {prefix}NAME_check(…), and"
    yield f"//   {prefix}NAME_workspace(…)       says what memory temporaries need"
    yield f"//   {prefix}NAME_with(&stream, &mut workspace, …)  runs it in memory of yours"
    yield f"//   {prefix}NAME_launch_with(&scope, &mut workspace, …)"
    yield f"//   {prefix}NAME_on(&[&stream, …], …)  on several streams"
    yield f"//   {prefix}NAME_launch_on(&scope, &[&stream, …], …)"
    yield f"//   {prefix}NAME_graph(…)           a CUDA graph, which is replayed and updated"
    yield f"//   {prefix}NAME_graph_update(&mut graph, …)"
    yield "//"
    yield "// Kernels and pipelines are"
