"""`tilec inspect`: what a cubin, a fat binary or a manifest holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import click

from tilec.artifact.embed import CubinError
from tilec.artifact.expression import text_of
from tilec.artifact.floor import Floor, floor_of
from tilec.artifact.geometry import ALONE
from tilec.artifact.manifest import (
    Kernel,
    Manifest,
    ManifestError,
    Precondition,
    TensorMap,
    UnsafeUse,
    Variant,
)
from tilec.artifact.signature import Parameter
from tilec.cli.columns import columns
from tilec.cli.entry import DONE, REFUSED
from tilec.cli.family_details import family_lines
from tilec.cli.lowering_details import accesses_of, layouts_of, movements_of, shared_of
from tilec.cli.manifests import read_manifests
from tilec.cli.schedule_details import schedule_of
from tilec.diagnostics.setup_error import SetupError
from tilec.layout import LayoutError
from tilec.target.description import Target
from tilec.target.occupancy import occupancy
from tilec.target.resolve import resolve

_COLUMNS = (
    "variant", "threads", "registers", "spills", "stack", "smem", "occupancy", "conflicts",
    "taken when",
)  # fmt: skip


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
@click.argument("files", nargs=-1, required=True)
@click.option("--kernel", help="Only this kernel, this instance of it, or those of some types.")
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
def command(
    files: tuple[str, ...],
    kernel: str | None,
    variant: str | None,
    everything: bool,
    families: bool,
    picks: tuple[str, ...],
    **wanted: bool,
) -> int:
    """Show what cubins, fat binaries and manifests (FILES) hold.

    That is instances, their contracts and variants; of a fat binary, for one target after another.

    Spills and stack are bytes a thread, smem is bytes a block (static + dynamic). Occupancy is how
    many blocks a multiprocessor holds, their share of its warps, and what limits them. Conflicts
    are the bank conflicts of a warp.
    """
    details = [show for name, show in _DETAILS.items() if everything or wanted[name]]
    status = DONE
    for file in files:
        try:
            lines: list[str] = []
            for chosen in _chosen(read_manifests(file), kernel, variant, file):
                lines += [""] if lines else []
                lines += _description(chosen, variant, details)
                target = _target(chosen)
                lines += family_lines(chosen, target, picks, tables=families or everything)
        except (CubinError, ManifestError, LayoutError) as error:
            click.echo(f"error: `{file}`: {error}", err=True)
            status = REFUSED
            continue
        click.echo("\n".join(lines))
    return status


def _chosen(
    manifests: Sequence[Manifest], kernel: str | None, variant: str | None, file: str
) -> list[Manifest]:
    """The manifests with only the kernels that were asked for; those without any are left out.

    Raises:   SetupError if there are none
    """
    if kernel is None and variant is None:
        return list(manifests)
    narrowed = [_narrowed(manifest, kernel, variant) for manifest in manifests]
    found = [manifest for manifest in narrowed if manifest.kernels]
    if found:
        return found
    kernels = [kernel for manifest in manifests for kernel in manifest.kernels]
    names = [v.symbol for k in kernels for v in k.variants]
    if variant is None:
        names = [k.symbol for k in kernels]
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
    return replace(manifest, kernels=found)


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
        yield from _kernel(kernel, manifest.source.file, target)
        shown = next(v for v in kernel.variants if variant in (None, v.symbol))
        for show in details:
            yield from show(kernel, shown)


def _target(manifest: Manifest) -> Target:
    return resolve(manifest.target, lambda: frozenset({manifest.target}))


def _kernel(kernel: Kernel, file: str, target: Target) -> Iterator[str]:
    yield f"{kernel.symbol} ({file}:{kernel.line})"
    yield from (f"  {line}" for line in kernel.documentation.splitlines())
    rows = [(p.name, _type(p)) for p in kernel.parameters]
    rows.append(("grid", ", ".join(map(text_of, kernel.grid))))
    rows += [("requires", f"{r.text} (line {r.line})") for r in kernel.requires]
    rows += [("unsafe", f"{use.what} ({_place(use, file)})") for use in kernel.unsafe]
    rows += _floor(floor_of(kernel))
    if kernel.generics:
        bound = ", ".join(f"{g.name} = {_value(g.value)}" for g in kernel.generics)
        rows.insert(0, ("generics", bound))
    yield from columns(rows)
    yield ""
    yield from columns([_COLUMNS, *(_variant(one, target) for one in kernel.variants)])
    for one in kernel.variants:
        special = list(_launched(one))
        if special:
            yield ""
            yield f"  launch of {one.symbol}"
            yield from (f"    {line}" for line in special)


def _floor(floor: Floor) -> Iterator[tuple[str, str]]:
    """The bytes that must move; of tensors that are used in part, some more."""
    title = "floor"
    for direction in ("read", "written"):
        moved = [t for t in floor.transfers if t.direction == direction]
        if moved:
            bytes_ = " + ".join(f"{text_of(one.bytes)} ({one.tensor})" for one in moved)
            yield title, f"{bytes_} bytes {direction}"
            title = ""
    if floor.partial:
        yield title, f"a part of {', '.join(floor.partial)}"


def _place(use: UnsafeUse, file: str) -> str:
    return f"line {use.line}" if use.file == file else f"{use.file}:{use.line}"


def _type(parameter: Parameter) -> str:
    if not parameter.is_tensor:
        return parameter.element
    tensor = f"Tensor<{', '.join(map(str, (parameter.element, *parameter.extents)))}>"
    match parameter.own:
        case "part":
            return f"Part<&mut {tensor}, {', '.join(map(str, parameter.block))}>"
        case "mut":
            return f"&mut {tensor}"
        case "atomic":
            return f"&Atomic<{tensor}>"
        case _:
            return f"&{tensor}"


def _value(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _variant(variant: Variant, target: Target) -> tuple[str, ...]:
    smem = variant.static_smem_bytes + variant.dynamic_smem_bytes
    fits = occupancy(variant.threads, variant.registers, smem, target)
    return (
        variant.symbol,
        str(variant.threads),
        str(variant.registers),
        f"{variant.spill_store_bytes}+{variant.spill_load_bytes}",
        str(variant.stack_bytes),
        f"{variant.static_smem_bytes}+{variant.dynamic_smem_bytes}",
        f"{fits.blocks} x {variant.threads} = {fits.share:.0%} ({', '.join(fits.limits)})",
        str(variant.lowering.bank_conflicts),
        "; ".join(_conditions(variant)) or "always",
    )


def _launched(variant: Variant) -> Iterator[str]:
    """What a launch takes beside parameters and a grid."""
    if variant.cluster != ALONE:
        yield f"clusters of {_shape(variant.cluster)} blocks"
    if variant.split > 1:
        yield f"{variant.split} blocks a program"
    blocks = variant.persistent_blocks_per_sm
    if blocks is not None:
        yield f"persistent, {blocks} block{'s' * (blocks != 1)} for each multiprocessor"
    if variant.tensor_maps:
        yield from columns([_map(one) for one in variant.tensor_maps], "")


def _map(one: TensorMap) -> tuple[str, ...]:
    swizzle = f"{one.swizzle}-byte swizzle" if one.swizzle else "no swizzle"
    use = "written" if one.writes else "read"
    return f"tensor map of {one.param}", f"boxes of {_shape(one.box)}", swizzle, use


def _shape(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def _conditions(variant: Variant) -> Iterator[str]:
    """What must hold, said once for all tensors of which the same must hold."""
    yield from _alignments(variant.preconditions)
    mapped = dict.fromkeys(one.param for one in variant.tensor_maps)
    if mapped:
        yield f"tensor maps of {', '.join(mapped)}"


def _alignments(preconditions: Sequence[Precondition]) -> Iterator[str]:
    tensors: dict[tuple[int, int, int], list[str]] = {}
    for p in preconditions:
        asked = p.base_alignment_bytes, p.stride_multiple_bytes, p.row_multiple
        tensors.setdefault(asked, []).append(p.param)
    for (base, stride, row), names in tensors.items():
        strides = f", strides too ({stride})" if stride > 1 else ""
        rows = f", rows of {row}n" if row > 1 else ""
        yield f"{', '.join(names)} {base}-byte aligned{strides}{rows}"
