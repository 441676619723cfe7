"""Diagnostics as text and as JSON: places, wide characters, tabs, ends of files, several files."""

from __future__ import annotations

import io
import json
from textwrap import dedent

import pytest

from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.diagnostics.colour import wants_colour
from tilec.diagnostics.render import render
from tilec.diagnostics.to_json import to_json
from tilec.source import SourceFile, Span


def label(source: SourceFile, marked: str, text: str = "") -> Label:
    start = source.text.index(marked)
    return Label(Span(source.name, start, start + len(marked)), text)


def rendered(text: str, *marks: tuple[str, str], **more: object) -> str:
    source = SourceFile("a.tile", text)
    labels = tuple(label(source, marked, said) for marked, said in marks)
    diagnostic = Diagnostic("E0301", "shapes differ", labels, **more)  # type: ignore[arg-type]
    return render(diagnostic, {source.name: source})


def block(text: str) -> str:
    return dedent(text).lstrip("\n")


def test_several_labels_in_one_line() -> None:
    assert rendered("let a = b + c;\n", ("+", "op"), ("b", "left"), ("c", "right")) == block(
        """
        error[E0301]: shapes differ
         --> a.tile:1:11
          |
        1 | let a = b + c;
          |         - ^ - right
          |         | |
          |         | op
          |         left
        """
    )


def test_labels_in_several_lines_with_those_between() -> None:
    text = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
    assert rendered(text, ("ten", "here"), ("one", "and"), ("three", "there")) == block(
        """
        error[E0301]: shapes differ
          --> a.tile:10:1
           |
         1 | one
           | --- and
         2 | two
         3 | three
           | ----- there
        ...
        10 | ten
           | ^^^ here
        """
    )


def test_a_label_over_several_lines() -> None:
    text = "f(\n    1,\n    2,\n    3,\n);\n"
    assert rendered(text, (text.rstrip("\n"), "this call")) == block(
        """
        error[E0301]: shapes differ
         --> a.tile:1:1
          |
        1 | f(
          | ^^
        ...
        5 | );
          | ^^ this call
        """
    )


def test_notes_and_help_follow() -> None:
    assert rendered("x\n", ("x", ""), notes=("why",), help="what") == block(
        """
        error[E0301]: shapes differ
         --> a.tile:1:1
          |
        1 | x
          | ^
          |
          = note: why
          = help: what
        """
    )


def marked_columns(text: str, marked: str) -> tuple[int, int]:
    """Where a terminal would show the marks under a part of the one line, columns from 0."""
    row = rendered(text, (marked, "")).splitlines()[-1]
    assert set(row) <= set(" |^")
    return row.index("^") - 4, len(row) - 4


@pytest.mark.parametrize(
    ("before", "columns"),
    [
        ("", 0),
        ("abc", 3),
        ("名前", 4),  # wide
        ("Ａ１", 4),  # full width
        ("ｱｲ", 2),  # half width
        ("한글", 4),
        ("α…é", 3),  # wide in some East Asian fonts only
        ("e\u0301", 1),  # a combining accent
        ("ก\u0e31", 1),  # a mark of combining class 0
        ("a\u20dd", 1),  # an enclosing circle
        ("👍", 2),
        ("❤\ufe0f", 1),  # a variation selector takes no column
        ("👨\u200d👩", 2 + 6 + 2),  # what joins them is an escape, as all that is not printable
        ("\t", 4),
        ("a\t\tb", 10),
        ("\u202e\x1b", 6 + 4),  # what would turn the line, or command the terminal, is an escape
    ],
)
def test_marks_stand_under_what_they_mark_whatever_is_before(before: str, columns: int) -> None:
    assert marked_columns(f"{before}x;\n", "x") == (columns, columns + 1)


@pytest.mark.parametrize(
    ("marked", "columns"), [("名前", 4), ("e\u0301", 1), ("👍", 2), ("\t", 4), ("a\tb", 6)]
)
def test_marks_are_as_wide_as_what_they_mark(marked: str, columns: int) -> None:
    assert marked_columns(f"1 {marked} 2\n", marked) == (2, 2 + columns)


def test_places_are_counted_in_characters() -> None:
    assert "\n --> a.tile:1:11\n" in rendered("\tlet 名前 = x;\n", ("x", "here"))


@pytest.mark.parametrize("text", ["abc", "abc\n", ""])
def test_an_empty_place_at_the_end_of_the_file_is_marked(text: str) -> None:
    source = SourceFile("a.tile", text)
    end = Label(Span("a.tile", len(text), len(text)), "ends here")
    shown = render(Diagnostic("E0101", "m", (end,)), {source.name: source})
    assert shown.endswith("^ ends here\n")


def test_other_files_are_shown_below() -> None:
    first, second = SourceFile("a.tile", "use b::f;\n"), SourceFile("b.tile", "\nfn f() {}\n")
    labels = (label(first, "f", "used"), label(second, "f()", "made"))
    diagnostic = Diagnostic("E0203", "m", labels)
    assert render(diagnostic, {s.name: s for s in (first, second)}) == block(
        """
        error[E0203]: m
         --> a.tile:1:8
          |
        1 | use b::f;
          |        ^ used
         ::: b.tile:2:4
          |
        2 | fn f() {}
          |    --- made
        """
    )


def test_a_file_without_text_is_named() -> None:
    diagnostic = Diagnostic("E0203", "m", (Label(Span("-D", 3, 5), "this option"),))
    assert render(diagnostic, {}) == "error[E0203]: m\n --> -D\n  | this option\n"


def test_a_long_line_is_cut_around_what_is_marked() -> None:
    shown = rendered("a + " * 100_000 + "b;\n", ("b", "here"))
    assert max(map(len, shown.splitlines())) < 200
    line, marks = shown.splitlines()[-2:]
    assert line[marks.index("^")] == "b"


def test_control_characters_do_not_reach_the_terminal() -> None:
    shown = rendered("x \x1b[31m \ud800 y\n", ("y", "\x1b[31m\n"))
    assert "\x1b" not in shown
    shown.encode()


def test_names_of_files_are_shown_as_text_is() -> None:
    label = Label(Span("\x1b[31m\udcff.tile", 0, 1), "here")
    for sources in ({}, {label.span.file: SourceFile(label.span.file, "x")}):
        shown = render(Diagnostic("E0101", "m", (label,)), sources)
        assert "\x1b" not in shown
        shown.encode()


def test_colour_changes_nothing_else() -> None:
    source = SourceFile("a.tile", "let a = b;\n")
    diagnostic = Diagnostic("E0201", "m", (label(source, "b", "here"),), help="h")
    sources = {source.name: source}
    coloured = render(diagnostic, sources, colour=True)
    plain = "".join(piece.partition("m")[2] for piece in ("m" + coloured).split("\x1b["))
    assert "\x1b[" in coloured
    assert plain == render(diagnostic, sources)


def test_warnings_are_named_so() -> None:
    assert rendered("x", ("x", ""), severity=Severity.WARNING).startswith("warning[E0301]: ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "on_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),  # as if it were not set
        ({"TERM": "dumb"}, False, False),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR_FORCE": "0"}, True, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colour_obeys_the_environment_and_the_stream(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    on_terminal: bool,
    elsewhere: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **environment}.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(Terminal()) == on_terminal
    assert wants_colour(io.StringIO()) == elsewhere


def test_json_counts_as_the_language_server_protocol_does() -> None:
    # LSP 3.17: lines and UTF-16 code units from zero; U+1D11E takes two units.
    source = SourceFile("a.tile", "one\n\U0001d11e x y\n")
    labels = (label(source, "x"), label(source, "one\n", "first"))
    line = to_json(Diagnostic("E0201", "m", labels, ("n",), "h"), {source.name: source})
    assert "\n" not in line
    x = {"start": {"line": 1, "character": 3}, "end": {"line": 1, "character": 4}}
    one = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    assert json.loads(line) == {
        "code": "E0201",
        "severity": "error",
        "message": "m",
        "file": "a.tile",
        "range": x,
        "labels": [
            {"file": "a.tile", "range": x, "text": ""},
            {"file": "a.tile", "range": one, "text": "first"},
        ],
        "notes": ["n"],
        "help": "h",
    }
