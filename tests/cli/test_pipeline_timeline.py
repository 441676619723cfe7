"""The timeline of a pipelined loop, as `tilec inspect --schedule` prints it."""

from __future__ import annotations

from tilec.artifact.schedule_report import ScheduledPipeline, ScheduledTask
from tilec.cli.schedule_details import _pipeline

TASKS = (
    ScheduledTask("linalg.matmul", "a.tile", 5, 9, "tensor cores", 0, 0, 512),
    ScheduledTask("math.exp2", "a.tile", 6, 9, "threads", 1, 32, 600),
)


def _lines(interval: int) -> list[str]:
    pipeline = ScheduledPipeline("a.tile", 4, 5, interval, 1100, 512, 568, 96, TASKS)
    return [line.strip() for line in _pipeline(pipeline)]


def test_tasks_stand_under_their_unit_in_order() -> None:
    assert [line.split() for line in _lines(600)[4:]] == [
        ["cycle", "stage", "threads", "tensor", "cores"],
        ["0", "0", "issue", *["linalg.matmul", "at", "a.tile:5:9", "until", "512"]],
        ["32", "1", *["math.exp2", "at", "a.tile:6:9", "until", "600"]],
    ]


def test_only_an_interval_that_fills_a_unit_is_the_best() -> None:
    assert _lines(569)[1].endswith("569 (1100 as written)")
    assert _lines(568)[1].endswith("568 (1100 as written, and none is shorter)")
