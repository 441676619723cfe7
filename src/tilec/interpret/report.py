"""What a sanitized launch did wrong, as diagnostics at the places of the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mlir import ir

from tilec.diagnostics.diagnostic import Diagnostic, Label, Severity
from tilec.interpret.sanitize import Finding, OutsideAccess, Race, UninitialisedRead
from tilec.ir.places import span_of
from tilec.source import SourceFile, Span


def diagnostics_of(
    findings: Iterable[Finding], sources: Mapping[str, SourceFile], sizes: str
) -> Iterator[Diagnostic]:
    """One diagnostic a finding.

    E0501, E0502 for races, E0602 for unchecked accesses outside, W0801 for reads of tensors that
    nobody gave a value. `sizes` says at which the launch was.
    """
    notes = (f"in a launch at {sizes}",) if sizes else ()
    for finding in findings:
        match finding:
            case Race():
                yield _race(finding, sources, notes)
            case OutsideAccess():
                yield _outside(finding, sources, notes)
            case UninitialisedRead():
                yield _uninitialised(finding, sources, notes)


def _race(race: Race, sources: Mapping[str, SourceFile], notes: tuple[str, ...]) -> Diagnostic:
    """E0501, E0502: the primary place is the read, or the later of two writes."""
    element = f"`{race.tensor}[{_numbers(race.element)}]`"
    one, other = (f"({_numbers(program)})" for program in race.programs)
    first, second = (_span(op, sources) for op in race.ops)
    if race.is_read:
        message = f"program {other} reads {element}, which program {one} writes"
        read = Label(second, f"program {other} reads it here")
        return Diagnostic(
            "E0502", message, (read, Label(first, f"program {one} writes it here")), notes
        )
    message = f"programs {one} and {other} both write {element}"
    if first == second:
        return Diagnostic("E0501", message, (Label(first, "both write it here"),), notes)
    later = Label(second, f"program {other} writes it here")
    return Diagnostic(
        "E0501", message, (later, Label(first, f"program {one} writes it here")), notes
    )


def _outside(
    found: OutsideAccess, sources: Mapping[str, SourceFile], notes: tuple[str, ...]
) -> Diagnostic:
    """E0602."""
    program = f"program ({_numbers(found.program)})"
    return Diagnostic(
        "E0602",
        f"{program} accesses what is outside of `{found.tensor}`, unchecked",
        (Label(_span(found.op, sources), "not all of it is inside"),),
        notes,
        help="the access without `_unchecked` leaves out what is outside",
    )


def _uninitialised(
    found: UninitialisedRead, sources: Mapping[str, SourceFile], notes: tuple[str, ...]
) -> Diagnostic:
    """W0801."""
    element = f"`{found.tensor}[{_numbers(found.element)}]`"
    return Diagnostic(
        "W0801",
        f"program ({_numbers(found.program)}) reads {element}, which has no value yet",
        (Label(_span(found.op, sources), "read here, before the launch wrote it"),),
        notes,
        help=f"if `{found.tensor}` is an input too, give it a value",
        severity=Severity.WARNING,
    )


def _numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _span(op: ir.OpView, sources: Mapping[str, SourceFile]) -> Span:
    span = span_of(op.location, dict(sources))
    assert span is not None, "every operation has its place in the source"
    return span
