"""Where things of the IR stand in the source, for labels."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mlir import ir

from tilec.ir.places import span_of
from tilec.source import SourceFile, Span

Sources = Mapping[str, SourceFile]
UNNAMED = "this"  # what a view is called that has no name
_WORD = re.compile(r"[^\W\d]\w*")


def place_of(op: ir.OpView, sources: Sources) -> Span:
    """The span of an operation, which every emitted one has."""
    span = span_of(op.location, dict(sources))
    assert span is not None, f"{op.operation.name} has no place in the source"
    return span


def place_of_value(value: ir.Value, sources: Sources) -> Span | None:
    """The span where a value is made; None for an argument without one."""
    if isinstance(value.owner, ir.Block):
        return span_of(value.location, dict(sources))
    return place_of(value.owner, sources)


def name_of(value: ir.Value, sources: Sources) -> str:
    """The name that a view has where it is made, in backticks; else `UNNAMED`."""
    location = value.location
    if location.is_a_name():
        return f"`{location.name_str}`"
    span = place_of_value(value, sources)
    if span is None:
        return UNNAMED
    text = sources[span.file].text[span.start : span.end].removeprefix("&mut ").removeprefix("&")
    return f"`{text}`" if _WORD.fullmatch(text) else UNNAMED
