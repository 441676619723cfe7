"""The pages of this folder: what the front end refuses, each beside what it accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from front_end import printed
from pages import PageCase, cases, expect

HERE = Path(__file__).parent


@pytest.mark.parametrize("case", list(cases(HERE)), ids=str)
def test_page(case: PageCase, bless: bool) -> None:
    expect(case, printed(case.program), bless=bless)
