"""Diagnostics as text and as JSON: places, wide characters, tabs, ends of files, several files."""

from __future__ import annotations

import io
import json
from textwrap import dedent

import pytest

from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.diagnostics.render import render, wants_colour
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


def test_tabs_and_wide_characters_keep_marks_under_what_they_mark() -> None:
    assert rendered("\tlet 名前 = x;\n", ("x", "here")) == (
        "error[E0301]: shapes differ\n --> a.tile:1:11\n  |\n"
        "1 |     let 名前 = x;\n  |                ^ here\n"
    )


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


def test_colour_obeys_no_color_and_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


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
