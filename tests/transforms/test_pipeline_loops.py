"""Pipelined loops around products compute what the programs say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mlir import ir

from tests.programs.cases import FOLDER, cases, program
from tests.warp.specialised import planned
from tilec.hints import Hints
from tilec.interpret.run import run_kernel
from tilec.ir.walk import operations
from tilec.roles.pipeline_loops import Form, pipeline_loops
from tilec.schedule.graph import graph_of
from tilec.schedule.plan import NoSchedule, Schedule, plan
from tilec.schedule.problem import interval_of
from tilec.schedule.solve import solve
from tilec.target.resolve import resolve
from tilec.transforms.split_loops import masked_operations

TARGET = resolve("sm_90a")


def _planned(function: ir.OpView) -> Schedule | NoSchedule:
    return plan(function, Hints(), TARGET)


@pytest.mark.parametrize("kernel", ["online", "of_two_scores", "scaled_a_turn_later"])
def test_loops_around_products_compute_the_same(kernel: str) -> None:
    with planned(FOLDER / "dot_pipelined.tile") as found:
        function, schedule = found[kernel]
        symbol = ir.StringAttr(function.attributes["sym_name"]).value
        with function.location:
            form = Form(function, schedule)
            made = pipeline_loops(form, TARGET, _planned, is_fast=False)
        assert made is not None
        copy = made.function
        ir.InsertionPoint(function).insert(copy)
        function.operation.erase()
        assert copy.operation.verify()
        with program("dot_pipelined") as compiled:
            chosen = {symbol for symbol in compiled.kernels if symbol.startswith(kernel)}
            launches = list(cases("dot_pipelined", compiled, chosen))
        for case in launches:
            if case.symbol != symbol:
                continue
            arrays = {name: array.copy() for name, array in case.before.items()}
            run_kernel(copy, {**arrays, **case.scalars})
            for name in case.written:
                np.testing.assert_array_equal(arrays[name], case.after[name], str(case))


@pytest.mark.parametrize("kernel", ["by_hand"])
def test_what_is_written_in_that_order_stays(kernel: str) -> None:
    with planned(FOLDER / "dot_pipelined.tile") as found:
        function, schedule = found[kernel]
        before = str(function)
        with function.location:
            form = Form(function, schedule)
            assert pipeline_loops(form, TARGET, _planned, is_fast=False) is None
        assert str(function) == before


def test_the_pipeline_of_the_formula_is_as_short_as_the_order_by_hand(tmp_path: Path) -> None:
    """The order of FlashAttention-3, written in the source, against the naive online softmax."""
    text = (FOLDER / "dot_pipelined.tile").read_text(encoding="utf-8")
    (tmp_path / "k.tile").write_text(text.replace("#[instance(BM = 128)]\n", ""), encoding="utf-8")
    with planned(tmp_path / "k.tile") as found:
        by_hand, by_hand_solved = _intervals(*found["by_hand"])
        naive, solved = _intervals(*found["online"])
    assert by_hand_solved == by_hand, "no better order is found for it"
    assert solved <= by_hand < naive


def _intervals(function: ir.OpView, schedule: Schedule) -> tuple[int, int]:
    """Of the one loop of a kernel, as written and as solved."""
    assert TARGET.rates is not None
    [loop] = [op for op in operations(function) if op.operation.name == "scf.for"]
    graph = graph_of(loop, schedule, TARGET, masked_operations(function, TARGET.rates))
    assert graph is not None
    count = len(graph.nodes)
    written = interval_of(graph.problem, (0,) * count, range(count))
    return written, solve(graph.problem).interval
