"""What `tilec inspect` says of a kernel: the contract of an instance, and its variants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.artifact.expression import text_of
from tilec.artifact.floor import Floor, floor_of
from tilec.artifact.geometry import ALONE
from tilec.artifact.manifest import Kernel, Precondition, TensorMap, UnsafeUse, Variant
from tilec.cli.columns import columns
from tilec.cli.signature_texts import generics_of, type_of
from tilec.target.description import Target
from tilec.target.occupancy import occupancy

_COLUMNS = (
    "variant", "threads", "registers", "spills", "stack", "smem", "occupancy", "conflicts",
    "taken when",
)  # fmt: skip


def kernel_lines(kernel: Kernel, file: str, target: Target) -> Iterator[str]:
    """Of one instance, of the source `file`."""
    yield f"{kernel.symbol} ({file}:{kernel.line})"
    yield from (f"  {line}" for line in kernel.documentation.splitlines())
    rows = [(p.name, type_of(p)) for p in kernel.parameters]
    rows.append(("grid", ", ".join(map(text_of, kernel.grid)) or "1"))
    rows += [("requires", f"{r.text} (line {r.line})") for r in kernel.requires]
    rows += [("unsafe", f"{use.what} ({_place(use, file)})") for use in kernel.unsafe]
    rows += _floor(floor_of(kernel))
    if kernel.generics:
        rows.insert(0, ("generics", generics_of(kernel.generics)))
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
    if variant.starts_early:
        yield "in a pipeline, it may start while the kernels before it run"
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
        said = [f"{base}-byte aligned"] if base > 1 else []
        if stride > 1:
            said.append(f"strides too ({stride})" if said else f"strides of {stride}n bytes")
        said += [f"rows of {row}n"] if row > 1 else []
        if said:
            yield f"{', '.join(names)} {', '.join(said)}"
