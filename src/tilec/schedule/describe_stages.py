"""What is copied ahead without roles, as plain data beside the rest of a schedule's report.

It is made before loads are replaced: then they are there to be described.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from tilec.artifact.schedule_report import (
    ScheduledChannel,
    ScheduledChoice,
    ScheduledTile,
    ScheduleReport,
)
from tilec.ops.notes import place_of
from tilec.ops.staged import ASYNC
from tilec.schedule.stages import StagedLoad, StagedRing, Stages


def with_stages(report: ScheduleReport, stages: Stages) -> ScheduleReport:
    """The report of a kernel without roles, with its rings and why they are so."""
    choices = tuple(ScheduledChoice(one.what, one.why) for one in stages.reasons)
    return replace(
        report,
        channels=tuple(map(_channel, stages.rings)),
        rows_together=stages.rows_together,
        choices=(*report.choices, *choices),
    )


def _channel(ring: StagedRing) -> ScheduledChannel:
    place = place_of(ring.loads[0].load.location)
    fill: Literal["cp.async", "registers"] = "cp.async" if ring.fill == ASYNC else "registers"
    return ScheduledChannel(
        Path(place.file).name,
        place.line,
        place.column,
        fill,
        ring.depth,
        ring.slot_bytes,
        tuple(map(_tile, ring.loads)),
    )


def _tile(one: StagedLoad) -> ScheduledTile:
    element = str(one.element).lower().replace("f8e4m3fn", "f8e4m3")
    return ScheduledTile(one.param, element, one.tile.shape, one.tile.swizzle, one.tile.bytes)
