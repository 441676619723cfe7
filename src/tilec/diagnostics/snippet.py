"""A source line as a terminal shows it, and the lines under it that mark and explain its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import get_character_cell_size

from tilec.printable import printable

_TAB = "    "
# Longer lines are cut around what is marked: generated programs can have lines of megabytes.
_WIDEST_LINE = 160
_CONTEXT = 40
_ELLIPSIS = "..."


@dataclass(frozen=True)
class Mark:
    """A marked part of a line.

    Units:    `start` and `end` count characters of the line, or columns of the terminal once
              `shown_line` has placed them
    """

    start: int
    end: int
    is_primary: bool
    text: str


@dataclass(frozen=True)
class ShownLine:
    """A line without tabs and control characters, and its marks in columns of the terminal."""

    text: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Row:
    """A line of text under a source line; `is_primary` if it belongs to the primary label."""

    text: str
    is_primary: bool


def shown_line(line: str, marks: Sequence[Mark]) -> ShownLine:
    """The line and its marks as they appear; each mark is one column wide at least."""
    line = line.rstrip("\r")
    first, last = _window(len(line), marks)
    cells = [_shown_character(c) for c in line[first:last]]
    columns = [len(_ELLIPSIS) if first else 0]
    for cell in cells:
        columns.append(columns[-1] + _width(cell))
    text = "".join(cells)
    text = (_ELLIPSIS if first else "") + text + (_ELLIPSIS if last < len(line) else "")
    placed = []
    for mark in marks:
        start = columns[min(max(mark.start - first, 0), len(cells))]
        end = columns[min(max(mark.end - first, 0), len(cells))]
        placed.append(replace(mark, start=start, end=max(end, start + 1)))
    return ShownLine(text, tuple(placed))


def _window(length: int, marks: Sequence[Mark]) -> tuple[int, int]:
    """The part of a line to show, in characters."""
    if length <= _WIDEST_LINE:
        return 0, length
    first = min((mark.start for mark in marks), default=0)
    first = max(0, min(first - _CONTEXT, length - _WIDEST_LINE))
    return first, min(length, first + _WIDEST_LINE)


def plain(text: str) -> str:
    """The text on one line, without characters that a terminal might act on or cannot encode."""
    return printable(" ".join(text.splitlines()).replace("\t", _TAB))


def _shown_character(character: str) -> str:
    return _TAB if character == "\t" else printable(character)


def _width(shown: str) -> int:
    """How many columns of a terminal the shown form of one character takes."""
    return len(shown) if len(shown) > 1 else get_character_cell_size(shown)


def underlines(marks: Sequence[Mark]) -> Iterator[Row]:
    """The rows that mark parts of a line, with their texts.

    The text of the last mark stands beside it, if nothing else is there; the other texts hang below
    their marks, the last mark first.
    """
    ordered = sorted(marks, key=lambda mark: (mark.start, not mark.is_primary))
    last = ordered[-1]
    beside = all(mark is last or mark.end <= last.start for mark in ordered)
    drawn = _drawn(ordered)
    has_primary = any(mark.is_primary for mark in ordered)
    yield Row(f"{drawn} {last.text}".rstrip() if beside else drawn, has_primary)
    hanging = [mark for mark in ordered if mark.text and not (beside and mark is last)]
    if hanging:
        yield Row(_bars(hanging), hanging[-1].is_primary)
    while hanging:
        mark = hanging.pop()
        bars = _bars([other for other in hanging if other.start < mark.start])
        yield Row(bars.ljust(mark.start) + mark.text, mark.is_primary)


def _drawn(marks: Sequence[Mark]) -> str:
    """`^` under the primary mark, `-` under the others; where they overlap, the primary shows."""
    cells = [" "] * max(mark.end for mark in marks)
    for mark in sorted(marks, key=lambda mark: mark.is_primary):
        cells[mark.start : mark.end] = ("^" if mark.is_primary else "-") * (mark.end - mark.start)
    return "".join(cells)


def _bars(marks: Sequence[Mark]) -> str:
    cells = [" "] * (max((mark.start for mark in marks), default=-1) + 1)
    for mark in marks:
        cells[mark.start] = "|"
    return "".join(cells)
