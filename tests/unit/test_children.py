"""Jobs in child processes: what dies there dies alone."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import pytest

from tilec.children import Crashed, run_in_children
from tilec.diagnostics.setup_error import SetupError


def results(*jobs, limit=2):
    found = dict(run_in_children(jobs, limit))
    return [found[index] for index in range(len(jobs))]


def abort_after_saying(text: str) -> None:
    os.write(2, text.encode())
    os.abort()


def fail() -> None:
    raise ValueError("broken invariant")


def test_gives_each_result_with_its_index():
    assert results(*(partial(pow, 2, n) for n in range(9)), limit=3) == [2**n for n in range(9)]


def test_gives_results_larger_than_a_pipe_holds():
    assert results(partial(bytes, 3_000_000), partial(bytes, 5_000_000)) == [
        bytes(3_000_000),
        bytes(5_000_000),
    ]


def test_an_abort_costs_only_its_own_job_and_keeps_what_was_printed():
    good, bad, last = results(partial(pow, 2, 3), partial(abort_after_saying, "why"), partial(int))
    assert (good, last) == (8, 0)
    assert bad.reason == "killed by SIGABRT" and not bad.from_outside
    assert bad.details.startswith("why")
    assert "in abort_after_saying" in bad.details


def test_a_killed_child_is_a_crash():
    [answer] = results(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert answer == Crashed("killed by SIGKILL", "", from_outside=True)


def test_an_exception_is_a_crash_with_its_traceback():
    [answer] = results(fail)
    assert answer.reason == "ValueError: broken invariant"
    assert "in fail" in answer.details


def test_a_child_that_leaves_without_a_result_is_a_crash():
    [answer] = results(partial(os._exit, 3))
    assert answer.reason == "ended with status 3"


def test_a_setup_error_is_raised_in_the_parent():
    def job() -> None:
        raise SetupError("no ptxas", help="install it")

    with pytest.raises(SetupError, match="no ptxas") as caught:
        results(job)
    assert caught.value.help == "install it"


def test_no_more_children_than_the_limit_run_at_once():
    def start_and_end() -> tuple[float, float]:
        start = time.monotonic()
        time.sleep(0.05)
        return start, time.monotonic()

    spans = results(*[start_and_end] * 4, limit=1)
    for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
        assert start >= end


def test_stopping_early_kills_what_still_runs():
    jobs = [os.getpid, partial(time.sleep, 60)]
    started = time.monotonic()
    children = run_in_children(jobs, 2)
    next(children)
    children.close()
    assert time.monotonic() - started < 30


def test_what_a_child_prints_does_not_reach_the_terminal(capfd):
    results(partial(os.write, 1, b"noise"), partial(os.write, 2, b"noise"))
    assert capfd.readouterr() == ("", "")
