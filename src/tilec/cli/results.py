"""From the results of files to what is said and to an exit status."""

from __future__ import annotations

from collections.abc import Iterable

from tilec.buildsystem.build import Result, Status
from tilec.cli.entry import DONE, INTERNAL, REFUSED
from tilec.cli.report import Reporter

_STATUS = {
    Status.DONE: DONE,
    Status.REUSED: DONE,
    Status.REFUSED: REFUSED,
    Status.CRASHED: INTERNAL,
}


def worst(statuses: Iterable[Status]) -> int:
    """The exit status of a command over several files."""
    return max((_STATUS[status] for status in statuses), default=DONE)


def report_problems(result: Result, reporter: Reporter) -> None:
    """The diagnostics of one file, or that the compiler failed on it."""
    reporter.diagnostics(result.compiled.diagnostics, result.sources.files)
    if result.crash:
        reporter.internal_error(
            result.crash.reason,
            result.crash.details,
            result.sources.files.values(),
            about=result.sources.root.name,
        )
