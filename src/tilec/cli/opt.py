"""`tilec opt`: one pass, or several, on a file of MLIR or the module of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from tilec.children import Crashed, run_in_children
from tilec.cli.entry import DONE, REFUSED
from tilec.cli.options import reporting
from tilec.cli.output import say
from tilec.cli.report import Reporter
from tilec.cli.results import report_crash
from tilec.diagnostics.setup_error import SetupError
from tilec.regular_files import TEXT_LIMIT, read_regular, read_regular_text, read_stream
from tilec.source import SourceFile
from tilec.sources import read_sources
from tilec.target.resolve import DEFAULT, resolve

if TYPE_CHECKING:
    from tilec.rewriting import Rewritten


@click.command()
@click.argument("file")
@click.option(
    "--passes",
    required=True,
    metavar="PASS,…",
    help="tilec's passes by name, and MLIR's as its pipelines have them, in the order to run.",
)
@click.option(
    "--target", default=DEFAULT, show_default=True, help="What the passes write code for."
)
@click.option("--locations", is_flag=True, help="Print the place of each operation too.")
@reporting
def command(file: str, passes: str, target: str, locations: bool, reporter: Reporter) -> int:
    """Run passes on FILE and print what becomes of it.

    FILE is a module of MLIR (`-` for standard input), or a `.tile` file: its module is then the
    one that the front end emits, before checks. Checks are passes too, as `tile-verify-ownership`.
    """
    job, sources = _job(file, passes, target, locations=locations)
    # In a child: malformed IR can abort the process.
    [(_, answer)] = run_in_children([job], 1)
    if isinstance(answer, Crashed):
        return report_crash(answer, sources.values(), file, reporter)
    reporter.diagnostics(answer.diagnostics, sources)
    for warning in answer.warnings:
        reporter.warning(warning)
    for message in answer.errors:
        reporter.error(message)
    if answer.errors or answer.diagnostics:
        return REFUSED
    say(answer.text, nl=False)
    return DONE


def _job(
    file: str, names: str, target: str, *, locations: bool
) -> tuple[Callable[[], Rewritten], Mapping[str, SourceFile]]:
    """What to do, and the texts that it is about."""
    from tilec.rewriting import Passes, run_passes, run_passes_on_program

    passes = Passes(names, resolve(target), locations)
    if file.endswith(".tile"):
        sources = read_sources(file)
        return partial(run_passes_on_program, sources, passes), sources.files
    source = SourceFile(file, _text(file))
    return partial(run_passes, source, passes, _text_of_place), {file: source}


def _text(file: str) -> str:
    try:
        if file == "-":
            return read_stream(sys.stdin.buffer, TEXT_LIMIT, file).decode()
        return read_regular_text(file)
    except UnicodeDecodeError as error:
        raise SetupError(f"`{file}` is not UTF-8") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{file}`: {reason}") from error


def _text_of_place(name: str) -> SourceFile | None:
    """The file that locations name; None if it is not to be had."""
    try:
        return SourceFile(name, read_regular(name, TEXT_LIMIT).decode("utf-8-sig"))
    except (OSError, ValueError):
        return None
