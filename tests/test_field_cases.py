"""Every question of `field_cases.md` is answered by tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "tests" / "field_cases.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
ROWS = {int(number): answers for number, _, answers in _ROW.findall(TEXT)}


def test_the_questions_are_all_there():
    assert set(ROWS) == {*range(1, 16), 19, 20, 21, 23, 24}


@pytest.mark.parametrize("number", ROWS)
def test_a_question_is_answered_by_tests_that_are_there(number):
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", ROWS[number])
    assert named
    for file, test in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"\ndef {test}(" in text, f"{file} has no {test}"
