"""The pages of this folder: what users read when a program does not parse."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PageCase, cases, expect

from tilec.diagnostics.render import render
from tilec.frontend.parse import parse
from tilec.source import SourceFile


@pytest.mark.parametrize("case", list(cases(Path(__file__).parent)), ids=str)
def test_page(case: PageCase, bless: bool) -> None:
    expect(case, printed(case.program), bless=bless)


def printed(text: str) -> str:
    """The diagnostics of the parser as users see them, or that there are none."""
    source = SourceFile("case.tile", text)
    _, found = parse(source)
    return "\n".join(render(d, {source.name: source}) for d in found) or "accepted\n"
