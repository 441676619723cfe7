"""A schedule as plain data, for those who want to know why a kernel is as fast as it is.

It is made before the schedule is carried out: then the operations that it names are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from tilec.artifact.schedule_report import (
    ScheduledChannel,
    ScheduledChoice,
    ScheduledProduct,
    ScheduledRole,
    ScheduledTile,
    ScheduledTurn,
    ScheduleReport,
)
from tilec.layout.wgmma import ROWS, WARPGROUP_WARPS, columns_of_instructions
from tilec.ops.notes import place_of
from tilec.schedule.bound import busy
from tilec.schedule.cluster import saved_bytes
from tilec.schedule.plan import Channel, NoSchedule, Schedule
from tilec.schedule.products import Computed, Copied, Factor, Product
from tilec.schedule.rings import is_in_loop
from tilec.target.description import Target


def describe(schedule: Schedule | NoSchedule, target: Target) -> ScheduleReport:
    """The report of a schedule for a target that has rates, or of why there is none."""
    choices = tuple(ScheduledChoice(one.what, one.why) for one in schedule.reasons)
    if isinstance(schedule, NoSchedule):
        return ScheduleReport(choices=choices)
    elements: dict[Copied, str] = {}
    for one in schedule.products:
        chosen = one.instruction
        elements |= {
            f.copied: e for f, e in ((one.a, chosen.a), (one.b, chosen.b)) if isinstance(f, Factor)
        }
    return ScheduleReport(
        roles=(
            ScheduledRole("loader", WARPGROUP_WARPS, schedule.loader_registers),
            ScheduledRole("math", schedule.math_warps, schedule.math_registers),
        ),
        channels=tuple(_channel(one, elements) for one in schedule.channels),
        products=tuple(_product(one, schedule.team_groups) for one in schedule.products),
        turns=tuple(_turns(schedule, target)),
        rows_together=schedule.rows_together,
        choices=choices,
    )


def _channel(channel: Channel, elements: Mapping[Copied, str]) -> ScheduledChannel:
    place = place_of(channel.loads[0].load.location)
    tiles = tuple(
        _tile(copied, elements.get(copied, str(copied.element))) for copied in channel.loads
    )
    file = Path(place.file).name
    return ScheduledChannel(
        file, place.line, place.column, "TMA", channel.depth, channel.slot_bytes, tiles
    )


def _tile(copied: Copied, element: str) -> ScheduledTile:
    tile = copied.tile
    return ScheduledTile(copied.param, element, tile.shape, tile.swizzle, tile.bytes)


def _product(product: Product, groups: int) -> ScheduledProduct:
    place = place_of(product.op.location)
    rows, columns = product.shape
    instruction, pieces = product.instruction, columns_of_instructions(columns)
    types = ".".join((instruction.total, instruction.a, instruction.b))
    steps = product.k // instruction.k
    return ScheduledProduct(
        Path(place.file).name,
        place.line,
        place.column,
        f"wgmma.m{ROWS}n{pieces[0]}k{instruction.k}.{types}",
        rows // (ROWS * groups) * len(pieces) * steps,
        _order_of(product.a),
        "k" if product.b.operand.k_major else "n",
    )


def _order_of(a: Factor | Computed) -> Literal["k", "m", "registers"]:
    if isinstance(a, Computed):
        return "registers"
    return "k" if a.operand.k_major else "m"


def _turns(schedule: Schedule, target: Target) -> Iterator[ScheduledTurn]:
    """One for each loop that has products or copies, inner and outer ones for themselves."""
    rates = target.rates
    assert rates is not None, f"{target.name} has asynchronous products, and no rates"
    blocks = [product.op.operation.block for product in schedule.products]
    blocks += [fill[0].block for channel in schedule.channels for fill in channel.fills]
    for block in dict.fromkeys(blocks):
        if not is_in_loop(block):
            continue
        products = [one for one in schedule.products if one.op.operation.block == block]
        channels = [
            one for one in schedule.channels if any(fill[0].block == block for fill in one.fills)
        ]
        by_others = saved_bytes(pair for channel in channels for pair in channel.shared)
        copied = sum(one.slot_bytes for one in channels)
        took = busy(products, copied, rates, shared_bytes=by_others)
        place = place_of(block.owner.location)
        file = Path(place.file).name
        yield ScheduledTurn(file, place.line, place.column, took.tensor, took.shared, took.copies)
