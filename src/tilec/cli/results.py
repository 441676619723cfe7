"""From the results of files to what is said and to an exit status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilec.buildsystem.build import Result, Status, refuse_untaken
from tilec.children import Crashed
from tilec.cli.entry import DONE, INTERNAL, REFUSED, USAGE
from tilec.cli.report import Reporter
from tilec.diagnostics.diagnostic import Severity
from tilec.diagnostics.setup_error import SetupError
from tilec.source import SourceFile

_STATUS = {
    Status.DONE: DONE,
    Status.REUSED: DONE,
    Status.REFUSED: REFUSED,
    Status.CRASHED: INTERNAL,
}


def in_order(
    results: Iterable[Result], files: Sequence[str], reporter: Reporter
) -> Iterator[Result]:
    """The results in the order of the files, each as soon as those before it are there."""
    order = list(dict.fromkeys(files))
    finished: dict[str, Result] = {}
    position = 0
    for count, result in enumerate(results, 1):
        finished[result.sources.root.name] = result
        reporter.progress(count, len(order), result.sources.root.name)
        while position < len(order) and order[position] in finished:
            yield finished[order[position]]
            position += 1


def status_of(results: Sequence[Result]) -> int:
    """The exit status of a command over several files: the worst of theirs.

    Raises:   SetupError if an option fits no kernel
    """
    refuse_untaken(results)
    return max(map(_status, results), default=DONE)


def report_problems(result: Result, reporter: Reporter) -> None:
    """The diagnostics of one file, or that the compiler failed on it."""
    texts = {name: SourceFile(name, text) for name, text in result.compiled.texts.items()}
    # A document holds all that was found, whatever is printed.
    are_told = not reporter.quiet or reporter.sarif
    found = [
        one
        for one in result.compiled.diagnostics
        if are_told or one.severity is not Severity.WARNING
    ]
    reporter.diagnostics(found, {**result.sources.files, **texts})
    if result.crash:
        files = result.sources.files.values()
        report_crash(result.crash, files, result.sources.root.name, reporter)


def report_crash(
    crash: Crashed, files: Iterable[SourceFile], about: str, reporter: Reporter
) -> int:
    """Say that a child process did not end as it should, and give the exit status of that."""
    if not crash.from_outside:
        reporter.internal_error(crash.reason, crash.details, files, about=about)
        return INTERNAL
    reporter.setup_error(
        SetupError(
            f"`{about}`: the process that worked on it was {crash.reason}",
            help="by the system for lack of memory, most likely: `build` and `check` take fewer "
            "files at a time by `-j 1`",
        )
    )
    return USAGE


def _status(result: Result) -> int:
    return USAGE if result.crash and result.crash.from_outside else _STATUS[result.status]
