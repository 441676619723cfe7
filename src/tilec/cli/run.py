"""`tilec run`: one launch of a kernel, or one run of a pipeline, on .npy files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tilec.buildsystem.writing import write_together
from tilec.children import Crashed, run_in_children
from tilec.cli.entry import DONE, REFUSED
from tilec.cli.options import instances, reporting
from tilec.cli.report import Reporter
from tilec.cli.results import report_crash
from tilec.compilation import Options
from tilec.diagnostics.setup_error import SetupError
from tilec.regular_files import BINARY_LIMIT, read_regular
from tilec.source import SourceFile
from tilec.sources import read_sources

Argument = bytes | int | float | bool  # the content of an .npy file, or a scalar


def _pairs(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or not rest or name in found:
            raise click.BadParameter(f"expected each NAME=VALUE once, got `{value}`")
        found[name] = rest
    return found


@click.command()
@click.argument("file")
@click.option(
    "--kernel", required=True, help="A kernel or a pipeline, or the symbol of an instance."
)
@click.option("--cpu", is_flag=True, required=True, help="Execute on the CPU, with NumPy.")
@click.option(
    "--sanitize",
    is_flag=True,
    help="Watch every access, and report races, unchecked accesses outside, reads of no value.",
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="A tensor from an .npy file, or a number.",
)
@click.option(
    "--out",
    "outputs",
    multiple=True,
    callback=_pairs,
    metavar="NAME=FILE",
    help="Where to write a tensor as it is afterwards.",
)
@instances
@reporting
def command(
    file: str,
    kernel: str,
    cpu: bool,
    sanitize: bool,
    arguments: dict[str, str],
    outputs: dict[str, str],
    defines: tuple[str, ...],
    instances: tuple[str, ...],
    include: tuple[str, ...],
    reporter: Reporter,
) -> int:
    """Execute a kernel or a pipeline of FILE on .npy files: what it means, without a GPU.

    The first instance that fits the arguments is run, and named; where several fit that differ in
    types, no argument says which one is meant, and --kernel takes its symbol. A tensor without
    --arg is zeros, of the extents that the others bind. Without --out, what changed is printed.

    NumPy has no bf16 and f8: they are read from files of uint16 and uint8 (or of the untyped
    bytes that np.save makes of ml_dtypes arrays), and written as uint16 and uint8.

    With --sanitize, accesses in `unsafe` are watched too. A pipeline also runs in other orders that
    its borrows allow, and reads of temporaries without a value are found. What is found is reported
    at its place in the source; nothing is written then, and the exit status is 1.
    """
    from tilec.execution import execute

    if not cpu:
        raise SetupError("give `--cpu`; on a GPU, `tilec.runtime` launches what `build` wrote")
    sources = read_sources(file, include)
    given = {name: _argument(value) for name, value in arguments.items()}
    options = Options(defines=defines, instances=instances)
    _refuse_places(outputs)
    wanted = tuple(outputs)
    job = partial(
        execute, sources, options, kernel, given, wanted, sanitize=sanitize, files=arguments
    )
    [(_, answer)] = run_in_children([job], 1)
    if isinstance(answer, Crashed):
        return report_crash(answer, sources.files.values(), file, reporter)
    texts = {name: SourceFile(name, text) for name, text in answer.compiled.texts.items()}
    found = (*answer.compiled.diagnostics, *answer.findings)
    reporter.diagnostics(found, {**sources.files, **texts})
    if answer.broken:
        reporter.error(answer.broken)
    if answer.symbol not in ("", kernel):
        reporter.note(f"ran `{answer.symbol}`")
    if answer.broken or answer.findings or answer.compiled.is_refused:
        return REFUSED
    for name, path in outputs.items():
        write_together(Path(path).parent, {Path(path).name: answer.written[name]})
    if not outputs:
        reporter.line(answer.shown)
    return DONE


def _refuse_places(outputs: dict[str, str]) -> None:
    """Raises:   SetupError where a tensor cannot be written, before anything is run"""
    places: dict[Path, str] = {}
    for name, path in outputs.items():
        if Path(path).is_dir():
            raise SetupError(f"cannot write `{path}`: is a directory")
        other = places.setdefault(Path(path), name)
        if other != name:
            raise SetupError(f"`{other}` and `{name}` would be written to one file, `{path}`")


def _argument(value: str) -> Argument:
    if value.endswith(".npy"):
        try:
            return read_regular(value, BINARY_LIMIT)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SetupError(f"cannot read `{value}`: {reason}") from error
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise SetupError(f"`{value}` is neither an .npy file nor a number")
