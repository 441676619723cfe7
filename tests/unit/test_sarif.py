"""Diagnostics as SARIF: what the standard asks of a document, places, names of files."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tilec.diagnostics import Diagnostic, Label, Severity
from tilec.diagnostics.pages import codes, page
from tilec.diagnostics.to_sarif import to_sarif
from tilec.source import SourceFile, Span


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def _list(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


TEXT = {"type": "string", "minLength": 1}
FROM_ONE = {"type": "integer", "minimum": 1}
FROM_ZERO = {"type": "integer", "minimum": 0}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = _object("text", text=TEXT, markdown=TEXT)
REGION = _object(
    "startLine",
    startLine=FROM_ONE, startColumn=FROM_ONE, endLine=FROM_ONE, endColumn=FROM_ONE,
)  # fmt: skip
PHYSICAL = _object(
    "artifactLocation",
    artifactLocation=_object("uri", uri={"type": "string", "format": "uri-reference"}),
    region=REGION,
)
LOCATION = _object(
    "",
    id=FROM_ZERO,
    message=MESSAGE,
    physicalLocation=PHYSICAL,
    logicalLocations=_list(_object("name", name=TEXT)),
)
RULE = _object(
    "id",
    id=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=_object("", level=LEVEL),
)
RESULT = _object(
    "message",
    ruleId=TEXT,
    ruleIndex=FROM_ZERO,
    level=LEVEL,
    message=MESSAGE,
    locations=_list(LOCATION),
    relatedLocations=_list(LOCATION),
)
INVOCATION = _object(
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    toolExecutionNotifications=_list(_object("message", message=MESSAGE, level=LEVEL)),
)
# What sarif-schema-2.1.0.json asks of what is used: the properties there are, and their types.
SCHEMA = _object(
    "version runs",
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"enum": ["2.1.0"]},
    runs=_list(
        _object(
            "tool",
            tool=_object(
                "driver",
                driver=_object("name", name=TEXT, semanticVersion=TEXT, rules=_list(RULE)),
            ),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            invocations=_list(INVOCATION),
            results=_list(RESULT),
        )
    ),
)


def run_of(
    *diagnostics: Diagnostic, sources: tuple[SourceFile, ...] = (), failures: tuple[str, ...] = ()
) -> Any:
    files = {source.name: source for source in sources}
    findings = [(diagnostic, files) for diagnostic in diagnostics]
    document = json.loads(to_sarif(findings, failures, version="1.2.3", folder="/home/me/work"))
    jsonschema.validate(document, SCHEMA)
    [run] = document["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return run


def at(source: SourceFile, marked: str, text: str = "") -> Label:
    start = source.text.index(marked)
    return Label(Span(source.name, start, start + len(marked)), text)


def test_nothing_wrong_is_a_document_without_results() -> None:
    run = run_of()
    assert run["results"] == []
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"


def test_places_count_from_one_in_code_points() -> None:
    source = SourceFile("a.tile", "one\n\U0001d11e x y\n")
    labels = at(source, "x", "here"), at(source, "one\n", "there")
    [result] = run_of(Diagnostic("E0201", "m", labels), sources=(source,))["results"]
    assert result["locations"] == [
        {
            "message": {"text": "here"},
            "physicalLocation": {
                "artifactLocation": {"uri": "a.tile"},
                "region": {"startLine": 2, "startColumn": 3, "endLine": 2, "endColumn": 4},
            },
        }
    ]
    [related] = result["relatedLocations"]
    assert related["id"] == 1
    assert related["message"] == {"text": "there"}
    region = {"startLine": 1, "startColumn": 1, "endLine": 2, "endColumn": 1}
    assert related["physicalLocation"]["region"] == region


def test_the_message_has_what_is_said_of_the_place_and_the_way_out() -> None:
    source = SourceFile("a.tile", "x")
    diagnostic = Diagnostic("E0201", "m", (at(source, "x", "here"),), ("n1", "n2"), "do this")
    [result] = run_of(diagnostic, sources=(source,))["results"]
    assert result["message"]["text"] == "m: here\nnote: n1\nnote: n2\nhelp: do this"
    [bare] = run_of(Diagnostic("E0201", "m", (at(source, "x"),)), sources=(source,))["results"]
    assert bare["message"]["text"] == "m"
    assert "message" not in bare["locations"][0]


def test_a_rule_is_there_once_with_its_page() -> None:
    source = SourceFile("a.tile", "x y")
    found = [Diagnostic(c, "m", (at(source, "x"),)) for c in ("E0301", "E0201", "E0301")]
    run = run_of(*found, sources=(source,))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["E0301", "E0201"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 0]
    explained = page("E0301")
    assert explained is not None
    assert rules[0]["shortDescription"]["text"] == explained.title
    assert rules[0]["help"]["markdown"] == explained.text


@pytest.mark.parametrize("code", codes())
def test_every_code_makes_a_rule(code: str) -> None:
    source = SourceFile("a.tile", "x")
    severity = Severity.WARNING if code.startswith("W") else Severity.ERROR
    diagnostic = Diagnostic(code, "m", (at(source, "x"),), severity=severity)
    run = run_of(diagnostic, sources=(source,))
    [rule] = run["tool"]["driver"]["rules"]
    assert run["results"][0]["level"] == rule["defaultConfiguration"]["level"] == severity.value
    assert "\n" not in rule["fullDescription"]["text"]


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("a.tile", "a.tile"),
        ("./k/../a.tile", "a.tile"),
        ("../a b/ä#1.tile", "../a%20b/%C3%A4%231.tile"),
        ("/home/me/work/k/a.tile", "k/a.tile"),
        ("/home/me/other/a b.tile", "file:///home/me/other/a%20b.tile"),
        ("bad\udcff.tile", "bad%FF.tile"),
    ],
)
def test_files_are_named_relative_to_the_folder(name: str, uri: str) -> None:
    source = SourceFile(name, "x")
    [result] = run_of(Diagnostic("E0201", "m", (at(source, "x"),)), sources=(source,))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri}


def test_an_option_is_no_file() -> None:
    source = SourceFile("-D B=x", "B=x")
    [result] = run_of(Diagnostic("E0203", "m", (at(source, "x"),)), sources=(source,))["results"]
    assert result["locations"] == [{"logicalLocations": [{"name": "-D B=x"}]}]


def test_a_file_whose_text_is_not_there_is_named() -> None:
    [result] = run_of(Diagnostic("E0201", "m", (Label(Span("b.tile", 3, 4)),)))["results"]
    assert result["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "b.tile"}}}]


def test_what_failed_is_no_result() -> None:
    run = run_of(failures=("cannot read `a.tile`",))
    [invocation] = run["invocations"]
    assert not invocation["executionSuccessful"]
    [notification] = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == "cannot read `a.tile`"
    assert run["results"] == []
