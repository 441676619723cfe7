"""A diagnostic as one line of JSON, its places as the Language Server Protocol counts them."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.diagnostics.diagnostic import Diagnostic
from tilec.printable import json_text
from tilec.source import SourceFile, Span

_Position = dict[str, int]


def to_json(diagnostic: Diagnostic, sources: Mapping[str, SourceFile]) -> str:
    """One JSON object without line breaks, in ASCII.

    Units:    `range` has zero-based lines and characters, which are UTF-16 code units (LSP 3.17,
              "Position"); a file that is not in `sources` is at 0:0
    """
    primary = diagnostic.span
    return json_text(
        {
            "code": diagnostic.code,
            "severity": diagnostic.severity.value,
            "message": diagnostic.message,
            "file": primary.file,
            "range": _range(primary, sources),
            "labels": [
                {
                    "file": label.span.file,
                    "range": _range(label.span, sources),
                    "text": label.text,
                }
                for label in diagnostic.labels
            ],
            "notes": list(diagnostic.notes),
            "help": diagnostic.help,
        }
    )


def _range(span: Span, sources: Mapping[str, SourceFile]) -> dict[str, _Position]:
    source = sources.get(span.file, SourceFile(span.file, ""))
    return {"start": _position(source, span.start), "end": _position(source, span.end)}


def _position(source: SourceFile, offset: int) -> _Position:
    line, column = source.position(min(offset, len(source.text)))
    before = source.line(line)[:column]
    return {"line": line, "character": sum(1 + (ord(c) > 0xFFFF) for c in before)}
