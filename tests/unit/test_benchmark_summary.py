"""What benchmarks report of their samples."""

from __future__ import annotations

import pytest

from benchmarks.summary import Comparison, Contender, record, table


@pytest.fixture
def comparison():
    ours = Contender("tilec", (1.0, 2.0, 4.0, 1.0))
    rival = Contender("torch", (2.0, 3.0, 4.0, 3.0), error=0.5)
    return Comparison("add", 3_000_000, (ours, rival), "graph")


def test_ratios_are_between_samples_of_one_round(comparison):
    # By round: 2, 1.5, 1, 3. The ratio of the medians would be 2.
    assert comparison.ratio("torch") == 1.75
    assert comparison.ratio("tilec") == 1.0


def test_rates_count_needed_bytes_by_median_time(comparison):
    # 3 MB in 1.5 µs is 2000 GB/s.
    assert comparison.rate_gbs(comparison.contenders[0]) == pytest.approx(2000)


def test_the_spread_is_the_interquartile_range():
    # Quartiles (exclusive) of 1..7 are 2 and 6.
    assert Contender("x", tuple(map(float, range(1, 8)))).spread_us == 4
    assert Contender("x", (1.0,)).spread_us == 0


def test_the_record_and_the_table_have_every_contender(comparison):
    found = record([comparison], {"card": "a card"})
    assert found["environment"] == {"card": "a card"}
    assert set(found["cases"][0]["summary"]) == {"tilec", "torch"}
    assert "| add | torch | 3.00 |" in table([comparison])
