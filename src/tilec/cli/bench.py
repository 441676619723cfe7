"""`tilec bench`: kernels of prebuilt cubins against rivals, on this machine's GPU."""

from __future__ import annotations

from pathlib import Path

import click

from tilec.cli.entry import DONE, REFUSED
from tilec.cli.options import reporting, words
from tilec.cli.report import Reporter
from tilec.diagnostics.setup_error import SetupError


@click.command()
@click.argument("descriptions", nargs=-1, metavar="[DESCRIPTION.py]...")
@click.option("--list", "only_list", is_flag=True, help="Name the cases; needs no GPU.")
@click.option(
    "--only",
    multiple=True,
    callback=words,
    metavar="PATTERN",
    help="Cases whose `benchmark case` has this in it; `*` is anything. Repeatable.",
)
@click.option(
    "--rivals",
    multiple=True,
    callback=words,
    metavar="NAMES",
    help="Only these rivals, `none` for none. Comma-separated; by default all.",
)
@click.option(
    "--build",
    type=click.Path(path_type=Path),
    default=Path("build"),
    show_default=True,
    metavar="DIR",
    help="Where the cubins are.",
)
@click.option("--target", help="The cubins to take; by default those of the GPU at hand.")
@click.option("--rounds", type=click.IntRange(min=1), default=15, show_default=True)
@click.option(
    "--sample-ms",
    type=click.FloatRange(min=0.01),
    default=3.0,
    show_default=True,
    help="About how long one sample takes.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a JSON file for each benchmark, with every sample.",
)
@reporting
def command(
    descriptions: tuple[str, ...],
    only_list: bool,
    only: tuple[str, ...],
    rivals: tuple[str, ...],
    build: Path,
    target: str | None,
    rounds: int,
    sample_ms: float,
    save: Path | None,
    reporter: Reporter,
) -> int:
    """Measure kernels against rivals, as DESCRIPTIONs say: by default all `benchmarks/bench_*.py`.

    It needs a GPU, PyTorch, and cubins that `tilec build` wrote, here or elsewhere: of tilec only
    the runtime. Rivals that are not installed are left out. The exit status is 1 if one of our
    kernels is missing or wrong; times decide nothing.
    """
    from tilec.bench.loading import benchmarks_of, default_files, matching
    from tilec.bench.sampling import Settings
    from tilec.bench.session import Request, run
    from tilec.bench.table import listed

    files = [Path(name) for name in descriptions] or default_files()
    found = matching([b for path in files for b in benchmarks_of(path)], only)
    if not found:
        raise SetupError("no case has that name: `--list` names them")
    known = {rival.name for benchmark in found for rival in benchmark.rivals}
    for name in sorted(set(rivals) - known - {"none"}):
        raise SetupError(f"no rival is called `{name}`; there are {', '.join(sorted(known))}")
    if only_list:
        for benchmark in found:
            reporter.line(listed(benchmark))
        return DONE
    from tilec.bench.torch_gpu import torch_gpu

    settings = Settings(rounds, sample_ms * 1e3)
    request = Request(found, build, target, rivals or None, settings, save)
    is_right = run(request, torch_gpu(), reporter.line, reporter.warning)
    return DONE if is_right else REFUSED
