"""From the results of files to what is said and to an exit status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilec.buildsystem.build import Result, Status, refuse_untaken
from tilec.cli.entry import DONE, INTERNAL, REFUSED
from tilec.cli.report import Reporter
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
    return max((_STATUS[result.status] for result in results), default=DONE)


def report_problems(result: Result, reporter: Reporter) -> None:
    """The diagnostics of one file, or that the compiler failed on it."""
    texts = {name: SourceFile(name, text) for name, text in result.compiled.texts.items()}
    reporter.diagnostics(result.compiled.diagnostics, {**result.sources.files, **texts})
    if result.crash:
        reporter.internal_error(
            result.crash.reason,
            result.crash.details,
            result.sources.files.values(),
            about=result.sources.root.name,
        )
