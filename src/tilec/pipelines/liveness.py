"""Which launches somebody sees the results of: the others are dropped.

Backwards over the launches: what callers see is what is in the parameters at the end. A launch that
writes nothing that is read later, before it is overwritten in full, does nothing for anybody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.pipelines.effects import Effect
from tilec.pipelines.traced import Traced


def live_launches(pipeline: Traced, effects: Sequence[Mapping[str, Effect]]) -> list[int]:
    """The numbers of the launches that matter, in order."""
    wanted = {p.name for p in pipeline.parameters if p.own in ("mut", "atomic")}
    found: list[int] = []
    for number in reversed(range(len(effects))):
        of = effects[number].values()
        if not any(effect.writes and effect.tensor in wanted for effect in of):
            continue
        found.append(number)
        wanted -= {effect.tensor for effect in of if effect.fills}
        wanted |= {effect.tensor for effect in of if effect.reads}
    return found[::-1]


def check_used(
    pipeline: Traced, effects: Sequence[Mapping[str, Effect]], live: Sequence[int]
) -> Iterator[Diagnostic]:
    """Yields warnings: W0802 (an output never written), W0803 (a launch that is dropped), W0804."""
    written = {e.tensor for found in effects for e in found.values() if e.writes}
    for parameter, place in zip(pipeline.parameters, pipeline.places, strict=True):
        if parameter.own in ("mut", "atomic") and parameter.name not in written:
            yield _warning(
                "W0802",
                f"the output `{parameter.name}` is never written",
                Label(place, "declared here"),
                help="take it as `&Tensor<…>`, if it is only read",
            )
    used = {e.tensor for found in effects for e in found.values()}
    for temporary in pipeline.temporaries:
        if temporary.name not in used:
            yield _warning(
                "W0804",
                f"the temporary `{temporary.written}` is never used",
                Label(temporary.span, "no launch is given it"),
            )
    for number in sorted(set(range(len(effects))).difference(live)):
        launch = pipeline.launches[number]
        around = (Label(span, "in the pipeline that is called here") for span in launch.calls)
        yield _warning(
            "W0803",
            f"nobody reads what this launch of `{launch.kernel}` writes",
            Label(launch.span, "it is dropped"),
            *around,
        )


def _warning(code: str, message: str, *labels: Label, help: str | None = None) -> Diagnostic:
    return Diagnostic(code, message, labels, help=help, severity=Severity.WARNING)
