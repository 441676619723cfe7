"""E0501, E0502: programs of one launch do not touch one element, one of them writing.

What races are, and how they are found, is in `tilec.proofs.races`; here they become messages.

    refused                                        accepted
    y.store::<256>([p % 8], t)                     y.store::<256>([p], t)
    y.store_at::<256>([128 * p], t)                y.store_at::<256>([256 * p], t)
    y.store::<256>([p], y.load_at([256 * p + 1]))  y.store::<256>([p], y.load::<256>([p]) + t)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlir import ir

from tilec.checks.places import Sources, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.ir.walk import functions
from tilec.proofs.access import Access
from tilec.proofs.arithmetic import UNDECIDED
from tilec.proofs.races import Race, find_races
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.suggestions import precondition_against
from tilec.proofs.witness import box_text, program_text
from tilec.source import Span

PASS = "tile-verify-races"
INLINED = True

_HELP = (
    "take it as a `Part<&mut Tensor<…>, …>`, let the index name every program, state what it takes "
    "in `requires!`, or vouch for it in `unsafe { … }`"
)

_TOO_COSTLY = (
    "not decided within the budget of the proofs: a simpler index, or more in `requires!`, takes "
    "fewer steps, and `--proof-budget` allows more"
)


def check_races(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0501 or E0502 for each access that may race, helpers inlined."""
    for function in functions(module):
        yield from races_of(Reasoning.of(function), sources)


def races_of(reasoning: Reasoning, sources: Sources) -> Iterator[Diagnostic]:
    """The findings for one kernel: one for each access at fault, the worst first met."""
    seen: set[Span] = set()
    is_answered = False
    for race in find_races(reasoning):
        found = _finding(race, sources)
        # Once a kernel: that executes it again and again. What cost too much would do so again.
        if race.beyond and not is_answered:
            is_answered = True
            found = replace(found, help=_way_out(race, reasoning))
        if found.span not in seen:
            seen.add(found.span)
            yield found


def _way_out(race: Race, reasoning: Reasoning) -> str:
    """What to require, if something is known to do; else all that there is."""
    required = precondition_against(race, reasoning)
    if required is None:
        return _HELP
    return f"add `requires!({required})`, with which they are proved apart"


def _finding(race: Race, sources: Sources) -> Diagnostic:
    fault, other = race.fault, race.other
    code = "E0501" if fault.writes else "E0502"
    if race.witness is None:
        return _undecided(race, code, fault, other, sources)
    first, second = (0, 1) if fault is race.first else (1, 0)
    labels = [
        _meeting_label(race, fault, first, sources),
        _meeting_label(race, other, second, sources),
    ]
    if fault is other:
        text = f"{labels[0].text}, and so does {_program(race, 1)}"
        labels = [Label(labels[0].span, text)]
    at = race.witness.arguments
    return Diagnostic(
        code,
        _message(race, fault),
        tuple(labels),
        notes=(f"at {at}",) if at else (),
        help=_HELP,
    )


def _message(race: Race, fault: Access) -> str:
    if fault.writes:
        return f"two programs may write the same element of `{race.tensor}`"
    return f"a program may read an element of `{race.tensor}` that another program writes"


def _meeting_label(race: Race, access: Access, number: int, sources: Sources) -> Label:
    assert race.witness is not None
    box = box_text(race.tensor, race.witness.boxes[number])
    text = f"{_program(race, number)} {_verb(access)} {box} here"
    return Label(place_of(access.op, sources), text)


def _program(race: Race, number: int) -> str:
    assert race.witness is not None
    return program_text(race.witness.programs[number])


def _verb(access: Access) -> str:
    return "writes" if access.writes else "reads"


def _undecided(race: Race, code: str, fault: Access, other: Access, sources: Sources) -> Diagnostic:
    labels = [Label(place_of(fault.op, sources), f"{_verb(fault)} `{race.tensor}`")]
    if other is not fault:
        labels.append(Label(place_of(other.op, sources), f"{_verb(other)} it"))
    labels += _beyond(race, sources, {label.span for label in labels})
    kind = "write" if fault.writes else "read what another writes in"
    return Diagnostic(
        code,
        f"it cannot be decided whether two programs {kind} the same element of `{race.tensor}`",
        tuple(labels),
        notes=(_TOO_COSTLY,) if _is_too_costly(race) else (),
        help=_HELP,
    )


def _is_too_costly(race: Race) -> bool:
    return race.is_given_up or any(u.name == UNDECIDED for u in race.beyond)


def _beyond(race: Race, sources: Sources, said: set[Span]) -> Sequence[Label]:
    """What of the program is beyond the analysis: each place once."""
    found: dict[Span, Label] = {}
    for unknown in race.beyond:
        if not isinstance(unknown.about, ir.OpView):
            continue
        span = place_of(unknown.about, sources)
        if span not in said:
            found.setdefault(span, Label(span, f"this {unknown.name}"))
    return list(found.values())
