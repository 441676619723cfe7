"""Pipelined loops around products compute what the programs say."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from tests.programs.cases import FOLDER, cases, program
from tests.warp.specialised import planned
from tilec.hints import Hints
from tilec.interpret.run import run_kernel
from tilec.roles.pipeline_loops import Form, pipeline_loops
from tilec.schedule.plan import NoSchedule, Schedule, plan
from tilec.target.resolve import resolve

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
