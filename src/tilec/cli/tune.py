"""`tilec tune`: which member of a family is the fastest at which extents, on this machine's GPU."""

from __future__ import annotations

from pathlib import Path

import click

from tilec.cli.entry import DONE, REFUSED
from tilec.cli.options import reporting
from tilec.cli.report import Reporter
from tilec.diagnostics.setup_error import SetupError


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--shapes",
    multiple=True,
    required=True,
    metavar="SHAPES",
    help="Extents: `M=512,N=512,K=64` or `512x512x64`, several between blanks; `@FILE` for those "
    "of a file. Repeatable.",
)
@click.option("--kernel", help="Only this kernel, or this family of it (`matmul__bf16`).")
@click.option(
    "--arg", "scalars", multiple=True, metavar="NAME=NUMBER", help="The value of a scalar."
)
@click.option(
    "--fill",
    "spans",
    multiple=True,
    metavar="NAME=LOW:HIGH",
    help="What a tensor is filled with: numbers from LOW to below HIGH. By default floats are "
    "normal, and integers 0 and 1.",
)
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="The tuning file, or its folder.  [beside the cubin]",
)
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option(
    "--sample-ms",
    type=click.FloatRange(min=0.01),
    default=2.0,
    show_default=True,
    help="About how long one sample takes.",
)
@reporting
def command(
    file: Path,
    shapes: tuple[str, ...],
    kernel: str | None,
    scalars: tuple[str, ...],
    spans: tuple[str, ...],
    output: Path | None,
    rounds: int,
    sample_ms: float,
    reporter: Reporter,
) -> int:
    """Measure the members of the families of FILE (a cubin or its manifest), and write down which
    one is the fastest at each shape.

    It needs a GPU, PyTorch, and what `tilec build` wrote, here or elsewhere. That all members give
    the same results is checked first; outputs are put back between trials. The next `tilec build`
    reads the file where it lies beside the source. The exit status is 1 if members differ, or none
    can be launched.
    """
    from tilec.bench.sampling import Settings
    from tilec.tune.arguments import Values
    from tilec.tune.session import Request, cubin_of, families_named, output_of, run
    from tilec.tune.shapes import extents_of, listed

    cubin, manifest = cubin_of(file)
    families = families_named(manifest, kernel)
    wanted = listed(shapes)
    for family in families:  # before anybody waits for a GPU
        for shape in wanted:
            extents_of(shape, family.dims)
    values = Values(_numbers(scalars), {name: _span(text) for name, text in _pairs(spans)})
    settings = Settings(rounds, sample_ms * 1e3)
    request = Request(cubin, kernel, wanted, values, output_of(output, cubin, manifest), settings)

    import tilec.runtime as rt
    from tilec.bench.torch_gpu import torch_gpu
    from tilec.cli.tuning_table import listener
    from tilec.runtime.cuda_driver import cuda_driver

    gpu = torch_gpu()
    try:
        card = cuda_driver().card(None)
        with listener(reporter) as tell:
            is_well = run(request, gpu, card, rt.load(cubin), tell)
    except rt.TilecError as error:
        raise SetupError(str(error)) from error
    if request.output.exists():
        reporter.line(f"\n{request.output}: lies beside {manifest.source.file}, or is put there")
    return DONE if is_well else REFUSED


def _pairs(words: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise SetupError(f"expected `NAME=…`, got `{word}`")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _numbers(words: tuple[str, ...]) -> dict[str, float]:
    return {name: _number(text) for name, text in _pairs(words)}


def _span(text: str) -> tuple[float, float]:
    low, colon, high = text.partition(":")
    if not colon:
        raise SetupError(f"expected `LOW:HIGH`, got `{text}`")
    return _number(low), _number(high)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SetupError(f"expected a number, got `{text}`") from None
