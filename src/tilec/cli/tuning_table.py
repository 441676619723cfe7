"""What `tilec tune` says while it measures: a line a shape, and how far it is.

On a terminal that has rich, the progress is rich's; elsewhere there is a plain line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from tilec.artifact.family import Family
from tilec.cli.report import Reporter
from tilec.printable import printable
from tilec.tune.session import Listener
from tilec.tune.trial import Outcome

_HEAD = ("shape", "fastest", "µs", "next", "slower by", "without tuning", "slower by")


@contextmanager
def listener(reporter: Reporter) -> Iterator[Listener]:
    """Tells a reporter what happens."""
    table = _Table(reporter)
    if reporter.quiet or reporter.json or not sys.stderr.isatty() or find_spec("rich") is None:
        yield Listener(lambda *_: None, table.outcome, reporter.error)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("")

        def begin(number: int, total: int, family: Family, extents: tuple[int, ...]) -> None:
            description = f"{printable(family.name)} {_shape(extents)}"
            progress.update(task, total=total, completed=number - 1, description=description)

        yield Listener(begin, table.outcome, reporter.error)


class _Table:
    """Lines of a table, each as soon as it is known."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._family: Family | None = None

    def outcome(self, family: Family, found: Outcome) -> None:
        if family != self._family:
            between = "" if self._family is None else "\n"
            self._reporter.line(f"{between}{family.name} ({', '.join(family.dims)})")
            self._family = family
            self._line(family, _HEAD)
        others = sorted(
            (us, name) for name, us in found.times.items() if name != found.trial.member
        )
        next_us, next_name = others[0] if others else (found.trial.us, "")
        slowdown = found.guess_slowdown
        row = (
            _shape(found.trial.extents),
            _short(family, found.trial.member),
            f"{found.trial.us:.2f}",
            _short(family, next_name),
            f"{next_us / found.trial.us:.3f}" if others else "",
            _short(family, found.guess),
            "" if slowdown is None else f"{slowdown:.3f}",
        )
        self._line(family, row)

    def _line(self, family: Family, cells: tuple[str, ...]) -> None:
        wide = max(len(_short(family, member)) for member in family.members)
        name = max(wide, len("without tuning"))
        widths = (20, name, 9, name, 9, name, 9)
        text = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        self._reporter.line(f"  {text}".rstrip())


def _shape(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


def _short(family: Family, member: str) -> str:
    """A member without what all of its family have in their names."""
    return member.removeprefix(family.name).lstrip("_") or member
