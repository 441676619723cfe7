"""Spans as MLIR locations and back, so that no side table is needed."""

from __future__ import annotations

from mlir import ir

from tilec.source import SourceFile, Span


def location_of(span: Span, source: SourceFile) -> ir.Location:
    """The location of a span, one-based as in LLVM; needs a current context."""
    line, column = source.position(span.start)
    end_line, end_column = source.position(span.end)
    return ir.Location.file(source.name, line + 1, column + 1, end_line + 1, end_column + 1)


def span_of(location: ir.Location, sources: dict[str, SourceFile]) -> Span | None:
    """The span behind a location, or None if it is not of a known file.

    A fused location (two operations merged) is its first part; a call site is the callee's place.
    """
    if location.is_a_fused():
        spans = (span_of(part, sources) for part in location.locations)
        return next((span for span in spans if span), None)
    if location.is_a_callsite():
        return span_of(location.callee, sources)
    if location.is_a_name():
        return span_of(location.child_loc, sources)
    if not location.is_a_file() or location.filename not in sources:
        return None
    source = sources[location.filename]
    start = source.offset(location.start_line - 1, location.start_col - 1)
    end = source.offset(location.end_line - 1, location.end_col - 1)
    return Span(source.name, start, max(start, end))


def text_with_places(module: ir.Module) -> str:
    """A module in text form with the locations of all that is in it, to be read again."""
    return f"{module.operation.get_asm(enable_debug_info=True).rstrip()}\n"
