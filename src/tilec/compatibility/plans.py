"""Two plans of one pipeline: what its launches ask of callers, and what launchers do otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilec.artifact.expression import Expression, text_of
from tilec.artifact.manifest import Kernel
from tilec.artifact.pipeline import Pipeline, PipelineLaunch
from tilec.compatibility.change import Found
from tilec.compatibility.contract import contract_changes, has_same_types, old_terms
from tilec.compatibility.demands import Conditions, Demand, demands_of, extents_from_0
from tilec.compatibility.implied import implied, renamed


def pipeline_changes(
    old: Pipeline,
    new: Pipeline,
    old_kernels: Mapping[str, Kernel],
    new_kernels: Mapping[str, Kernel],
) -> Found:
    """What is different for callers; the kernels are by their symbols."""
    demands = demands_of(old, old_kernels)
    certain = [*map(_certain, demands), [condition for _, condition in extents_from_0(old)]]
    asked = [condition for conditions in certain for condition in conditions]
    # Two extents of a launch may be one here. Of floats this would be wrong.
    asked += [("eq", dim, dim) for dim in old.dims]
    yield from contract_changes(old, new, asked)
    if has_same_types(old, new):
        known = [*(one.expression for one in old.requires), *asked]
        terms = old_terms(old, new)
        yield from _stricter_launches(demands, demands_of(new, new_kernels), known, terms)
        yield from _stricter_temporaries(new, known, terms)
    yield from _changes_of_launches(old, new)


# ---- what is asked for ---------------------------------------------------------------------------


def _certain(demand: Demand) -> Conditions:
    """What a launch asks for, whichever instance it is of."""
    first, *others = demand.alternatives
    return tuple(one for one in first if all(one in other for other in others))


def _stricter_launches(
    old: Sequence[Demand],
    new: Sequence[Demand],
    known: Sequence[Expression],
    terms: Mapping[str, Expression],
) -> Found:
    for demand in new:
        in_old_terms = replace(
            demand,
            alternatives=tuple(
                tuple(renamed(one, terms) for one in conditions)
                for conditions in demand.alternatives
            ),
        )
        if any(_follows(in_old_terms, one, known) for one in (Demand(0, "", ((),)), *old)):
            continue
        pairs = zip(demand.alternatives[0], in_old_terms.alternatives[0], strict=True)
        missing = [text_of(one) for one, condition in pairs if not implied(condition, known)]
        told = " and ".join(f"`{text}`" for text in dict.fromkeys(missing))
        yield "breaking", f"launch {demand.launch} of `{demand.kernel}` requires {told}"


def _follows(demand: Demand, fact: Demand, known: Sequence[Expression]) -> bool:
    """Whether some instance may be launched, whichever could be by what was asked for before."""
    return all(
        any(
            all(implied(one, [*known, *had]) for one in conditions)
            for conditions in demand.alternatives
        )
        for had in fact.alternatives
    )


def _stricter_temporaries(
    new: Pipeline, known: Sequence[Expression], terms: Mapping[str, Expression]
) -> Found:
    for name, condition in extents_from_0(new):
        if not implied(renamed(condition, terms), known):
            yield "breaking", f"the temporary `{name}` requires `{text_of(condition)}`"


# ---- what is done --------------------------------------------------------------------------------


def _changes_of_launches(old: Pipeline, new: Pipeline) -> Found:
    if old.temporaries != new.temporaries:
        yield "recompile", "has other temporaries: a workspace that is kept may be too small"
    if len(old.launches) != len(new.launches):
        yield "recompile", f"has {len(new.launches)} launches, was {len(old.launches)}"
        return
    for number, (before, after) in enumerate(zip(old.launches, new.launches, strict=True)):
        told = list(_differences(before, after))
        if told:
            yield "recompile", f"launch {number} {', '.join(told)}"


def _differences(old: PipelineLaunch, new: PipelineLaunch) -> Iterator[str]:
    """What whoever runs a launch does otherwise, wherever it stands in the source."""
    if old.kernel != new.kernel:
        yield f"is of `{new.kernel}`, was `{old.kernel}`"
    elif old.instances != new.instances:
        yield f"is of {', '.join(f'`{symbol}`' for symbol in new.instances)}"
    if old.arguments != new.arguments:
        yield "is given other arguments"
    if old.after != new.after:
        yield f"comes after {list(new.after) or 'none'}, was {list(old.after) or 'none'}"
