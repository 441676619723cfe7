"""A whole run, on a GPU that the tests make."""

from __future__ import annotations

import json
from pathlib import Path

import fake_operations as operations
import numpy as np
import pytest
from fake_gpu import FakeGpu

from tilec.bench import Benchmark, Case, Input, Output, Rival
from tilec.bench.sampling import Settings
from tilec.bench.session import Request, run


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    fresh = FakeGpu()
    monkeypatch.setattr(operations, "gpu", fresh)
    return fresh


def right(kernels):
    return lambda y, x: (operations.gpu.spend(10), np.multiply(x, 2, out=y))


def wrong(kernels):
    return lambda y, x: (operations.gpu.spend(10), np.multiply(x, 4, out=y))


def case(length):
    output = Output((length,), "f32", relative=1e-6)
    return Case(f"f32 {length}", (output,), (Input((length,), "f32"),))


def benchmark(name, ours, *lengths):
    rivals = (
        Rival("plain", "fake_operations:doubled", "function"),
        Rival("other", "fake_operations:tripled", "function"),
    )
    return Benchmark(name, ours, "fake_operations:doubled", tuple(map(case, lengths)), rivals)


def ran(gpu, *benchmarks, **options):
    said, warned = [], []
    settings = Settings(rounds=3, sample_us=100)
    request = Request(benchmarks, Path("none"), settings=settings, **options)
    return run(request, gpu, said.append, warned.append), said, warned


def test_a_run_says_a_table_for_each_benchmark_and_what_failed(gpu):
    is_right, said, warned = ran(gpu, benchmark("double", right, 64, 128))
    assert is_right
    assert said[0].startswith("A Fake Card, sm_90a; a large copy runs at 1 GB/s")
    assert said[1].startswith("| case | µs | GB/s | of copy | of floor | plain | other | best")
    assert [line.split(" | ")[0] for line in said[2:4]] == ["| double f32 64", "| double f32 128"]
    assert [text.partition(": wrong")[0] for text in warned] == [
        "double f32 64: other",
        "double f32 128: other",
    ]


def test_only_the_rivals_that_are_named_take_part(gpu):
    _, said, warned = ran(gpu, benchmark("double", right, 64), rivals=["plain"])
    assert "| plain | best rival |" in said[1]
    assert not warned
    _, said, _ = ran(gpu, benchmark("double", right, 64), rivals=["none"])
    assert "| of floor | best rival |" in said[1]


def test_a_run_with_a_kernel_of_ours_that_is_wrong_goes_on_and_says_so(gpu):
    is_right, said, warned = ran(
        gpu, benchmark("four", wrong, 64), benchmark("two", right, 64), rivals=["none"]
    )
    assert not is_right
    assert warned[0].startswith("four f32 64: tilec: wrong")
    assert any(line.startswith("| two f32 64 | 10.00") for line in said)


def test_a_case_that_cannot_be_set_up_does_not_end_the_run(gpu):
    bad = Benchmark("bad", right, "fake_operations:missing", (case(64),))
    is_right, said, warned = ran(gpu, bad, benchmark("two", right, 64), rivals=["none"])
    assert not is_right
    assert warned == [
        "bad f32 64: tilec: AttributeError: module 'fake_operations' has no attribute 'missing'"
    ]
    assert any(line.startswith("| two f32 64 | 10.00") for line in said)


def test_each_benchmark_is_saved_with_where_it_ran(gpu, tmp_path):
    ran(gpu, benchmark("double", right, 64, 128), results=tmp_path, rivals=["plain"])
    [path] = tmp_path.iterdir()
    assert path.name == "double-a-fake-card.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["environment"] == {"card": "A Fake Card", "target": "sm_90a", "copy_gbs": 1.0}
    assert [len(c["contenders"][0]["samples"]) for c in written["cases"]] == [3, 3]
