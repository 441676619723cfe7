"""Comments: blanked out before the grammar sees the text, doc comments kept aside.

Rust's block comments nest, which no terminal of a grammar can say. Blanking keeps every offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilec.diagnostics import Diagnostic, Label
from tilec.source import SourceFile, Span

# Strings and characters stand here only so that what looks like a comment inside them is none.
_PIECE = re.compile(
    r"""
      b?r(?P<hashes>\#+)"[\s\S]*?"(?P=hashes)
    | b?r"[^"]*"
    | "(?:\\[\s\S]|[^"\\])*"
    | '(?:\\(?:u\{[^}'\n]*\}|x\w\w|[^ux\n])|[^\\'\n])'
    | (?P<line>//[^\n]*)
    | (?P<block>/\*)
    """,
    re.VERBOSE,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_NOT_A_LINE_BREAK = re.compile(r"[^\n]")


@dataclass(frozen=True)
class DocComment:
    """The text of a `///` or `/** */` comment, or of a `//!` or `/*! */` one (`inner`)."""

    span: Span
    text: str
    inner: bool


@dataclass(frozen=True)
class Uncommented:
    """A text whose comments are spaces; offsets and lines are those of the source."""

    text: str
    docs: tuple[DocComment, ...]
    diagnostics: tuple[Diagnostic, ...]


def uncommented(source: SourceFile) -> Uncommented:
    """The source without its comments.

    Raises:   nothing; a block comment without end is a diagnostic (E0101)
    """
    # A byte order mark is no character of the program.
    text = " " + source.text[1:] if source.text.startswith("\ufeff") else source.text
    spans = tuple(_comment_spans(source))
    pieces = []
    position = 0
    for span in spans:
        pieces.append(text[position : span.start])
        pieces.append(_NOT_A_LINE_BREAK.sub(" ", text[span.start : span.end]))
        position = span.end
    pieces.append(text[position:])
    docs = (_doc_comment(text, span) for span in spans)
    return Uncommented(
        "".join(pieces),
        tuple(doc for doc in docs if doc is not None),
        tuple(_unterminated(span) for span in spans if not _is_terminated(text, span)),
    )


def _comment_spans(source: SourceFile) -> Iterator[Span]:
    text = source.text
    position = 0
    while (match := _PIECE.search(text, position)) is not None:
        position = match.end()
        if match["block"]:
            position = _end_of_block(text, match.start())
        if match["block"] or match["line"]:
            yield Span(source.name, match.start(), position)


def _end_of_block(text: str, start: int) -> int:
    depth = 0
    for edge in _BLOCK_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _is_terminated(text: str, span: Span) -> bool:
    comment = text[span.start : span.end]
    return comment.startswith("//") or _end_of_block(comment + " ", 0) <= len(comment)


def _unterminated(span: Span) -> Diagnostic:
    opening = Span(span.file, span.start, span.start + 2)
    return Diagnostic(
        "E0101",
        "expected `*/`, got the end of the file",
        (Label(opening, "this comment has no end"),),
        help="block comments nest: each `/*` inside needs its own `*/`",
    )


def _doc_comment(text: str, span: Span) -> DocComment | None:
    comment = text[span.start : span.end]
    if comment.startswith("//!") or (comment.startswith("///") and comment[3:4] != "/"):
        return DocComment(span, comment[3:].removeprefix(" ").rstrip(), comment[2] == "!")
    if comment.startswith("/*!") or (comment.startswith("/**") and comment[3:4] not in "*/"):
        return DocComment(span, comment[3:].removesuffix("*/").strip(), comment[2] == "!")
    return None
