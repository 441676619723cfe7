"""The pages of this folder: what is refused of pipelines, each beside what is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PageCase, cases, expect

from tilec.compilation import Options
from tilec.diagnostics.render import render
from tilec.driver import check_sources
from tilec.source import SourceFile
from tilec.sources import Sources

HERE = Path(__file__).parent


@pytest.mark.parametrize("case", list(cases(HERE)), ids=str)
def test_page(case: PageCase, bless: bool) -> None:
    source = SourceFile("case.tile", case.program)
    found = check_sources(Sources(source, {}, {}, {}), Options()).diagnostics
    shown = "\n".join(render(diagnostic, {source.name: source}) for diagnostic in found)
    expect(case, shown or "accepted\n", bless=bless)
