"""What a sanitized pipeline did wrong, as diagnostics at the kernels' places and the launches'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath

from mlir import ir

from tilec.artifact.pipeline import PipelineLaunch
from tilec.diagnostics.diagnostic import Diagnostic, Label, Severity
from tilec.interpret.pipeline import Ready
from tilec.interpret.pipeline_watch import InLaunch, NoOrder, NoValue, PipelineFinding
from tilec.interpret.report import diagnostics_of
from tilec.ir.places import span_of
from tilec.source import SourceFile, Span


def pipeline_diagnostics(
    findings: Iterable[PipelineFinding], ready: Ready, sources: Mapping[str, SourceFile]
) -> Iterator[Diagnostic]:
    """One diagnostic a finding, those of a loop's launches at one place once.

    As `diagnostics_of` for what a launch does wrong by itself; E0801 for a read of a temporary that
    no launch wrote, W0801 for one of an output, E0501 and E0502 for launches that have no order.
    """
    told = _Telling(ready, sources)
    seen: set[tuple[str, tuple[Span, ...]]] = set()
    for finding in findings:
        for diagnostic in told.diagnostics(finding):
            key = diagnostic.code, tuple(label.span for label in diagnostic.labels)
            if key not in seen:
                seen.add(key)
                yield diagnostic


class _Telling:
    def __init__(self, ready: Ready, sources: Mapping[str, SourceFile]) -> None:
        self._ready, self._sources = ready, sources
        self._name = ready.pipeline.symbol
        sizes = ready.sizes
        self._notes = (f"in `{self._name}` at {sizes}",) if sizes else ()

    def diagnostics(self, finding: PipelineFinding) -> Iterator[Diagnostic]:
        match finding:
            case InLaunch():
                launch = self._ready.launches[finding.launch]
                for one in diagnostics_of([finding.found], self._sources, launch.sizes):
                    labels = (*one.labels, *self._launched(finding.launch))
                    yield replace(one, labels=labels, notes=(*one.notes, *self._notes))
            case NoValue():
                yield self._no_value(finding)
            case NoOrder():
                yield self._no_order(finding)

    def _no_value(self, found: NoValue) -> Diagnostic:
        element = _element(found.tensor, found.element)
        why = "which has no value yet"
        if found.taken_by is not None:
            why = f"whose place `{found.taken_by}` has taken"
        program = ", ".join(map(str, found.program))
        message = f"launch {found.launch} of `{self._name}` reads {element}, {why}"
        read = Label(self._span(found.op), f"program ({program}) reads it here")
        labels = (read, *self._launched(found.launch))
        if found.tensor in self._ready.temporaries:
            return Diagnostic("E0801", message, labels, self._notes)
        return Diagnostic("W0801", message, labels, self._notes, severity=Severity.WARNING)

    def _no_order(self, found: NoOrder) -> Diagnostic:
        """The primary place is the read, or the later of two writes."""
        first, second = found.launches
        element = _element(found.tensors[0], found.element)
        pairs = [(first, found.ops[0], "writes"), (second, found.ops[1], "writes")]
        if found.is_read:
            pairs[1] = second, found.ops[1], "reads"
            message = f"launch {second} of `{self._name}` reads {element}, which launch {first}"
            message += " writes, and no order is between them"
        else:
            one, other = sorted(found.launches)
            message = f"launches {one} and {other} of `{self._name}` both write {element}, "
            message += "and no order is between them"
        if found.is_read or first < second:
            pairs.reverse()
        labels = [Label(self._span(op), f"launch {n} {does} it here") for n, op, does in pairs]
        labels += self._launched(*found.launches)
        notes = self._notes
        if found.tensors[0] != found.tensors[1]:
            notes = (f"`{found.tensors[0]}` and `{found.tensors[1]}` lie at one place", *notes)
        code = "E0502" if found.is_read else "E0501"
        return Diagnostic(code, message, tuple(dict.fromkeys(labels)), notes)

    def _launched(self, *numbers: int) -> Iterator[Label]:
        """The lines that launch, where they are in a source that is known."""
        for number in sorted(numbers):
            span = line_of(self._ready.launches[number].told, self._sources)
            if span is not None:
                yield Label(span, f"launch {number}")

    def _span(self, op: ir.OpView) -> Span:
        span = span_of(op.location, dict(self._sources))
        assert span is not None, "every operation has its place in the source"
        return span


def line_of(launch: PipelineLaunch, sources: Mapping[str, SourceFile]) -> Span | None:
    """The line of a launch, without the space around it."""
    for source in sources.values():
        if PurePath(source.name).name == PurePath(launch.file).name:
            if launch.line > len(source.line_starts):
                return None
            text = source.line(launch.line - 1)
            start = source.offset(launch.line - 1, len(text) - len(text.lstrip()))
            return Span(source.name, start, start + len(text.strip()))
    return None


def _element(tensor: str, index: tuple[int, ...]) -> str:
    return f"`{tensor}[{', '.join(map(str, index))}]`"
