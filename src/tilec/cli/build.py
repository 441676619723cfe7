"""`tilec build`: files to cubins."""

from __future__ import annotations

import re
from pathlib import Path

import click

from tilec.buildsystem.build import Request, Result, Status, build
from tilec.buildsystem.cache import Opened, open_cache
from tilec.cli.options import instances, proving, reviewing, words
from tilec.cli.report import Reporter
from tilec.cli.results import in_order, report_problems, status_of
from tilec.cli.timings import report_timings, write_timings
from tilec.compilation import DEFAULT_TARGETS, EMITTABLE, Options
from tilec.target.resolve import resolve


def _emitted(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    chosen = words(ctx, parameter, values)
    for word in chosen:
        if word not in EMITTABLE:
            raise click.BadParameter(f"expected some of {', '.join(EMITTABLE)}, got `{word}`")
    return chosen


def _prefix(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)?", value):
        raise click.BadParameter(f"expected letters, digits and `_`, got `{value}`")
    return value


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "folder", default="build", metavar="DIR", help="Where to write.  [build]")
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=words,
    metavar="NAME,…",
    help=f"What to build for.  [{','.join(DEFAULT_TARGETS)}]",
)
@click.option(
    "--emit",
    multiple=True,
    callback=_emitted,
    metavar="WHAT,…",
    help=f"What to write beside the cubin and the manifest: {', '.join(EMITTABLE)}.",
)
@click.option(
    "--prefix",
    default="",
    callback=_prefix,
    metavar="NAME",
    help="What the public names of launchers begin with.",
)
@click.option(
    "--checked",
    is_flag=True,
    help="A debug build: `assert!`, integer divisions by zero or that overflow, and accesses that "
    "miss their tensor end the launch, and say in which line.",
)
@click.option(
    "--fatbin",
    is_flag=True,
    help="Also join the cubins of all targets as NAME.fatbin, of which loaders take the one that "
    "is for the device.",
)
@click.option("-j", "jobs", type=click.IntRange(min=1), help="Files at a time.  [all cores]")
@click.option("--no-cache", is_flag=True, help="Compile what is unchanged too, and keep nothing.")
@click.option(
    "--timings",
    is_flag=True,
    help="Print what each stage took, per file and in total, and write it as NAME.timings.json.",
)
@proving
@instances
@reviewing
def command(
    files: tuple[str, ...],
    folder: str,
    targets: tuple[str, ...],
    emit: tuple[str, ...],
    prefix: str,
    checked: bool,
    fatbin: bool,
    jobs: int | None,
    no_cache: bool,
    timings: bool,
    proof_budget: int,
    defines: tuple[str, ...],
    instances: tuple[str, ...],
    include: tuple[str, ...],
    reporter: Reporter,
) -> int:
    """Compile FILES to cubins.

    For `add.tile` this writes `add.sm_90a.cubin`, one for each target, and its manifest `add.json`
    (`add.sm_90a.json` and so on where there are several targets; `--fatbin` joins the cubins). All
    files of one input appear together or, when it has errors, not at all. What is unchanged is not
    compiled again.
    """
    targets = targets or DEFAULT_TARGETS
    for target in map(resolve, targets):
        if target.described_as:
            reporter.note(f"target `{target.name}` is built by the facts of {target.described_as}")
    opened = Opened(None) if no_cache else open_cache()
    if opened.note is not None:
        reporter.note(opened.note)
    request = Request(
        files=files,
        options=Options(
            targets,
            defines,
            instances,
            emit,
            prefix,
            checked,
            fatbin,
            proof_budget=proof_budget,
        ),
        folder=Path(folder),
        include=include,
        jobs=jobs,
        cache=opened.cache,
    )
    results = []
    for result in in_order(build(request), files, reporter):
        results.append(result)
        report_problems(result, reporter)
        _report_outputs(result, reporter)
    if timings:
        report_timings(results, reporter)
        write_timings(results, Path(folder))
    return status_of(results)


def _report_outputs(result: Result, reporter: Reporter) -> None:
    if result.status not in (Status.DONE, Status.REUSED):
        return
    name = result.sources.root.name
    for note in result.notes:
        reporter.note(note)
    if not result.outputs:
        reporter.line(f"{name}: no kernels, nothing to build")
    elif not result.changed:
        reporter.line(f"{name}: unchanged")
    else:
        reporter.line(f"{name}: {' '.join(map(str, result.outputs))}")
