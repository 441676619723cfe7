"""Diagnostics as one SARIF 2.1.0 document, which code-review tools read.

Source:   "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath, PurePosixPath
from typing import TypeAlias
from urllib.parse import quote

from tilec.diagnostics.diagnostic import Diagnostic, Label
from tilec.diagnostics.pages import page
from tilec.printable import json_text
from tilec.source import SourceFile

# A diagnostic, and the files that it points into.
Finding: TypeAlias = "tuple[Diagnostic, Mapping[str, SourceFile]]"
_Object: TypeAlias = "dict[str, object]"

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(
    findings: Sequence[Finding], failures: Sequence[str], *, version: str, folder: str
) -> str:
    """The document: one run, a result for each finding.

    `failures` say why the command could not do all of what was asked; they are no findings.

    Units:    lines and columns from one, columns in code points, ends after the last character
    Assumes:  `folder` is absolute; places of files inside of it are relative to it
    """
    codes = list(dict.fromkeys(diagnostic.code for diagnostic, _ in findings))
    run: _Object = {
        "tool": {
            "driver": {
                "name": "tilec",
                "semanticVersion": version,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(failures)],
        "results": [
            _result(diagnostic, codes.index(diagnostic.code), sources, folder)
            for diagnostic, sources in findings
        ],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(document, indent=2, in_ascii=False)


def _rule(code: str) -> _Object:
    rule: _Object = {
        "id": code,
        "defaultConfiguration": {"level": "warning" if code.startswith("W") else "error"},
    }
    explained = page(code)
    if explained is not None:
        rule["shortDescription"] = {"text": explained.title}
        rule["fullDescription"] = {"text": " ".join(explained.rule.split())}
        # The page is written to be read as it is, too.
        rule["help"] = {"text": explained.text, "markdown": explained.text}
    return rule


def _invocation(failures: Sequence[str]) -> _Object:
    notifications = [{"level": "error", "message": {"text": text}} for text in failures]
    invocation: _Object = {"executionSuccessful": not failures}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    return invocation


def _result(
    diagnostic: Diagnostic, rule_index: int, sources: Mapping[str, SourceFile], folder: str
) -> _Object:
    primary, *others = diagnostic.labels
    result: _Object = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule_index,
        "level": diagnostic.severity.value,
        "message": {"text": _text(diagnostic)},
        "locations": [_location(primary, sources, folder)],
    }
    related = [_location(label, sources, folder) for label in others]
    if related:
        for number, location in enumerate(related, 1):
            location["id"] = number
        result["relatedLocations"] = related
    return result


def _text(diagnostic: Diagnostic) -> str:
    """All that is said of it, but for what belongs to other places."""
    here = diagnostic.labels[0].text
    lines = [f"{diagnostic.message}: {here}" if here else diagnostic.message]
    lines += [f"note: {note}" for note in diagnostic.notes]
    if diagnostic.help is not None:
        lines.append(f"help: {diagnostic.help}")
    return "\n".join(lines)


def _location(label: Label, sources: Mapping[str, SourceFile], folder: str) -> _Object:
    location: _Object = {}
    if label.text:
        location["message"] = {"text": label.text}
    name = label.span.file
    if name.startswith("-"):
        # An option of the command line is no file.
        location["logicalLocations"] = [{"name": name}]
        return location
    physical: _Object = {"artifactLocation": {"uri": _uri(name, folder)}}
    if name in sources:
        physical["region"] = _region(label, sources[name])
    location["physicalLocation"] = physical
    return location


def _region(label: Label, source: SourceFile) -> _Object:
    start = min(label.span.start, len(source.text))
    end = min(max(label.span.end, start), len(source.text))
    first_line, first_column = source.position(start)
    last_line, last_column = source.position(end)
    return {
        "startLine": first_line + 1,
        "startColumn": first_column + 1,
        "endLine": last_line + 1,
        "endColumn": last_column + 1,
    }


def _uri(name: str, folder: str) -> str:
    """A file's name as a reference relative to the folder, where it is inside of it."""
    path = PurePath(os.path.normpath(name))
    if path.is_absolute():
        if not path.is_relative_to(folder):
            return path.as_uri()
        path = path.relative_to(folder)
    return quote(os.fsencode(PurePosixPath(path)))
