"""Two machine codes of one kernel: what launchers must do otherwise, and whom they refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tilec.artifact.expression import Expression, text_of
from tilec.artifact.geometry import ALONE
from tilec.artifact.manifest import Kernel, Precondition, Slot, Variant
from tilec.compatibility.change import Found
from tilec.compatibility.contract import new_names
from tilec.compatibility.implied import renamed


def launch_changes(old: Kernel, new: Kernel) -> Found:
    """What launches of the new code take.

    Assumes:  parameters have the same types, in the same order
    """
    names = new_names(old, new)
    if [renamed(extent, names) for extent in old.grid] != list(new.grid):
        yield "recompile", f"the grid is {_grid(new.grid)}, was {_grid(old.grid)}"
    if _shared_slots(old, names) != _shared_slots(new, {}):
        listed = ", ".join(f"{slot.kind} `{slot.name}`" for slot in _shared_slots(new, {}))
        yield "recompile", f"the values that the machine code takes are {listed}"
    before = {variant.symbol: variant for variant in old.variants}
    after = {variant.symbol: variant for variant in new.variants}
    yield from (("recompile", f"the variant `{s}` is gone") for s in before if s not in after)
    yield from (("compatible", f"the variant `{s}` is new") for s in after if s not in before)
    for symbol in (symbol for symbol in before if symbol in after):
        told = list(_differences(before[symbol], after[symbol], names))
        if told:
            yield "recompile", f"`{symbol}` {'; '.join(told)}"
    for variant in old.variants:
        if not any(_takes(other, variant, names) for other in new.variants):
            yield "breaking", f"no variant takes all arguments that `{variant.symbol}` took"


def _grid(extents: Iterable[Expression]) -> str:
    return ", ".join(f"`{text_of(extent)}`" for extent in extents)


def _shared_slots(kernel: Kernel, names: Mapping[str, str]) -> list[Slot]:
    """The parameters of all variants: maps are told of each."""
    return [
        Slot(slot.kind, names.get(slot.name, slot.name), slot.element, slot.axis)
        for slot in kernel.variants[0].slots
        if slot.kind != "tensor_map"
    ]


def _differences(old: Variant, new: Variant, names: Mapping[str, str]) -> Iterable[str]:
    """What stands otherwise in the manifest of what a launch depends on."""
    figures: Sequence[tuple[str, object, object]] = (
        ("threads", old.threads, new.threads),
        ("bytes of static shared memory", old.static_smem_bytes, new.static_smem_bytes),
        ("bytes of dynamic shared memory", old.dynamic_smem_bytes, new.dynamic_smem_bytes),
        ("blocks a program", old.split, new.split),
    )
    for what, was, is_ in figures:
        if was != is_:
            yield f"has {is_} {what}, was {was}"
    if old.cluster != new.cluster:
        yield f"has clusters of {_shape(new.cluster)}, was {_shape(old.cluster)}"
    if old.persistent_blocks_per_sm != new.persistent_blocks_per_sm:
        yield "is persistent otherwise" if new.persistent_blocks_per_sm else "is not persistent"
    if old.starts_early != new.starts_early:
        yield "may start early" if new.starts_early else "may not start early"
    if [_asked(p, names) for p in old.preconditions] != [_asked(p) for p in new.preconditions]:
        yield "has other preconditions"
    maps = tuple(replace(m, param=names.get(m.param, m.param)) for m in old.tensor_maps)
    if maps != new.tensor_maps:
        yield "has other tensor maps"


def _shape(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def _asked(one: Precondition, names: Mapping[str, str] | None = None) -> tuple[str, int, int, int]:
    name = (names or {}).get(one.param, one.param)
    return name, one.base_alignment_bytes, one.stride_multiple_bytes, one.row_multiple


def _takes(new: Variant, old: Variant, names: Mapping[str, str]) -> bool:
    """Whether the new variant can be launched wherever the old one can."""
    if new.cluster not in (ALONE, old.cluster) and new.persistent_blocks_per_sm is None:
        return False
    # A map by which a tensor is written asks for more of it.
    writes = {names.get(m.param, m.param): m.writes for m in old.tensor_maps}
    if any(m.param not in writes or m.writes > writes[m.param] for m in new.tensor_maps):
        return False
    had = {name: asked for name, *asked in (_asked(p, names) for p in old.preconditions)}
    return all(
        all(have % want == 0 for have, want in zip(had.get(name, (1, 1, 1)), asked, strict=True))
        for name, *asked in map(_asked, new.preconditions)
    )
