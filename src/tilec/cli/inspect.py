"""`tilec inspect`: what a cubin, a fat binary or a manifest holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from tilec.artifact.embed import CubinError
from tilec.artifact.manifest import Kernel, Manifest, ManifestError, Variant
from tilec.cli.entry import DONE, REFUSED
from tilec.cli.family_details import family_lines
from tilec.cli.kernel_details import kernel_lines
from tilec.cli.launch_times import read_times
from tilec.cli.lowering_details import accesses_of, layouts_of, movements_of, shared_of
from tilec.cli.manifests import read_manifests
from tilec.cli.output import say, say_aside
from tilec.cli.pipeline_details import pipeline_lines
from tilec.cli.pipeline_dot import dot_of
from tilec.cli.schedule_details import schedule_of
from tilec.diagnostics.setup_error import SetupError
from tilec.layout import LayoutError
from tilec.printable import printable
from tilec.target.description import Target
from tilec.target.resolve import resolve

# What of a variant to show, in the order of the options below.
_Details = Callable[[Kernel, Variant], Iterator[str]]
_DETAILS: dict[str, _Details] = {
    "schedule": schedule_of,
    "accesses": accesses_of,
    "movements": movements_of,
    "shared": shared_of,
    "layouts": layouts_of,
}


@click.command()
@click.argument("files", nargs=-1)
@click.option(
    "--kernel", help="Only this kernel or pipeline, this instance, or those of some types."
)
@click.option("--variant", help="Details of this variant, instead of the first of each instance.")
@click.option("--schedule", is_flag=True, help="Who copies what ahead, how far, and why.")
@click.option("--accesses", is_flag=True, help="Accesses to global memory: widths, sectors.")
@click.option(
    "--movements", is_flag=True, help="Changes of layout, reductions, products: what they cost."
)
@click.option("--shared", is_flag=True, help="Buffers in shared memory, and barriers.")
@click.option("--layouts", is_flag=True, help="Layouts of tiles, drawn: which thread holds what.")
@click.option("--all", "everything", is_flag=True, help="All of these.")
@click.option("--families", is_flag=True, help="What was measured of families, shape by shape.")
@click.option(
    "--pick",
    "picks",
    multiple=True,
    metavar="SHAPE",
    help="What costs are estimated for the members of families at a shape: `M=64,N=64`, `64x64`.",
)
@click.option(
    "--workspace",
    "shapes",
    multiple=True,
    metavar="SHAPE",
    help="How large the workspace of pipelines is at a shape: `M=64,N=64`.",
)
@click.option(
    "--dot",
    is_flag=False,
    flag_value="",
    metavar="[PIPELINE]",
    help="Write pipelines, or this one, as graphs for Graphviz, and nothing else.",
)
@click.option(
    "--times",
    metavar="FILE.json",
    help='Microseconds by launch, for the graph: `{"0": 3.2, "1": 4.1}`.',
)
def command(
    files: tuple[str, ...],
    kernel: str | None,
    variant: str | None,
    everything: bool,
    families: bool,
    picks: tuple[str, ...],
    shapes: tuple[str, ...],
    dot: str | None,
    times: str | None,
    **wanted: bool,
) -> int:
    """Show what cubins, fat binaries and manifests (FILES) hold.

    That is instances, their contracts and variants, and pipelines, their launches and workspace; of
    a fat binary, for one target after another.

    Spills and stack are bytes a thread, smem is bytes a block (static + dynamic). Occupancy is how
    many blocks a multiprocessor holds, their share of its warps, and what limits them. Conflicts
    are the bank conflicts of a warp.
    """
    details = [show for name, show in _DETAILS.items() if everything or wanted[name]]
    if dot and Path(dot).is_file():  # `--dot FILE`: the name of a pipeline was left out
        files, dot = (dot, *files), ""
    if not files:
        raise click.UsageError("Missing argument 'FILES...'.")
    if times is not None and dot is None:
        raise click.UsageError("'--times' goes with '--dot'.")
    times_us = read_times(times) if times is not None else {}
    status = DONE
    for file in files:
        try:
            manifests = read_manifests(file)
            if dot is not None:
                say(_graphs(manifests, dot or kernel, times_us, file))
                continue
            lines: list[str] = []
            for chosen in _chosen(manifests, kernel, variant, file):
                lines += [""] if lines else []
                lines += _description(chosen, variant, details)
                lines += pipeline_lines(chosen.pipelines, chosen.source.file, shapes)
                target = _target(chosen)
                lines += family_lines(chosen, target, picks, tables=families or everything)
        except (CubinError, ManifestError, LayoutError) as error:
            say_aside(f"error: {printable(f'`{file}`: {error}')}")
            status = REFUSED
            continue
        say("\n".join(lines))
    return status


def _chosen(
    manifests: Sequence[Manifest], kernel: str | None, variant: str | None, file: str
) -> list[Manifest]:
    """The manifests with only what was asked for; those without any of it are left out.

    Raises:   SetupError if there are none
    """
    if kernel is None and variant is None:
        return list(manifests)
    narrowed = [_narrowed(manifest, kernel, variant) for manifest in manifests]
    found = [manifest for manifest in narrowed if manifest.kernels or manifest.pipelines]
    if found:
        return found
    kernels = [kernel for manifest in manifests for kernel in manifest.kernels]
    names = [v.symbol for k in kernels for v in k.variants]
    if variant is None:
        names = [k.symbol for k in kernels]
        names += [p.symbol for manifest in manifests for p in manifest.pipelines]
    raise SetupError(
        f"`{file}` has no {'kernel' if variant is None else 'variant'} `{variant or kernel}`",
        help=f"expected one of {', '.join(dict.fromkeys(names))}",
    )


def _narrowed(manifest: Manifest, kernel: str | None, variant: str | None) -> Manifest:
    found = manifest.kernels
    if kernel is not None:
        of_types = {m for f in manifest.families if f.name == kernel for m in f.members}
        found = tuple(k for k in found if kernel in (k.name, k.symbol) or k.symbol in of_types)
    if variant is not None:
        found = tuple(k for k in found if variant in [v.symbol for v in k.variants])
    pipelines = tuple(
        p for p in manifest.pipelines if variant is None and kernel in (p.name, p.symbol)
    )
    return replace(manifest, kernels=found, pipelines=pipelines)


def _graphs(
    manifests: Sequence[Manifest], name: str | None, times_us: Mapping[int, float], file: str
) -> str:
    """The graphs of the pipelines of a name, or of all; what several targets have, once.

    Raises:   SetupError if there are none, or times are of launches that there are not
    """
    found = {p.symbol: (p, m) for m in reversed(manifests) for p in m.pipelines}
    chosen = [(p, m) for p, m in found.values() if name in (None, p.name, p.symbol)]
    if not chosen:
        wanted = "no pipeline" if name is None else f"no pipeline `{name}`"
        expected = f"expected one of {', '.join(found)}" if found else None
        raise SetupError(f"`{file}` has {wanted}", help=expected)
    for pipeline, _ in chosen:
        beyond = [number for number in times_us if number >= len(pipeline.launches)]
        if beyond:
            raise SetupError(f"`{pipeline.symbol}` has no launch {beyond[0]}, which has a time")
    return "\n".join(dot_of(pipeline, manifest, times_us) for pipeline, manifest in chosen)


def _description(
    manifest: Manifest, variant: str | None, details: Sequence[_Details]
) -> Iterator[str]:
    target = _target(manifest)
    tools = manifest.toolchain
    checked = ", a checked build" if manifest.checked else ""
    yield f"{manifest.source.file} for {manifest.target}{checked}"
    yield f"  by tilec {tools.tilec}, MLIR {tools.mlir}, ptxas {tools.ptxas}"
    yield f"  source SHA-256 {manifest.source.sha256}"
    for kernel in manifest.kernels:
        yield ""
        yield from kernel_lines(kernel, manifest.source.file, target)
        shown = next(v for v in kernel.variants if variant in (None, v.symbol))
        for show in details:
            yield from show(kernel, shown)


def _target(manifest: Manifest) -> Target:
    return resolve(manifest.target, lambda: frozenset({manifest.target}))
