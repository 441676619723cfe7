"""`tilec check`: the errors of files."""

from __future__ import annotations

import click

from tilec.buildsystem.build import Request, Status, check
from tilec.cli.options import instances, reporting
from tilec.cli.report import Reporter
from tilec.cli.results import in_order, report_problems, status_of
from tilec.compilation import Options


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("-j", "jobs", type=click.IntRange(min=1), help="Files at a time.  [all cores]")
@instances
@reporting
def command(
    files: tuple[str, ...],
    jobs: int | None,
    defines: tuple[str, ...],
    instances: tuple[str, ...],
    include: tuple[str, ...],
    reporter: Reporter,
) -> int:
    """Find the errors of FILES, and write nothing.

    Operations that type-check but have no GPU code yet are accepted here and refused by `build`.
    """
    request = Request(
        files=files,
        options=Options(defines=defines, instances=instances),
        include=include,
        jobs=jobs,
    )
    results = []
    for result in in_order(check(request), files, reporter):
        results.append(result)
        report_problems(result, reporter)
        if result.status is Status.DONE:
            reporter.line(f"{result.sources.root.name}: ok")
    return status_of(results, reporter)
