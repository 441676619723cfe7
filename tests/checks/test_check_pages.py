"""The pages of this folder: what each check refuses, each beside what it accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PageCase, cases, expect

from tilec.compilation import IN_KERNEL_CHECKS, Options
from tilec.diagnostics.render import render
from tilec.driver import check_sources
from tilec.source import SourceFile
from tilec.sources import Sources

HERE = Path(__file__).parent
DENYING = ("in_kernel",)  # pages of what is only refused where it is denied


@pytest.mark.parametrize("case", list(cases(HERE)), ids=str)
def test_page(case: PageCase, bless: bool) -> None:
    deny = (IN_KERNEL_CHECKS,) if case.page.stem in DENYING else ()
    expect(case, printed(case.program, Options(deny=deny)), bless=bless)


def printed(text: str, options: Options) -> str:
    """What the checks say of a program that is right in every other way."""
    source = SourceFile("case.tile", text)
    diagnostics = check_sources(Sources(source, {}, {}, {}), options).diagnostics
    shown = [render(diagnostic, {source.name: source}) for diagnostic in diagnostics]
    return "\n".join(shown) or "accepted\n"
