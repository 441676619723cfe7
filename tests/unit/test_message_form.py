"""How every message is written, over all programs of the test pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import cases

from tilec.compilation import Options
from tilec.diagnostics import Diagnostic
from tilec.driver import check_sources
from tilec.source import SourceFile
from tilec.sources import Sources

TESTS = Path(__file__).parents[1]
FOLDERS = ("syntax", "frontend", "checks", "ops")


def diagnostics_of(folder: str) -> Iterator[tuple[str, Diagnostic]]:
    for case in cases(TESTS / folder):
        if case.expected == "accepted\n":  # which the page's own test sees to
            continue
        sources = Sources(SourceFile("case.tile", case.program), {}, {}, {})
        for diagnostic in check_sources(sources, Options()).diagnostics:
            yield str(case), diagnostic


@pytest.mark.parametrize("folder", FOLDERS)
def test_messages_have_one_form_and_labels_are_in_program_order(folder: str) -> None:
    found = list(diagnostics_of(folder))
    assert found
    for case, diagnostic in found:
        where = f"{case}: {diagnostic.code}: {diagnostic.message}"
        for text in texts_of(diagnostic):
            assert text == text.strip() and not text.endswith((".", "!")), where
            assert not text[:1].isupper() or text.startswith(("MIN", "NaN")), where
        others = [label.span for label in diagnostic.labels[1:]]
        assert others == sorted(others, key=lambda span: (span.file, span.start)), where


def texts_of(diagnostic: Diagnostic) -> list[str]:
    labels = [label.text for label in diagnostic.labels]
    return [diagnostic.message, *labels, *diagnostic.notes, *filter(None, [diagnostic.help])]
