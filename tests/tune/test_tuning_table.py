"""What `tilec tune` shows while it measures, on a terminal and elsewhere."""

from __future__ import annotations

import sys

import pytest

from tests.unit.family_samples import LARGE, SMALL, of_family
from tilec.artifact.tuning_file import Trial
from tilec.cli.report import Reporter
from tilec.cli.tuning_table import listener
from tilec.tune.trial import Outcome

FAMILY = of_family().families[0]
FOUND = Outcome(
    Trial((512, 512, 64), SMALL.symbol, 2.0),
    guess=LARGE.symbol,
    times={SMALL.symbol: 2.0, LARGE.symbol: 3.0},
)
HEAD = ["shape", "fastest", "µs", "next", "slower", "by", "without", "tuning", "slower", "by"]
ROW = ["512x512x64", "64_64", "2.00", "128_256", "1.500", "128_256", "1.500"]


def shown(capsys, reporter):
    with listener(reporter) as tell:
        tell.begin(1, 2, FAMILY, (512, 512, 64))
        tell.outcome(FAMILY, FOUND)
        tell.begin(2, 2, FAMILY, (1, 1, 1))
        tell.failure("members differ")
    return capsys.readouterr()


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_line_a_shape(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    out, err = shown(capsys, Reporter())
    title, head, row = out.replace("\x1b[2K", "").replace("\r", "").splitlines()
    assert title == "matmul__bf16 (M, N, K)"
    assert (head.split(), row.split()) == (HEAD, ROW)
    assert "members differ" in err


def test_nothing_but_errors_if_quiet(capsys):
    out, err = shown(capsys, Reporter(quiet=True))
    assert out == ""
    assert err == "error: members differ\n"
