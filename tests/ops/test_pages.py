"""The pages of this folder: what the type rules refuse, each beside what they accept."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PageCase, cases, expect

from tilec.diagnostics.render import render
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.ir.dialect import context
from tilec.source import SourceFile

HERE = Path(__file__).parent


@pytest.mark.parametrize("case", list(cases(HERE)), ids=str)
def test_page(case: PageCase, bless: bool) -> None:
    expect(case, printed(case.program), bless=bless)


def printed(text: str) -> str:
    """The diagnostics of a program as users see them, or that it was accepted."""
    program, found = load_program(SourceFile("case.tile", text), parse)
    if not found:
        instances, found = check_program(program)
    if found:
        return "\n".join(render(diagnostic, program.sources) for diagnostic in found)
    with context():
        assert emit(instances, program.sources).operation.verify()
    return "accepted\n"
