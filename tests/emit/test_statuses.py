"""Each status has a number of its own, a meaning, and a line in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.emit.probe import Probe
from tests.emit.statuses import STATUS

PAGE = Path(__file__).parents[2] / "docs" / "launchers.md"
_ROW = re.compile(r"^\| `(TILEC_\w+)` \| (\d+) \| (.+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def meanings(tools):
    library = Probe(tools / "statuses").library
    return {number: library.probe_strerror(number).decode() for number in range(-1, 40)}


def test_the_numbers_are_told_one_by_one():
    assert list(STATUS.values()) == list(range(len(STATUS)))
    assert len(STATUS) == 26


def test_each_has_a_meaning(meanings):
    told = [meanings[number] for number in STATUS.values()]
    assert len(set(told)) == len(told)
    assert meanings[-1] == meanings[len(STATUS)] == "no status of tilec"
    assert "no status of tilec" not in told


def test_each_has_a_line_in_the_documentation():
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert {name: int(number) for name, number, _ in rows} == STATUS
    assert all(text.strip() for _, _, text in rows)
