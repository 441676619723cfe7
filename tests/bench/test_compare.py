"""One case, on a GPU that the tests make."""

from __future__ import annotations

from pathlib import Path

import fake_operations as operations
import numpy as np
import pytest
from fake_gpu import Broken, FakeGpu

from tilec.bench import Benchmark, Case, Input, Kernels, Operations, Output, Rival
from tilec.bench.compare import Floor, compare, measured_floor
from tilec.bench.sampling import Settings

LENGTH = 100
SETTINGS = Settings(rounds=5, sample_us=100)
CASE = Case("100", (Output((LENGTH,), "f32", relative=1e-6),), (Input((LENGTH,), "f32"),))


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    fresh = FakeGpu()
    monkeypatch.setattr(operations, "gpu", fresh)
    return fresh


def ours(kernels):
    def launch(y, x):
        operations.gpu.spend(10)
        np.multiply(x, 2, out=y)

    return launch


def compared(*rivals, case=CASE, ours=ours, operation="doubled", observed=None, gpu=None):
    gpu = gpu or operations.gpu
    benchmark = Benchmark("double", ours, f"fake_operations:{operation}", (case,), rivals, observed)
    kernels = Kernels(Path("none"), "sm_90a")
    return compare(Floor(gpu, 1000.0), benchmark, case, rivals, kernels, SETTINGS)


def of_style(style, operation, *needs):
    return Rival(operation, f"fake_operations:{operation}", style, needs)


def test_ours_a_rival_and_a_copy_are_timed_in_the_same_rounds():
    found = compared(of_style("function", "doubled"))
    assert [c.name for c in found.contenders] == ["tilec", "doubled", "copy"]
    assert all(len(c.samples) == SETTINGS.rounds for c in found.contenders)
    assert found.ours.median_us == pytest.approx(10)
    assert found.ratio("doubled") == pytest.approx(2)
    # 800 bytes at 1000 bytes a microsecond.
    assert found.ratio("copy") == pytest.approx(0.08)
    assert found.floor_us == pytest.approx(0.8)
    assert found.of_floor(found.ours) == pytest.approx(0.08)
    assert found.rate_gbs(found.ours) == pytest.approx(0.08)


def test_sets_of_buffers_are_together_more_than_the_cache():
    # Four times 1000 bytes by 800 bytes a set.
    assert compared().set_count == 5


def test_what_a_case_must_move_may_be_less_than_its_tensors():
    case = Case("part", CASE.outputs, CASE.inputs, moved_bytes=100)
    found = compared(case=case)
    assert (found.floor_bytes, found.floor_us) == (100, pytest.approx(0.1))


def test_arithmetic_bounds_a_case_where_it_takes_longer():
    case = Case("ops", CASE.outputs, CASE.inputs, operations=Operations(500, "f32"))
    found = compared(case=case)
    assert (found.bound, found.floor_us) == ("compute", pytest.approx(5))
    case = Case("ops", CASE.outputs, CASE.inputs, operations=Operations(50, "f32"))
    assert compared(case=case).bound == "memory"
    case = Case("ops", CASE.outputs, CASE.inputs, operations=Operations(500, "f64"))
    assert compared(case=case).bound == "memory"  # the rate is not known


def test_the_floor_is_the_rate_of_a_copy(gpu):
    assert measured_floor(gpu).copy_rate == pytest.approx(1000)


def test_the_fastest_configuration_is_taken_and_one_that_fails_is_not():
    found = compared(of_style("kernel", "in_place"))
    assert found.named("in_place").median_us == pytest.approx(12)


def test_configurations_may_depend_on_the_arguments():
    found = compared(of_style("kernel", "by_shape"))
    assert found.named("by_shape").median_us == pytest.approx(5)


def test_a_function_is_compiled_once_a_case(gpu):
    compared(of_style("compiled", "doubled"))
    assert gpu.compilations == 1


@pytest.mark.parametrize(
    ("style", "operation", "reason"),
    [
        ("function", "tripled", "wrong: "),
        ("function", "fails", "RuntimeError: no such thing"),
        ("function", "missing", "AttributeError"),
        ("kernel", "leaves_out", "wrong: inf"),
        ("function", "fails_in_capture", "not timed: RuntimeError"),
    ],
)
def test_a_rival_that_fails_is_left_out_and_the_others_are_timed(style, operation, reason):
    found = compared(of_style(style, operation), of_style("function", "doubled"))
    [failed] = found.failures
    assert failed.name == operation
    assert failed.failure.startswith(reason)
    assert not failed.samples
    assert found.ratio(operation) is None
    assert found.best_ratio == pytest.approx(2)


def test_a_rival_that_does_a_part_is_timed_and_not_checked():
    part = Rival("part", "fake_operations:tripled", "function", is_part=True)
    found = compared(part)
    assert found.named("part") is not None
    assert found.named("part").error is None


def test_a_rival_without_its_package_is_left_out():
    found = compared(of_style("function", "doubled", "no_such_package"))
    [failed] = found.failures
    assert failed.failure == "needs no_such_package"


def test_without_ours_the_rivals_are_timed():
    def missing(kernels):
        raise FileNotFoundError("no such cubin")

    found = compared(of_style("function", "doubled"), ours=missing)
    assert found.ours is None
    assert found.best_ratio is None
    assert [c.name for c in found.rivals] == ["doubled"]
    assert "no such cubin" in found.failures[0].failure


def test_a_gpu_that_takes_no_more_work_ends_the_run():
    with pytest.raises(Broken):
        compared(of_style("function", "breaks"))


def test_outputs_that_may_differ_are_compared_by_what_is_observed():
    x = Input((LENGTH,), "i32", span=(0, 3))  # many are largest
    case = Case("index", (Output((1,), "i32"),), (x,))

    def first(kernels):
        def launch(y, x):
            y[...] = operations.first_largest_at(x)

        return launch

    options = {"case": case, "ours": first, "operation": "largest_at"}
    assert compared(**options).failures
    assert not compared(**options, observed="fake_operations:at").failures


def test_each_contender_has_the_same_calls_in_its_graph():
    found = compared(of_style("function", "doubled"))
    methods = {c.method.partition("of ")[2] for c in found.contenders}
    # 100 µs a sample, at 2 µs a call at least.
    assert methods == {"50 calls"}


def test_long_calls_are_timed_without_a_graph(gpu):
    case = Case("long", CASE.outputs, CASE.inputs, moved_bytes=300_000)
    gpu.free_bytes = lambda: 1 << 30
    found = compared(case=case)
    assert gpu.captures == 0
    assert found.ours.method == "10 calls"  # as many as take 100 µs, at least one a set
    assert found.ours.median_us == pytest.approx(10)
