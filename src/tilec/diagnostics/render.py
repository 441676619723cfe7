"""A diagnostic as text: the source lines, what is marked in them, notes and help, as rustc does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tilec.diagnostics.diagnostic import Diagnostic, Label, Severity
from tilec.diagnostics.snippet import Mark, plain, shown_line, underlines
from tilec.source import SourceFile

_RESET = "\x1b[0m"
_BOLD = "\x1b[1m"
_RED = "\x1b[1;31m"
_YELLOW = "\x1b[1;33m"
_BLUE = "\x1b[1;34m"


def render(
    diagnostic: Diagnostic, sources: Mapping[str, SourceFile], *, colour: bool = False
) -> str:
    """The diagnostic as lines of text, the last of them ended too.

    Assumes:  `sources` has the files by name; the lines of a file that is not there are not shown
    """
    paint = _Paint(colour)
    strong = _RED if diagnostic.severity is Severity.ERROR else _YELLOW
    head = paint(strong, f"{diagnostic.severity.value}[{diagnostic.code}]")
    lines = [head + paint(_BOLD, f": {plain(diagnostic.message)}")]
    gutter = _gutter_width(diagnostic, sources)
    for name in dict.fromkeys(label.span.file for label in diagnostic.labels):
        labels = [label for label in diagnostic.labels if label.span.file == name]
        arrow = "-->" if name == diagnostic.span.file else ":::"
        lines += _File(sources.get(name), gutter, paint, strong).lines(labels, arrow, diagnostic)
    for kind, text in _footnotes(diagnostic):
        lines.append(" " * gutter + paint(_BLUE, " = ") + paint(_BOLD, f"{kind}: ") + plain(text))
    return "\n".join(lines) + "\n"


def _footnotes(diagnostic: Diagnostic) -> Iterable[tuple[str, str]]:
    for note in diagnostic.notes:
        yield "note", note
    if diagnostic.help is not None:
        yield "help", diagnostic.help


def _gutter_width(diagnostic: Diagnostic, sources: Mapping[str, SourceFile]) -> int:
    numbers = [1]
    for label in diagnostic.labels:
        source = sources.get(label.span.file)
        if source is not None:
            numbers.append(_clamped_line(source, label.span.end) + 1)
    return len(str(max(numbers)))


def _clamped_line(source: SourceFile, offset: int) -> int:
    return source.position(min(offset, len(source.text)))[0]


@dataclass(frozen=True)
class _Paint:
    is_on: bool

    def __call__(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_RESET}" if self.is_on and text else text


@dataclass(frozen=True)
class _File:
    """The part of a rendering that shows one file."""

    source: SourceFile | None
    gutter: int
    paint: _Paint
    strong: str

    def lines(self, labels: list[Label], arrow: str, diagnostic: Diagnostic) -> list[str]:
        name = labels[0].span.file
        pad = " " * self.gutter
        if self.source is None:
            texts = (plain(label.text) for label in labels if label.text)
            head = f"{pad}{self.paint(_BLUE, arrow)} {plain(name)}"
            return [head, *(f"{pad} {self.paint(_BLUE, '|')} {text}" for text in texts)]
        line, column = self.source.position(min(labels[0].span.start, len(self.source.text)))
        head = f"{pad}{self.paint(_BLUE, arrow)} {plain(name)}:{line + 1}:{column + 1}"
        bar = f"{pad} {self.paint(_BLUE, '|')}"
        marks = _marks(self.source, labels, diagnostic.labels[0])
        shown = [head, bar]
        before: int | None = None
        for number in sorted(marks):
            shown += self._between(before, number)
            shown += self._line(number, marks[number], bar)
            before = number
        return [*shown, bar] if diagnostic.notes or diagnostic.help is not None else shown

    def _between(self, before: int | None, number: int) -> list[str]:
        """What stands for the lines between two shown ones: a single line is shown too."""
        if before is None or number == before + 1:
            return []
        if number == before + 2:
            return [self._source_line(before + 1, [])]
        return [self.paint(_BLUE, "...")]

    def _line(self, number: int, marks: list[Mark], bar: str) -> list[str]:
        assert self.source is not None
        text = shown_line(self.source.line(number), marks)
        rows = [self._source_line(number, marks)]
        for row in underlines(text.marks):
            colour = self.strong if row.is_primary else _BLUE
            rows.append(f"{bar} {self.paint(colour, row.text)}".rstrip())
        return rows

    def _source_line(self, number: int, marks: list[Mark]) -> str:
        assert self.source is not None
        text = shown_line(self.source.line(number), marks).text
        head = self.paint(_BLUE, f"{number + 1:>{self.gutter}} |")
        return f"{head} {text}".rstrip()


def _marks(source: SourceFile, labels: list[Label], primary: Label) -> dict[int, list[Mark]]:
    """What is marked in each line that is to be shown.

    A label over several lines marks the rest of its first and the start of its last, where its
    text stands.
    """
    marks: dict[int, list[Mark]] = {}
    for label in labels:
        is_primary = label is primary
        first, start = source.position(min(label.span.start, len(source.text)))
        last, end = source.position(min(max(label.span.start, label.span.end), len(source.text)))
        if last > first and end == 0:
            # The span ends with a line break: its last line is the one before.
            last, end = last - 1, len(source.line(last - 1))
        if first == last:
            marks.setdefault(first, []).append(Mark(start, end, is_primary, plain(label.text)))
            continue
        text = source.line(last)
        indent = len(text) - len(text.lstrip())
        marks.setdefault(first, []).append(Mark(start, len(source.line(first)), is_primary, ""))
        marks.setdefault(last, []).append(
            Mark(min(indent, end), end, is_primary, plain(label.text))
        )
    return marks
