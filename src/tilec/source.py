"""Source text and places in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True, order=True)
class Span:
    """A half-open range of characters of one file.

    Units:    `start` and `end` are offsets in characters (code points), not bytes
    """

    file: str
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both; both lie in one file."""
        return Span(self.file, min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class SourceFile:
    """One `.tile` file: the name users know it by, and its text."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offset of the first character of each line."""
        return (0, *(i + 1 for i, c in enumerate(self.text) if c == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """Zero-based (line, column in characters) of an offset."""
        line = bisect_right(self.line_starts, offset) - 1
        return line, offset - self.line_starts[line]

    def offset(self, line: int, column: int) -> int:
        """The offset of a zero-based (line, column); the inverse of `position`."""
        return self.line_starts[line] + column

    def line(self, number: int) -> str:
        """The text of a zero-based line, without its line break."""
        start = self.line_starts[number]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)]
