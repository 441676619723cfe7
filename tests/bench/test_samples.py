"""What is reported of samples: figures, tables, files."""

from __future__ import annotations

import json

import pytest

from tilec.bench.record import save
from tilec.bench.samples import Comparison, Contender
from tilec.bench.table import failures, head, is_wrong, line


def comparison(*contenders):
    ours = Contender("tilec", (1.0, 2.0, 4.0, 1.0), error=0.1)
    return Comparison("add", "f32 1000", 3_000_000, 1.2, "memory", (ours, *contenders))


@pytest.fixture
def found():
    torch = Contender("torch", (2.0, 3.0, 4.0, 3.0), error=0.5)
    wrong = Contender("triton", error=7.0, failure="wrong: 7 times what is allowed")
    return comparison(torch, wrong, Contender("copy", (0.5, 1.0, 2.0, 0.5)))


def test_ratios_are_between_samples_of_one_round(found):
    # By round: 2, 1.5, 1, 3. The ratio of the medians would be 2.
    assert found.ratio("torch") == 1.75
    assert found.ratio("tilec") == 1.0
    assert found.ratio("triton") is None
    assert found.best_ratio == 1.75


def test_rates_count_needed_bytes_by_median_time(found):
    # 3 MB in 1.5 µs is 2000 GB/s.
    assert found.rate_gbs(found.ours) == pytest.approx(2000)
    assert found.of_floor(found.ours) == pytest.approx(0.8)


def test_the_best_rival_is_the_one_of_the_shortest_median_and_no_copy():
    fast, slow = Contender("b", (1.0,) * 4), Contender("a", (9.0,) * 4)
    found = comparison(slow, fast, Contender("copy", (0.1,) * 4))
    assert [c.name for c in found.rivals] == ["b", "a"]


def test_the_spread_is_the_interquartile_range():
    # Quartiles (exclusive) of 1..7 are 2 and 6.
    assert Contender("x", tuple(map(float, range(1, 8)))).spread_us == 4
    assert Contender("x", (1.0,)).spread_us == 0


def test_a_line_has_every_rival_in_the_order_of_the_head(found):
    rivals = ("torch", "triton")
    cells = "case | µs | GB/s | of copy | of floor | torch | triton | best rival"
    assert head(rivals).splitlines()[0] == f"| {cells} |"
    assert line(found, rivals) == (
        "| add f32 1000 | 1.50 | 2000 | 0.500 | 0.800 | 1.750 | – | 1.750 |"
    )


def test_failures_are_said_with_their_reasons(found):
    assert list(failures(found)) == ["add f32 1000: triton: wrong: 7 times what is allowed"]
    assert not is_wrong(found)


def test_without_ours_the_rivals_times_are_said():
    ours = Contender("tilec", failure="no cubin")
    found = Comparison(
        "add", "f32", 3_000_000, 1.0, "memory", (ours, Contender("torch", (1.5, 1.5)))
    )
    assert is_wrong(found)
    assert line(found, ["torch"]) == "| add f32 | – | – | – | – | – | – |"
    assert list(failures(found))[1] == "add f32: torch takes 1.50 µs, 2000 GB/s"


def test_the_file_of_a_benchmark_has_every_sample(found, tmp_path):
    path = save(tmp_path / "new", [found], {"card": "A Card"})
    assert path.name == "add-a-card.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["environment"] == {"card": "A Card"}
    [case] = written["cases"]
    assert case["contenders"][1]["samples"] == [2.0, 3.0, 4.0, 3.0]
    assert case["summary"]["torch"]["time_by_ours"] == 1.75
    assert case["summary"]["triton"] is None
