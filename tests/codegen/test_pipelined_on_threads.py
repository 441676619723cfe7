"""Pipelined loops (`tests/programs/dot_pipelined.tile`), thread by thread: any trip count, and
threads and copies that are early or late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lowered import ALIGNED, program
from overlapped import TIMINGS, expect, small, wide

from tests.programs.cases import text_of
from tests.programs.entry import Arrays
from tests.programs.table import TABLE
from tilec import machine_code
from tilec.artifact.manifest import Variant
from tilec.codegen.cubin import BrokenScheduleError, Cubin, assemble
from tilec.target.resolve import resolve
from tilec.target.toolchain import libdevice, ptxas

NAME = "dot_pipelined"
TEXT = text_of(NAME)
OF_SIZES = ("online", "causal")
KERNELS = {name: f"{name}__64" if name in OF_SIZES else name for name in TABLE[NAME]}
MASKED = ("causal", "windowed")
# Of keys: no turn, one, as many as there are slots, and more.
KEYS = (0, 1, 33, 64, 160)
ROWS = 70
MASKED_ROWS = 200  # so that masks leave blocks of keys in full


def _given(kernel: str, keys: int) -> dict[str, Any]:
    heads = (2,) if kernel == "for_each_head" else ()
    rows = MASKED_ROWS if kernel in MASKED else ROWS
    given = {
        "z": small(rows, 64, element="f32"),
        "q": small(*heads, rows, 64),
        "k": small(*heads, keys, 64),
        "v": small(*heads, keys, 64),
    }
    if kernel == "of_two_scores":
        given["w"] = small(keys, 64)
    return given


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_pipelined_loop_is_right(kernel: str) -> None:
    reference = TABLE[NAME][kernel].reference
    assert reference is not None
    with program(TEXT, name=f"{NAME}.tile", chosen={KERNELS[kernel]}) as threads:
        for keys, timing in zip(KEYS, (*TIMINGS, TIMINGS[0]), strict=True):
            given = _given(kernel, keys)
            wanted = wide(reference(Arrays(**given))["z"])
            expect(threads, KERNELS[kernel], given, {"z": wanted}, timing)


@pytest.mark.parametrize("kernel", MASKED)
def test_loops_with_masks_are_split(kernel: str) -> None:
    with program(TEXT, name=f"{NAME}.tile", chosen={KERNELS[kernel]}) as threads:
        report = threads.lowered(KERNELS[kernel], ALIGNED)[0].schedule
    told = [choice.what for choice in report.choices]
    assert [what.partition(" in place")[0] for what in told if " in place of one" in what] == [
        "2 loops" if kernel == "causal" else "3 loops"
    ]
    assert "long programs first" in told


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "by_hand"])
def test_it_is_pipelined(kernel: str) -> None:
    with program(TEXT, name=f"{NAME}.tile", chosen={KERNELS[kernel]}) as threads:
        report = threads.lowered(KERNELS[kernel], ALIGNED)[0].schedule
    assert any(choice.what.startswith("software pipeline of the loop") for choice in report.choices)


def test_what_ptxas_does_not_keep_is_compiled_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two kernels the one that ptxas names; the report says so."""
    given: list[str] = []

    def assembled(ptx: str, target: str, tool: Path) -> Cubin:
        given.append(ptx)
        if len(given) == 1:
            raise BrokenScheduleError("ptxas undoes a schedule", "online__64__v16")
        return assemble(ptx, target, tool)

    monkeypatch.setattr(machine_code, "assemble", assembled)
    symbols = {"online__64", "of_two_scores"}
    with program(TEXT, name=f"{NAME}.tile", chosen=symbols) as threads:
        made = machine_code.compile_kernels(
            list(threads.instances.values()),
            resolve("sm_90a"),
            machine_code.Tools(ptxas(), libdevice()),
        )
    assert len(given) == 2
    told = {kernel.symbol: _told(kernel.variants[0]) for kernel in made.kernels}
    assert told == {"online__64": "loops as written", "of_two_scores": "software pipeline"}


def _told(variant: Variant) -> str:
    choices = [choice.what for choice in variant.lowering.schedule.choices]
    told = ("software pipeline of", "loops as written")
    [what] = [what for what in choices if what.startswith(told)]
    return what.partition(" of ")[0]


def test_a_schedule_that_is_broken_anyway_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def assembled(ptx: str, target: str, tool: Path) -> Cubin:
        raise BrokenScheduleError("ptxas undoes a schedule")

    monkeypatch.setattr(machine_code, "assemble", assembled)
    with program(TEXT, name=f"{NAME}.tile", chosen={"by_hand"}) as threads:
        instances = list(threads.instances.values())
        tools = machine_code.Tools(ptxas(), libdevice())
        with pytest.raises(BrokenScheduleError):
            machine_code.compile_kernels(instances, resolve("sm_90a"), tools)
