"""Text of files on terminals and in JSON: escapes for all that is not just shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from test_mutated_manifests import paths, sample

import tilec.runtime as rt
from tilec.artifact.manifest import ManifestError, from_json
from tilec.artifact.validate import faults_of
from tilec.cli.entry import run_command_line
from tilec.diagnostics import Diagnostic, Label
from tilec.diagnostics.render import render
from tilec.diagnostics.to_json import to_json
from tilec.diagnostics.to_sarif import to_sarif
from tilec.printable import json_text, printable, printable_lines
from tilec.source import SourceFile, Span

# ESC, C1's control sequence introducer, DEL, BEL, overrides and isolates of direction, a zero-width
# space, line ends of other kinds, and what would look like another message.
HOSTILE = "\x1b[2J\x9b1m\x7f\x07\u202e\u2066\u200b\r\x85\u2028\nerror: forged"


def is_shown(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain µ 漢 e\u0301", "plain µ 漢 e\u0301"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x7f\x9b", r"\x7f\x9b"),
        ("a\u202eb", r"a\u202eb"),
        ("\U000e0001", r"\U000e0001"),
        ("\udcff", r"\udcff"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
    ],
)
def test_escapes_what_a_terminal_does_not_just_show(text, shown):
    assert printable(text) == shown
    assert printable_lines(text) == shown.replace(r"\n", "\n").replace(r"\t", "\t")


def test_every_character_comes_out_shown():
    assert printable("".join(map(chr, range(sys.maxunicode + 1)))).isprintable()


@pytest.mark.parametrize("in_ascii", [True, False])
def test_json_is_shown_and_reads_back(in_ascii):
    value = {HOSTILE: ["\u202e漢\U000e0001", {"a": 'quote " and \\'}, 1.5, None]}
    for indent in (None, 2):
        text = json_text(value, indent=indent, in_ascii=in_ascii)
        assert is_shown(text) and (text.isascii() or not in_ascii)
        assert json.loads(text) == value


def test_json_has_no_half_characters():
    text = json_text(["\udcff\ud800", "\ud83d\ude00"])
    assert json.loads(text) == [r"\udcff\ud800", r"\ud83d\ude00"]
    json.loads(text)[0].encode()


def test_diagnostics_are_shown_in_each_form():
    source = SourceFile(f"a{HOSTILE}.tile", f"let \x1b[2J\u202e = 1; // {HOSTILE}\nx\n")
    found = Diagnostic(
        "E0201", HOSTILE, (Label(Span(source.name, 4, 9), HOSTILE),), (HOSTILE,), HOSTILE
    )
    for files in ({source.name: source}, {}):
        shown = render(found, files)
        assert is_shown(shown)
        assert not any(line.startswith("error: forged") for line in shown.splitlines())
        assert r"\x1b[2J" in shown and r"\u202e" in shown
        document = to_json(found, files)
        assert is_shown(document) and json.loads(document)["message"] == HOSTILE
        sarif = to_sarif([(found, files)], [HOSTILE], version="1", folder="/")
        assert is_shown(sarif)
        json.loads(sarif)


def texts_of(document: Any) -> list[str]:
    found = (at(document, path) for path in paths(document))
    return list(dict.fromkeys(text for text in found if isinstance(text, str) and text))


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def spoilt(value: Any, texts: set[str]) -> Any:
    """The document with something behind each of these texts, wherever it stands."""
    if isinstance(value, dict):
        return {key: spoilt(item, texts) for key, item in value.items()}
    if isinstance(value, list):
        return [spoilt(item, texts) for item in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) and value in texts else value


def is_taken(document: Any) -> bool:
    try:
        return not any(faults_of(from_json(json.dumps(document))))
    except ManifestError:
        return False


@pytest.fixture
def said(capfd):
    """What a command prints, all of which is shown and begins no message of its own."""

    def run(*arguments: object) -> str:
        assert run_command_line([str(one) for one in arguments]) in (0, 1, 2)
        out, err = capfd.readouterr()
        assert is_shown(out) and is_shown(err), arguments
        assert not any(line.startswith("error: forged") for line in (out + err).splitlines())
        return out + err

    return run


def test_no_command_prints_a_text_of_a_manifest_raw(tmp_path: Path, said) -> None:
    document = sample()
    texts = texts_of(document)
    taken = {text for text in texts if is_taken(spoilt(document, {text}))}
    hostile, honest = tmp_path / "hostile.json", tmp_path / "honest.json"
    honest.write_text(json.dumps(document))
    hostile.write_text(json.dumps(spoilt(document, taken)))
    everything = "".join(
        said(*arguments)
        for arguments in (
            ("inspect", hostile, "--all", "--families"),
            ("inspect", hostile, "--dot"),
            ("inspect", hostile, "--kernel", "none"),
            ("abi-diff", honest, hostile),
            ("abi-diff", hostile, honest, "--error-format", "json"),
        )
    )
    printed = {text for text in taken if f"{text}{printable(HOSTILE)}" in everything}
    assert len(printed) > 17, sorted(taken - printed)
    for text in set(texts) - taken:
        hostile.write_text(json.dumps(spoilt(document, {text})))
        assert "error" in said("inspect", hostile)


@pytest.mark.parametrize("error", [rt.ArtifactError, rt.ContractError, rt.LaunchError])
def test_what_the_runtime_raises_is_shown(error):
    assert is_shown(str(error(f"`x{HOSTILE}` is wrong")))
    assert str(error("`x\x1b` is wrong")) == r"`x\x1b` is wrong"
