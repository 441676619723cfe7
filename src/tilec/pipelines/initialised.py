"""E0801: a temporary is written in full before it is read.

Launches are in the order that they are written in, and so are all that share a tensor and may not
change places: what is filled by a launch is filled for all that come after. A tensor that is
written in part counts as not written: which part, only a launch knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.diagnostics import Diagnostic, Label
from tilec.pipelines.effects import Effect, Summaries
from tilec.pipelines.traced import Traced, TracedLaunch, TracedTemporary


def check_initialised(
    pipeline: Traced, effects: Sequence[Mapping[str, Effect]], summaries: Summaries
) -> Iterator[Diagnostic]:
    """Yields E0801 for each temporary that may be read before it has a value."""
    open_ = {temporary.name: temporary for temporary in pipeline.temporaries}
    partly: dict[str, tuple[TracedLaunch, Effect]] = {}
    for launch, found in zip(pipeline.launches, effects, strict=True):
        for name, effect in found.items():
            if name not in open_:
                continue
            if effect.reads:
                yield _refused(launch, effect, open_.pop(name), partly.get(name), summaries)
            elif effect.fills:
                del open_[name]
            else:
                partly.setdefault(name, (launch, effect))


def _refused(
    launch: TracedLaunch,
    effect: Effect,
    temporary: TracedTemporary,
    partly: tuple[TracedLaunch, Effect] | None,
    summaries: Summaries,
) -> Diagnostic:
    labels = [
        Label(effect.given.span, _how(launch, effect)),
        Label(temporary.span, "declared here, without values"),
    ]
    notes: tuple[str, ...] = ()
    if partly is not None:
        writer, written = partly
        labels.append(Label(written.given.span, "written here"))
        parameter = written.given.argument.parameter
        told = [summaries.shortfall(symbol, parameter, writer) for symbol in writer.instances]
        why = next((one for one in told if one is not None), None)
        if why is not None:
            notes = (f"`{writer.kernel}` writes `{parameter}` {why}",)
    labels += [Label(span, "in the pipeline that is called here") for span in launch.calls]
    return Diagnostic(
        "E0801",
        f"the temporary `{temporary.written}` is read before it is written",
        tuple(labels),
        notes,
        help="launch a kernel before that writes all of it",
    )


def _how(launch: TracedLaunch, effect: Effect) -> str:
    if effect.given.own == "atomic":
        return f"updated by `{launch.kernel}`"
    if effect.writes:
        return f"`{launch.kernel}` reads it before it writes it"
    return f"read by `{launch.kernel}`"
