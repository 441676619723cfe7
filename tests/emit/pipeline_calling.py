"""The pipelines of an emitted header, called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.emit.calling import CPlan, Functions, marshalled
from tilec.artifact.manifest import Manifest
from tilec.emit.header.signature import signature_of
from tilec.emit.sets import LaunchSet, pipeline_sets

LAUNCH, CHECK, WORKSPACE, LAUNCH_WITH, LAUNCH_ON, GRAPH, UPDATE, PLAN = range(8)
MOST_LAUNCHES = 32


class CExtra(ctypes.Structure):
    _fields_ = (
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_int64),
        ("streams", ctypes.POINTER(ctypes.c_void_p)),
        ("stream_count", ctypes.c_int32),
        ("graph", ctypes.c_void_p),
        ("plans", ctypes.POINTER(CPlan)),
        ("plan_room", ctypes.c_int32),
        ("plan_count", ctypes.c_int32),
    )


class Called(NamedTuple):
    """What a call gave: the bytes of a workspace, or a graph, where it gives one."""

    status: int
    message: str
    workspace_bytes: int
    graph: int | None
    plans: Sequence[CPlan] = ()


class PipelineFunctions(Functions):
    """As `Functions`, with those of pipelines."""

    def shim_of(self, manifest: Manifest) -> str:
        return super().shim_of(manifest) + _shim(pipeline_sets(manifest))

    def run(
        self,
        name: str,
        arguments: Sequence[object],
        what: int = LAUNCH,
        stream: int = 0x100,
        workspace: tuple[int, int] = (0, 0),
        streams: Sequence[int] | None = None,
        graph: int | None = None,
    ) -> Called:
        """Calls a function of a pipeline; None is a null pointer."""
        tensors, wholes, reals, _kept = marshalled(arguments)
        listed = None if streams is None else (ctypes.c_void_p * len(streams))(*streams)
        extra = CExtra(
            workspace[0] or None,
            workspace[1],
            listed,
            0 if streams is None else len(streams),
            graph,
            (CPlan * MOST_LAUNCHES)(),
            MOST_LAUNCHES,
        )
        status = getattr(self.library, f"pipe_{name}")(
            what, ctypes.c_void_p(stream), tensors, wholes, reals, ctypes.byref(extra)
        )
        plans = extra.plans[: min(extra.plan_count, MOST_LAUNCHES)]
        return Called(status, self._said(), extra.workspace_bytes, extra.graph, plans)

    def replay(self, graph: int | None, stream: int = 0x100) -> Called:
        status = self.library.pipe_replay(ctypes.c_void_p(graph), ctypes.c_void_p(stream))
        return Called(status, self._said(), 0, graph)

    def destroy(self, graph: int | None) -> None:
        self.library.pipe_destroy(ctypes.c_void_p(graph))

    def _said(self) -> str:
        message: str = self.library.shim_message().decode()
        return message


_HEAD = """
typedef struct {
    void *workspace;
    int64_t workspace_bytes;
    void **streams;
    int32_t count;
    tilec_graph *graph;
    tilec_plan *plans;
    int32_t plan_room, plan_count;
} extra;
int pipe_replay(tilec_graph *graph, void *stream);
int pipe_replay(tilec_graph *graph, void *stream)
{
    return tilec_graph_launch(graph, (tilec_stream)stream);
}
void pipe_destroy(tilec_graph *graph);
void pipe_destroy(tilec_graph *graph) { tilec_graph_destroy(graph); }
"""


def _shim(sets: Iterable[LaunchSet]) -> str:
    lines = [_HEAD]
    parameters = "int what, void *stream, const tilec_tensor **t, int64_t *w, double *r, extra *x"
    for one in sets:
        passed = []
        for i, argument in enumerate(signature_of(one) or []):
            source = "r" if argument.c_type in ("float", "double") else "w"
            is_tensor = argument.parameter.is_tensor
            passed.append(f"t[{i}]" if is_tensor else f"({argument.c_type}){source}[{i}]")
        given = ", ".join(passed)
        on = "(tilec_stream)stream"
        lines += [
            f"int pipe_{one.name}({parameters});",
            f"int pipe_{one.name}({parameters})",
            "{",
            "    (void)t, (void)w, (void)r;",
            "    switch (what) {",
            f"    case 0: return {one.name}_launch({on}, {given});",
            f"    case 1: return {one.name}_check({given});",
            f"    case 2: return {one.name}_workspace({given}, &x->workspace_bytes);",
            f"    case 3: return {one.name}_launch_with({on}, x->workspace, x->workspace_bytes, "
            f"{given});",
            f"    case 4: return {one.name}_launch_on((const tilec_stream *)x->streams, x->count, "
            f"{given});",
            f"    case 5: return {one.name}_graph(&x->graph, {given});",
            f"    case 6: return {one.name}_graph_update(x->graph, {given});",
            f"    default: return {one.name}_plan({given}, x->plans, x->plan_room, "
            "&x->plan_count);",
            "    }",
            "}",
        ]
    return "\n".join(lines) + "\n"
