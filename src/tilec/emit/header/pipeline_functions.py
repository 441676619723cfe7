"""The functions of a pipeline in C, and the comment over them."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.artifact.manifest import Manifest
from tilec.emit.comments import pipeline_lines
from tilec.emit.header.signature import Argument, declared
from tilec.emit.header.text import filled, in_comment, returned
from tilec.emit.sets import LaunchSet


def pipeline_functions(name: str, arguments: list[Argument], pipelines: str) -> Iterator[str]:
    """The functions in C for a `tilec_pipelines`."""
    for suffix, before, after, call in (
        (
            "launch",
            ["tilec_stream stream"],
            [],
            f"tilec_pipeline_launch_with(&{pipelines}, stream, 0, NULL, 0, arguments)",
        ),
        ("check", [], [], f"tilec_pipeline_check(&{pipelines}, arguments)"),
        (
            "plan",
            [],
            ["tilec_plan *plans", "int32_t plan_room", "int32_t *plan_count"],
            f"tilec_pipeline_plan(&{pipelines}, arguments, plans, plan_room, plan_count)",
        ),
        (
            "workspace",
            [],
            ["int64_t *workspace_bytes"],
            f"tilec_pipeline_workspace(&{pipelines}, arguments, workspace_bytes)",
        ),
        (
            "launch_with",
            ["tilec_stream stream", "void *workspace", "int64_t workspace_bytes"],
            [],
            f"tilec_pipeline_launch_with(&{pipelines}, stream, 1, workspace, workspace_bytes, "
            "arguments)",
        ),
        (
            "launch_on",
            ["const tilec_stream *streams", "int32_t stream_count"],
            [],
            f"tilec_pipeline_launch_on(&{pipelines}, streams, stream_count, arguments)",
        ),
        (
            "graph",
            ["tilec_graph **graph"],
            [],
            f"tilec_pipeline_graph(&{pipelines}, graph, arguments)",
        ),
        (
            "graph_update",
            ["tilec_graph *graph"],
            [],
            f"tilec_pipeline_graph_update(&{pipelines}, graph, arguments)",
        ),
    ):
        passed = [argument.passing for argument in arguments] or ["tilec_of_tensor(NULL)"]
        parameters = [*before, *declared(arguments), *after] or ["void"]
        yield filled(f"TILEC_PUBLIC tilec_status {name}_{suffix}(", parameters, ")")
        yield "{"
        yield filled("    const tilec_argument arguments[] = {", passed, "};")
        yield returned(call, "tilec_done")
        yield "}"
        yield ""


def pipeline_comment(launched: LaunchSet, manifest: Manifest, prefix: str) -> list[str]:
    """A comment on the functions of a pipeline."""
    lines = pipeline_lines(launched, manifest, prefix)
    return ["/*", *(f" * {in_comment(line)}".rstrip() for line in lines), " */"]
