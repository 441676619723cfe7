"""The functions of a pipeline in Rust."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.manifest import Manifest
from tilec.emit.comments import pipeline_lines
from tilec.emit.rust.functions import (
    Function,
    documented,
    function_lines_of,
    in_flight,
    plain,
    read,
)
from tilec.emit.rust.signature import Argument, Signature
from tilec.emit.rust.text import in_comment
from tilec.emit.sets import LaunchSet

# What follows a pipeline's name in the names of its functions.
SUFFIXES = (
    "", "_launch", "_check", "_plan", "_workspace", "_with", "_launch_with", "_on",
    "_launch_on", "_graph", "_graph_update",
)  # fmt: skip


def pipeline_documentation(launched: LaunchSet, manifest: Manifest, prefix: str) -> list[str]:
    """What callers promise, and what is launched, as text that no tool reads as markup."""
    lines = [in_comment(line) for line in pipeline_lines(launched, manifest, prefix)]
    return ["```text", *(line.replace("```", "'''") for line in lines), "```"]


def pipeline_function_lines(
    name: str, signature: Signature, target: str, documentation: Sequence[str]
) -> Iterator[str]:
    """All functions of a pipeline for a `Pipelines`."""
    for text, function in _functions(name, target):
        yield from documented(text)
        if function.name == name:
            yield from documented("", *documentation)
        yield from function_lines_of(function, signature, name)


def _functions(name: str, target: str) -> Iterator[tuple[str, Function]]:
    stream, scope = "stream: &Stream", "scope: &Scope<'scope, '_>"
    memory = "workspace: &mut TensorMut<'_, u8>"
    lent = "workspace: &mut InFlightMut<'scope, u8>"
    yield (
        "Runs it on the stream and returns when it is done.",
        Function(name, "run_and_wait", f"{target}, stream, None", plain, (stream,)),
    )
    yield (
        f"Starts `{name}` in a scope, and returns at once.",
        Function(
            f"{name}_launch", "run_in", f"{target}, scope, None", in_flight, (scope,), "'scope"
        ),
    )
    yield (
        f"Checks the contract of `{name}` and of all that it launches, and launches nothing.",
        Function(f"{name}_check", "check_run", target, read),
    )
    yield (
        f"Says what `{name}` would launch.",
        Function(f"{name}_plan", "plan_of_run", target, read, result="PipelinePlan"),
    )
    yield (
        f"How many bytes of workspace `{name}` needs.",
        Function(f"{name}_workspace", "workspace_of", target, read, result="usize"),
    )
    yield (
        f"Runs `{name}` with a workspace of the caller's: one axis, at a multiple of 256 bytes.",
        Function(
            f"{name}_with", "run_and_wait", f"{target}, stream, Some(&workspace.raw)", plain,
            (stream, memory),
        ),
    )  # fmt: skip
    yield (
        f"Starts `{name}` in a scope with a workspace of the caller's, and returns at once.",
        Function(
            f"{name}_launch_with", "run_in", f"{target}, scope, Some(&workspace.raw)", in_flight,
            (scope, lent), "'scope",
        ),
    )  # fmt: skip
    yield (
        f"Runs `{name}` on several streams, what has no order side by side; waits for all of it.",
        Function(
            f"{name}_on", "run_on_streams", f"{target}, streams", plain, ("streams: &[&Stream]",)
        ),
    )
    yield (
        f"Starts `{name}` on the stream of a scope and on others; what the scope starts later "
        "comes after all of it.",
        Function(
            f"{name}_launch_on", "run_in_lanes", f"{target}, scope, streams", in_flight,
            (scope, "streams: &[&Stream]"), "'scope",
        ),
    )  # fmt: skip
    yield (
        f"`{name}` as a CUDA graph, which keeps its tensors borrowed.",
        Function(f"{name}_graph", "Graph::new", target, owned, (), "'a", "Graph<'a>"),
    )
    yield (
        "Gives a graph of it other arguments; those that are `None` stay as they are.",
        Function(
            f"{name}_graph_update", "graph.change", target, changed, ("graph: &mut Graph<'a>",),
            "'a", passing=_kept,
        ),
    )  # fmt: skip


def owned(argument: Argument) -> str:
    """The type of an argument that a graph keeps."""
    if not argument.parameter.is_tensor:
        return argument.rust_type
    kind = "TensorMut" if argument.parameter.is_written else "Tensor"
    return f"{kind}<'a, {argument.rust_type}>"


def changed(argument: Argument) -> str:
    return f"Option<{owned(argument)}>"


def _kept(argument: Argument) -> str:
    given = argument.passing_of("given")
    return f"{argument.name}.map(|given| tilec::Kept::of(&tilec::{given}))"
