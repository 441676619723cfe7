"""What `tilec inspect` tells of how a variant overlaps copies with products."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.artifact.manifest import Kernel, Variant
from tilec.artifact.schedule_report import (
    ScheduledChannel,
    ScheduledProduct,
    ScheduledRole,
    ScheduledTile,
    ScheduledTurn,
)
from tilec.cli.columns import columns

_INDENT = "    "


def schedule_of(kernel: Kernel, variant: Variant) -> Iterator[str]:
    told = variant.lowering.schedule
    yield ""
    yield f"  schedule, {variant.symbol}"
    if not told.channels:
        yield f"{_INDENT}none: all threads do one thing after the other"
        yield from columns([(one.what, one.why) for one in told.choices], _INDENT)
        return
    roles = ", ".join(map(_role, told.roles)) or "none: all threads copy ahead, and compute"
    rows = [("roles", roles)]
    rows += [("channel", _channel(one)) for one in told.channels]
    rows += [("product", _product(one)) for one in told.products]
    rows += [("turn", _turn(one)) for one in told.turns]
    rows += [("shared memory", f"{variant.static_smem_bytes + variant.dynamic_smem_bytes} bytes")]
    yield from columns(rows, _INDENT)
    yield ""
    yield from columns([(one.what, one.why) for one in told.choices], _INDENT)


def _role(one: ScheduledRole) -> str:
    registers = f" of {one.registers} registers a thread" if one.registers else ""
    return f"{one.name}: {one.warps} warps{registers}"


def _channel(one: ScheduledChannel) -> str:
    tiles = ", ".join(map(_tile, one.tiles))
    slots = f"{one.depth} slot{'s' * (one.depth != 1)} of {one.slot_bytes} bytes"
    return f"{slots}, filled by {one.fill} at {_place(one)}: {tiles}"


def _tile(one: ScheduledTile) -> str:
    shape = "x".join(map(str, one.shape))
    return f"{one.tensor} {shape} {one.element} in rows of {one.swizzle} bytes"


def _product(one: ScheduledProduct) -> str:
    lie = f"factors lie along {one.left} and {one.right}"
    if one.left == "registers":
        lie = f"factors lie in registers and along {one.right}"
    return f"{one.count} x {one.instruction} a warpgroup at {_place(one)}, {lie}"


def _turn(one: ScheduledTurn) -> str:
    took = f"tensor cores {one.tensor_cycles}, shared memory {one.shared_cycles}"
    copies = f"copies {one.copy_cycles}"
    return f"{one.bound} cycles or more at {_place(one)}, by {one.limit} ({took}, {copies})"


def _place(one: ScheduledChannel | ScheduledProduct | ScheduledTurn) -> str:
    return f"{one.file}:{one.line}:{one.column}" if one.file else "an unknown place"
