"""The pages of this folder: what each check refuses, each beside what it accepts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pages import PageCase, cases, expect

from tilec.checks.check_resources import check_resources
from tilec.diagnostics.once import once
from tilec.diagnostics.render import render
from tilec.driver import CHECKS
from tilec.frontend.check import check_program
from tilec.frontend.emit import emit
from tilec.frontend.modules import load_program
from tilec.frontend.parse import parse
from tilec.ir.dialect import context
from tilec.source import SourceFile
from tilec.target.resolve import resolve

HERE = Path(__file__).parent
ALL = (*CHECKS, partial(check_resources, target=resolve("sm_90a")))


@pytest.mark.parametrize("case", list(cases(HERE)), ids=str)
def test_page(case: PageCase, bless: bool) -> None:
    expect(case, printed(case.program), bless=bless)


def printed(text: str) -> str:
    """What the checks say of a program that is right in every other way."""
    program, found = load_program(SourceFile("case.tile", text), parse)
    assert found == []
    instances, found = check_program(program)
    assert found == []
    with context():
        module = emit(instances, program.sources)
        assert module.operation.verify()
        diagnostics = once(d for check in ALL for d in check(module, program.sources))
        shown = [render(diagnostic, program.sources) for diagnostic in diagnostics]
    return "\n".join(shown) or "accepted\n"
