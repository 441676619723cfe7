"""The comment over each function: what callers promise, and what is launched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.manifest import Manifest
from tilec.emit.comments import contract_lines
from tilec.emit.overview import overview
from tilec.emit.rust.text import in_comment
from tilec.emit.sets import LaunchSet

_FUNCTIONS = (
    ("NAME(&stream, …)", "checks the contract, starts it, returns when it is done"),
    ("NAME_launch(&scope, …)", "the same in a scope of a stream, returns at once"),
    ("NAME_check(…)", "checks the contract, launches nothing"),
    ("NAME_plan(…)", "says what would be launched"),
)
_OF_PIPELINES = (
    ("NAME(&stream, …)", "checks all contracts, starts all launches, returns when they are done"),
    ("NAME_launch(&scope, …)", "the same in a scope of a stream, returns at once"),
    ("NAME_check(…)", "checks all contracts, launches nothing"),
    ("NAME_plan(…)", "says what each launch would be"),
    ("NAME_workspace(…)", "says how many bytes temporaries need"),
    ("NAME_with(&stream, &mut workspace, …)", "in memory of the caller's"),
    ("NAME_launch_with(&scope, &mut workspace, …)", ""),
    ("NAME_on(&[&stream, …], …)", "on several streams"),
    ("NAME_launch_on(&scope, &[&stream, …], …)", ""),
    ("NAME_graph(…)", "makes a CUDA graph of it, which is replayed"),
    ("NAME_graph_update(&mut graph, …)", "gives that other arguments"),
)


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
    lines = [*overview("Kernels", sets, prefix, _FUNCTIONS), ""]
    if pipelines:
        lines += [*overview("Pipelines", pipelines, prefix, _OF_PIPELINES), ""]
    for line in lines:
        yield f"// {in_comment(line)}".rstrip()
    yield "// `load(device)` loads the machine code now, not by the first launch."
    yield "//"
    yield "// All of that is at the end of this file, under comments that say the contracts."
    yield "// Tensors are made by `Tensor::new` and `TensorMut::new`, of a `DeviceBuffer` or other"
    yield "// memory. A launch of no programs is a success. See docs/launchers-rust.md of tilec."
    if first.checked:
        yield "//"
        yield "// This is a checked build: what its checks find ends a launch with"
        yield "// CUDA_ERROR_ASSERT, after which CUDA takes no more work from the process."
