"""A pipeline as it is written → its plan, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from tilec.artifact.pipeline import Pipeline, PipelineLaunch, Temporary
from tilec.artifact.signature import Coverage
from tilec.diagnostics import Diagnostic
from tilec.pipelines.effects import Effect, Summaries, effects_of
from tilec.pipelines.initialised import check_initialised
from tilec.pipelines.liveness import check_used, live_launches
from tilec.pipelines.order import done_before, predecessors
from tilec.pipelines.slots import Lifetime, slots_of
from tilec.pipelines.traced import Traced, TracedTemporary


def plan(pipeline: Traced, summaries: Summaries) -> tuple[Pipeline | None, list[Diagnostic]]:
    """The plan (None where a temporary has no value), and what is wrong or odd.

    `summaries` are those of all instances that are launched.
    """
    effects = [effects_of(launch, summaries) for launch in pipeline.launches]
    found = list(check_initialised(pipeline, effects, summaries))
    if found:
        return None, found
    live = live_launches(pipeline, effects)
    warnings = list(check_used(pipeline, effects, live))
    kept = [effects[number] for number in live]
    after = predecessors([{t: e.writes for t, e in one.items()} for one in kept])
    return Pipeline(
        name=pipeline.name,
        symbol=pipeline.symbol,
        generics=pipeline.generics,
        documentation=pipeline.documentation,
        line=pipeline.line,
        parameters=pipeline.parameters,
        dims=pipeline.dims,
        requires=pipeline.requires,
        temporaries=tuple(_placed(pipeline.temporaries, kept, done_before(after))),
        launches=tuple(
            PipelineLaunch(
                kernel=launch.kernel,
                instances=launch.instances,
                arguments=tuple(given.argument for given in launch.given),
                after=comes_after,
                file=launch.file,
                line=launch.line,
            )
            for launch, comes_after in zip(
                (pipeline.launches[number] for number in live), after, strict=True
            )
        ),
        coverage=tuple(_coverage(pipeline, kept)),
    ), warnings


def followers(pipelines: Sequence[Pipeline]) -> set[str]:
    """The instances that some pipeline launches after another launch, and which may wait for it."""
    return {
        symbol
        for pipeline in pipelines
        for launch in pipeline.launches
        if launch.after
        for symbol in launch.instances
    }


def leaders(pipelines: Sequence[Pipeline], slow_to_begin: Set[str]) -> set[str]:
    """The instances that some pipeline launches right before one of those that are slow to begin.

    Right before is: on one stream, or where the other one comes after it.
    """
    return {
        symbol
        for pipeline in pipelines
        for number, launch in enumerate(pipeline.launches[1:], 1)
        if not slow_to_begin.isdisjoint(launch.instances)
        for before in {number - 1, *launch.after}
        for symbol in pipeline.launches[before].instances
    }


def _placed(
    temporaries: Sequence[TracedTemporary],
    effects: Sequence[Mapping[str, Effect]],
    before: Sequence[int],
) -> list[Temporary]:
    """Those that some launch uses, each with its slot."""
    used = []
    for one in temporaries:
        uses = tuple(n for n, found in enumerate(effects) if one.name in found)
        if uses:
            used.append((one.temporary, Lifetime(uses, one.size)))
    slots = slots_of([lifetime for _, lifetime in used], before)
    return [replace(one, slot=slot) for (one, _), slot in zip(used, slots, strict=True)]


def _coverage(pipeline: Traced, effects: Sequence[Mapping[str, Effect]]) -> list[Coverage]:
    """What becomes of the parameters that may be written."""
    found = []
    for parameter in pipeline.parameters:
        if parameter.own not in ("mut", "atomic"):
            continue
        filled = reads_first = False
        for one in effects:
            effect = one.get(parameter.name)
            if effect is not None:
                reads_first |= effect.reads and not filled
                filled |= effect.fills
        found.append(Coverage(parameter.name, filled, reads_first))
    return found
