"""Times of stages: names, order, and that inner stages are not counted twice."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import tilec.stages
from tilec.stages import OTHER, Spent, add_spent, recording, stage, total


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests move: `clock.append(seconds)`."""
    passed: list[float] = []
    monkeypatch.setattr(tilec.stages, "_now", lambda: Spent(sum(passed), 2 * sum(passed)))
    return passed


def test_an_inner_stage_is_not_counted_for_the_outer_one(clock):
    with recording() as spent:
        clock.append(1)
        with stage("outer"):
            clock.append(2)
            with stage("inner"):
                clock.append(4)
            clock.append(8)
    assert spent == {OTHER: Spent(1, 2), "outer": Spent(10, 20), "inner": Spent(4, 8)}


def test_a_stage_that_comes_again_adds_up(clock):
    with recording() as spent:
        for seconds in (1, 2, 4):
            with stage("again"):
                clock.append(seconds)
    assert spent["again"] == Spent(7, 14)


def test_a_stage_that_fails_is_counted(clock):
    with pytest.raises(ValueError), recording() as spent, stage("fails"):
        clock.append(3)
        raise ValueError
    assert spent["fails"] == Spent(3, 6)


def test_nothing_is_kept_outside_of_a_recording(clock):
    with stage("alone"):
        clock.append(1)
    with recording() as spent:
        clock.append(2)
    assert spent == {OTHER: Spent(2, 4)}


def test_tables_add_up_stage_by_stage():
    tables = [{"a": Spent(1, 2)}, {"b": Spent(3, 4), "a": Spent(5, 6)}]
    assert total(tables) == {"a": Spent(6, 8), "b": Spent(3, 4)}


def test_child_processes_count():
    busy = "import time\nwhile time.process_time() < 0.1: pass"
    with recording() as spent, stage("child"):
        start = time.process_time()
        subprocess.run([sys.executable, "-c", busy], check=True)
        own = time.process_time() - start
    assert spent["child"].cpu_s - own >= 0.09


def test_what_a_child_took_is_not_the_stage_that_waited_for_it(monkeypatch):
    now = Spent()
    monkeypatch.setattr(tilec.stages, "_now", lambda: now)
    with recording() as spent, stage("waiting"):
        now = Spent(7, 4)  # 6 of a child, which is waited for here
        add_spent({"work": Spent(5, 3), "other": Spent(1, 1)})
    assert spent == {OTHER: Spent(1, 0), "waiting": Spent(1, 4), "work": Spent(5, 0)}
