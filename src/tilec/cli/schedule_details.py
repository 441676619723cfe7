"""What `tilec inspect` tells of how a variant overlaps copies with products."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.artifact.manifest import Kernel, Variant
from tilec.artifact.schedule_report import (
    ScheduledChannel,
    ScheduledPipeline,
    ScheduledProduct,
    ScheduledRole,
    ScheduledTask,
    ScheduledTile,
    ScheduledTurn,
)
from tilec.cli.columns import columns

_INDENT = "    "
_Placed = ScheduledChannel | ScheduledPipeline | ScheduledProduct | ScheduledTask | ScheduledTurn


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
    for pipeline in told.pipelines:
        yield ""
        yield from _pipeline(pipeline)


def _pipeline(one: ScheduledPipeline) -> Iterator[str]:
    """The bounds of a pipelined loop, and the timeline of a steady interval."""
    yield f"{_INDENT}pipeline of the loop at {_place(one)}: one warpgroup, in cycles by estimate"
    best = ", and none is shorter" if one.is_best else ""
    yield from columns(
        [
            ("interval", f"{one.interval} ({one.interval_as_written} as written{best})"),
            ("busy", f"tensor cores {one.tensor_cycles}, threads {one.thread_cycles}"),
            ("live registers", f"{one.live_registers} a thread at most"),
        ],
        f"{_INDENT}  ",
    )
    rows = [("cycle", "stage", "threads", "tensor cores")]
    for task in one.tasks:
        what = f"{task.operation} at {_place(task)} until {task.end}"
        units = (what, "") if task.unit == "threads" else ("issue", what)
        rows.append((str(task.start), str(task.stage), *units))
    yield from columns(rows, f"{_INDENT}  ")


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


def _place(one: _Placed) -> str:
    return f"{one.file}:{one.line}:{one.column}" if one.file else "an unknown place"
