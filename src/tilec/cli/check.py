"""`tilec check`: the errors of files."""

from __future__ import annotations

import click

from tilec.buildsystem.build import Request, Status, check
from tilec.cli.options import instances, proving, reviewing
from tilec.cli.output import say
from tilec.cli.proofs import report_json, report_lines
from tilec.cli.report import Reporter
from tilec.cli.results import in_order, report_problems, status_of
from tilec.compilation import DENIABLE, KernelReport, Options
from tilec.diagnostics.setup_error import SetupError


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("-j", "jobs", type=click.IntRange(min=1), help="Files at a time.  [all cores]")
@click.option("--report", is_flag=True, help="List each access and what was proved of it.")
@click.option(
    "--deny",
    multiple=True,
    type=click.Choice(DENIABLE),
    help="Make it an error that a kernel checks at run time whether an access is inside.",
)
@proving
@instances
@reviewing
def command(
    files: tuple[str, ...],
    jobs: int | None,
    report: bool,
    deny: tuple[str, ...],
    proof_budget: int,
    defines: tuple[str, ...],
    instances: tuple[str, ...],
    include: tuple[str, ...],
    reporter: Reporter,
) -> int:
    """Find the errors of FILES, and write nothing.

    With --report, each load and store is listed with its place, and how it is known to be inside
    its tensor: `proved` for every launch, `launch-checked` where it is in each launch whose extents
    and scalars meet the condition shown (integers of any size), or `in-kernel` where only the
    machine code can know. What is not proved keeps its mask in the code, whatever a launch's
    numbers: state the condition in `requires!` to have none. With --error-format=json the report
    is one object an instance, on standard output; a SARIF document has no place for it.

    Operations that type-check but have no GPU code yet are accepted here and refused by `build`.
    """
    if report and reporter.sarif:
        raise SetupError("a SARIF document holds no report: ask for one of the two")
    request = Request(
        files=files,
        options=Options(
            defines=defines,
            instances=instances,
            report=report,
            deny=deny,
            proof_budget=proof_budget,
        ),
        include=include,
        jobs=jobs,
    )
    results = []
    for result in in_order(check(request), files, reporter):
        results.append(result)
        report_problems(result, reporter)
        for kernel in result.compiled.reports:
            _say(result.sources.root.name, kernel, reporter)
        if result.status is Status.DONE and not report:
            reporter.line(f"{result.sources.root.name}: ok")
    return status_of(results)


def _say(file: str, kernel: KernelReport, reporter: Reporter) -> None:
    lines = [report_json(file, kernel)] if reporter.json else report_lines(file, kernel)
    for line in lines:
        say(line)
