"""`tilec opt`: one pass, or several, on a file of MLIR."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from tilec.buildsystem.children import Crashed, run_in_children
from tilec.cli.entry import DONE, INTERNAL, REFUSED
from tilec.cli.options import reporting
from tilec.cli.report import Reporter
from tilec.diagnostics.setup_error import SetupError
from tilec.source import SourceFile
from tilec.target.resolve import DEFAULT, resolve


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
@reporting
def command(file: str, passes: str, target: str, reporter: Reporter) -> int:
    """Run passes on FILE (`-` for standard input) and print what becomes of it."""
    from tilec.rewriting import run_passes

    source = SourceFile(file, _text(file))
    job = partial(run_passes, source, passes, resolve(target))
    # In a child: malformed IR can abort the process.
    [(_, answer)] = run_in_children([job], 1)
    if isinstance(answer, Crashed):
        reporter.internal_error(answer.reason, answer.details, [source], about=file)
        return INTERNAL
    for message in answer.errors:
        reporter.error(message)
    if answer.errors:
        return REFUSED
    click.echo(answer.text, nl=False)
    return DONE


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SetupError(f"`{file}` is not UTF-8") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SetupError(f"cannot read `{file}`: {reason}") from error
