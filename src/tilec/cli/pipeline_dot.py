"""A pipeline as a graph, in the language of Graphviz: launches, and the tensors between them.

Solid edges carry a tensor from the launch that wrote it to one that reads it; dashed ones are order
alone: who must be done with a tensor before it is written again, or with memory that another
temporary takes. The note lists what shares the workspace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilec.artifact.expression import text_of
from tilec.artifact.flow import Flow, flows_of
from tilec.artifact.manifest import Manifest
from tilec.artifact.pipeline import Pipeline, PipelineLaunch
from tilec.cli.pipeline_details import bytes_of, longest, slots_of
from tilec.cli.signature_texts import tensor_of, type_of

_SHOWN = 3  # instances of a launch, and no more if there are many


def dot_of(pipeline: Pipeline, manifest: Manifest, times_us: Mapping[int, float]) -> str:
    """The text of the graph; launches that have a time show it.

    Assumes:  the manifest has no fault
    """
    return "\n".join([f"digraph {_quoted(pipeline.symbol)} {{", *_lines(pipeline, manifest,
                     times_us), "}"])  # fmt: skip


def _lines(pipeline: Pipeline, manifest: Manifest, times_us: Mapping[int, float]) -> Iterator[str]:
    kernels = {kernel.symbol: kernel for kernel in manifest.kernels}
    flows = flows_of(pipeline, kernels)
    title = _title(pipeline, manifest.source.file, times_us)
    yield f"  graph [label={_quoted(*title)}, labelloc=t, fontname=monospace];"
    yield "  node [shape=box, fontname=monospace];"
    yield "  edge [fontname=monospace, fontsize=10];"
    yield from _callers(pipeline, flows)
    for number, launch in enumerate(pipeline.launches):
        yield f"  launch{number} [{_launch(number, launch, times_us)}];"
    for flow in flows:
        yield f"  {_node(flow, flow.source, 'given')} -> {_node(flow, flow.target, 'left')} " + (
            f"[label={_quoted(*_carried(flow, pipeline))}];"
        )
    carried = {(flow.source, flow.target) for flow in flows}
    for number, launch in enumerate(pipeline.launches):
        for before in launch.after:
            if (before, number) not in carried:
                yield f"  launch{before} -> launch{number} [style=dashed];"
    if pipeline.temporaries:
        yield f"  workspace [shape=note, label={_quoted(*_sharing(pipeline), left=True)}];"


def _title(pipeline: Pipeline, file: str, times_us: Mapping[int, float]) -> list[str]:
    lines = [f"{pipeline.symbol} ({file}:{pipeline.line})"]
    if times_us:
        own = [times_us.get(number, 0.0) for number in range(len(pipeline.launches))]
        row = longest(pipeline.launches, own)
        lines.append(f"{sum(own):.4g} µs in all, {row:.4g} µs one after another")
    return lines


def _callers(pipeline: Pipeline, flows: list[Flow]) -> Iterator[str]:
    """What the caller gives and gets; a tensor that is read and written is there twice."""
    for word, there in (
        ("given", {f.tensor for f in flows if f.source is None}),
        ("left", {f.tensor for f in flows if f.target is None}),
    ):
        for parameter in pipeline.parameters:
            if parameter.name in there:
                label = _quoted(parameter.name, type_of(parameter))
                yield f"  {_quoted(f'{word} {parameter.name}')} [shape=ellipse, label={label}];"


def _launch(number: int, launch: PipelineLaunch, times_us: Mapping[int, float]) -> str:
    symbols = [symbol for symbol in launch.instances if symbol != launch.kernel]
    if len(symbols) > _SHOWN + 1:
        symbols[_SHOWN:] = [f"and {len(symbols) - _SHOWN} more"]
    lines = [f"{number}: {launch.kernel}", f"{launch.file}:{launch.line}", *symbols]
    if number not in times_us:
        return f"label={_quoted(*lines)}"
    most = max(times_us.values())
    share = times_us[number] / most if most > 0 else 0.0
    # Redder is longer: hue, saturation, value.
    colour = f"0.05 {0.6 * share:.3f} 1.000"
    lines.append(f"{times_us[number]:.4g} µs")
    return f"label={_quoted(*lines)}, style=filled, fillcolor={_quoted(colour)}"


def _node(flow: Flow, launch: int | None, word: str) -> str:
    return _quoted(f"{word} {flow.tensor}") if launch is None else f"launch{launch}"


def _carried(flow: Flow, pipeline: Pipeline) -> list[str]:
    """The tensor on an edge; of a parameter, the node at its end says the type."""
    for temporary in pipeline.temporaries:
        if temporary.name == flow.tensor:
            whole = tensor_of(temporary.element, temporary.extents)
            return [temporary.name, whole, f"slot {temporary.slot}"]
    [parameter] = [p for p in pipeline.parameters if p.name == flow.tensor]
    if flow.source is None or flow.target is None:
        return [parameter.name]
    return [parameter.name, tensor_of(parameter.element, parameter.extents)]


def _sharing(pipeline: Pipeline) -> Iterator[str]:
    yield "workspace"
    for slot, temporaries in slots_of(pipeline).items():
        told = (f"{t.name} ({text_of(bytes_of(t))} bytes)" for t in temporaries)
        yield f"slot {slot}: {', then '.join(told)}"


def _quoted(*lines: str, left: bool = False) -> str:
    """A string of the language; lines are centred, or begin at the left.

    A backslash is doubled: outside of labels Graphviz keeps both, and names differ as before.
    """
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + ("".join(f"{x}\\l" for x in escaped) if left else "\\n".join(escaped)) + '"'
