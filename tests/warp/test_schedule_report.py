"""What is told of schedules, against what follows from shapes and the rates of the hardware."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from specialised import planned

from tilec.artifact.schedule_report import ScheduledTile, ScheduledTurn, ScheduleReport
from tilec.schedule.describe import describe
from tilec.target.resolve import resolve

TARGET = resolve("sm_90a")


@pytest.fixture(scope="module")
def told() -> dict[str, ScheduleReport]:
    with planned() as found:
        return {name: describe(schedule, TARGET) for name, (_, schedule) in found.items()}


def cycles(turn: ScheduledTurn) -> tuple[int, ...]:
    return astuple(turn)[3:]


def test_a_turn_keeps_units_busy_for_as_long_as_its_bytes_and_products_take(
    told: dict[str, ScheduleReport],
) -> None:
    [turn] = told["nn"].turns
    # Tiles of 64 x 64 in bf16: 2048 products a cycle. One instruction for each 16 of k reads 64
    # rows and 64 columns; copies write as much again.
    factor = 64 * 64 * 2
    assert cycles(turn) == (64**3 // 2048, 4 * factor // 128, 2 * factor // 64)
    assert (turn.bound, turn.limit) == (256, "shared memory")


def test_each_warpgroup_reads_all_columns(told: dict[str, ScheduleReport]) -> None:
    [turn] = told["nt"].turns
    # 128 x 64 each; two times 64 rows, each with all 128 columns.
    read, copied = 2 * (64 + 128) * 64 * 2, 2 * 128 * 64 * 2
    # Of two blocks, each has half of what both read come from L2.
    fetched = copied * 3 // 4
    assert cycles(turn) == (128 * 128 * 64 // 2048, (read + copied) // 128, fetched // 64)


def test_two_products_take_the_time_of_both_and_their_factor_comes_once(
    told: dict[str, ScheduleReport],
) -> None:
    [turn] = told["gated"].turns
    factor = 64 * 64 * 2
    assert cycles(turn) == (2 * 64**3 // 2048, (4 + 3) * factor // 128, 3 * factor // 64)


def test_what_is_copied_before_a_loop_is_not_of_its_turns(
    told: dict[str, ScheduleReport],
) -> None:
    report = told["kept_factor"]
    [turn] = report.turns
    assert turn.copy_cycles == 64 * 64 * 2 // 64
    assert [channel.depth for channel in report.channels] == [1, 8]


def test_each_loop_has_its_own_turns(told: dict[str, ScheduleReport]) -> None:
    assert len(told["two_loops"].turns) == len(told["two_loops"].channels) == 2


def test_factors_lie_as_they_do_in_memory(told: dict[str, ScheduleReport]) -> None:
    found = {name: (p.left, p.right) for name in ("nn", "nt", "tn") for p in told[name].products}
    assert found == {"nn": ("k", "n"), "nt": ("k", "k"), "tn": ("m", "n")}


def test_instructions_are_those_of_one_warpgroup(told: dict[str, ScheduleReport]) -> None:
    [product] = told["nt"].products
    # 128 rows by two warpgroups, 128 columns, 64 of k.
    assert (product.instruction, product.count) == ("wgmma.m64n128k16.f32.bf16.bf16", 4)
    assert [(one.name, one.warps) for one in told["nt"].roles] == [("loader", 4), ("math", 8)]


def test_a_channel_has_its_tiles_in_the_order_of_their_loads(
    told: dict[str, ScheduleReport],
) -> None:
    [channel] = told["nt"].channels
    assert channel.tiles == (
        ScheduledTile("b", "bf16", (128, 64), 128, 16384),
        ScheduledTile("a", "bf16", (128, 64), 128, 16384),
    )
    assert channel.slot_bytes == 32768


def test_each_choice_has_a_reason(told: dict[str, ScheduleReport]) -> None:
    for report in told.values():
        assert len(report.choices) >= 3 and all(one.why for one in report.choices)
    depth = next(one for one in told["nt"].choices if one.what.startswith("depth"))
    # Six slots would fit.
    assert depth.what == "depth 5" and depth.why.startswith("more is slower")
