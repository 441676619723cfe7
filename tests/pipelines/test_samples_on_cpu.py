"""The sample pipelines on the CPU: results by NumPy, and nothing is found in any order.

A plan that lacks an order, or puts temporaries at one place, is found out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilec.artifact.pipeline import Pipeline
from tilec.compilation import Options
from tilec.driver import Front, front_end
from tilec.interpret.pipeline import make_ready
from tilec.interpret.pipeline_report import pipeline_diagnostics
from tilec.interpret.pipeline_run import run_pipeline
from tilec.interpret.pipeline_watch import Watch
from tilec.ir.dialect import context
from tilec.sources import read_sources

PROGRAMS = Path(__file__).parent / "programs"
BF16 = ml_dtypes.bfloat16


@dataclass(frozen=True)
class Case:
    """A pipeline of a program, arguments, and what comes out; `relative` to the largest of it."""

    program: str
    name: str
    given: Mapping[str, Any]
    output: str
    expected: np.ndarray
    relative: float = 0.0


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _mlp() -> Case:
    given = {n: random(*shape, seed=i).astype(BF16) for i, (n, shape) in enumerate(
        {"x": (70, 40), "w1": (40, 96), "w2": (96, 40), "w3": (40, 96)}.items())}  # fmt: skip
    x, w1, w2, w3 = (one.astype(np.float64) for one in given.values())
    g = x @ w1
    # Each of four roundings to bf16 is off by 2^-9; sums of 96 terms in f32 by much less.
    exact = (g / (1 + np.exp(-g)) * (x @ w3)) @ w2
    return Case("mlp", "mlp", given, "y", exact, 4 * 2.0**-9)


def cases() -> Iterator[Case]:
    whole = np.round(random(300) * 16)  # exact in f32, whatever is added
    position = np.arange(300) % 256 % 8
    yield Case("chain", "chain", {"x": whole}, "y", whole + 4950 * position)
    yield Case("diamond", "diamond", {"x": whole, "factor": 2.0}, "y", 2 * (4 + 6) * whole)
    yield _mlp()
    matrix = random(33, 70)
    yield Case("two_files", "twice", {"x": matrix}, "y", matrix + matrix)
    cube = random(3, 5, 70)
    yield Case("two_files", "swapped", {"x": cube}, "y", cube.transpose(1, 0, 2))
    numbers = np.random.default_rng(1).integers(0, 9999, 700).astype(np.int32)
    counts = np.zeros(20, np.int32)
    histogram = {"x": numbers, "counts": counts}
    yield Case("two_files", "histogram", histogram, "counts",
               3 * np.bincount(numbers % 20, minlength=20))  # fmt: skip
    # Whole numbers, whose mean is one: exact in f32.
    sixteen = np.arange(200, dtype=np.float32) * 2 - 198
    given = {"x": sixteen + 5, "aim": np.array(3, np.float32), "count": 200.0}
    yield Case("sums", "centred", given, "left", np.array(-3.0))
    yield Case("asked", "fourfold", {"x": np.arange(-90, 90, dtype=np.int16)}, "y",
               4.0 * np.arange(-90, 90))  # fmt: skip


CASES = {case.name: case for case in cases()}


@cache
def _kept(program: str) -> tuple[Any, Front]:
    """A program's module, whose context is left when the tests end."""
    entered = context()
    entered.__enter__()
    front = front_end(read_sources(str(PROGRAMS / f"{program}.tile"), ()), Options())
    assert not front.compiled.diagnostics
    entered.__exit__(None, None, None)
    return entered, front


def watched(case: Case, pipeline: Pipeline, seed: int | None) -> tuple[np.ndarray, set[str]]:
    """What comes out, and the codes of what is found."""
    _, front = _kept(case.program)
    assert front.module is not None
    with front.module.context:
        ready = make_ready((pipeline,), front.module, case.name, case.given)
        watch = Watch(ready)
        run_pipeline(ready, seed, watch)
        found = pipeline_diagnostics(watch.findings(), ready, front.sources)
        return ready.tensors[case.output], {diagnostic.code for diagnostic in found}


def plan_of(case: Case) -> Pipeline:
    _, front = _kept(case.program)
    [pipeline] = [one for one in front.pipelines if one.name == case.name]
    return pipeline


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("name", CASES)
def test_a_pipeline_computes_what_it_says_and_nothing_is_found(name: str, seed: int | None) -> None:
    case = CASES[name]
    result, found = watched(case, plan_of(case), seed)
    off = np.abs(result.astype(np.float64) - case.expected).max()
    assert off <= case.relative * np.abs(case.expected).max()
    assert found == set()


@pytest.mark.parametrize("name", CASES)
def test_every_order_of_a_plan_is_needed(name: str) -> None:
    """Without any one of them, launches meet, and it is found even in the order of the source."""
    case = CASES[name]
    pipeline = plan_of(case)
    orders = [(n, before) for n, one in enumerate(pipeline.launches) for before in one.after]
    for number, before in orders[:: 1 + len(orders) // 6]:
        launches = list(pipeline.launches)
        rest = tuple(n for n in launches[number].after if n != before)
        # What came before through it still does.
        rest = tuple(sorted({*rest, *launches[before].after}))
        launches[number] = replace(launches[number], after=rest)
        _, found = watched(case, replace(pipeline, launches=tuple(launches)), None)
        assert found & {"E0501", "E0502"}, f"launch {number} need not come after {before}"


@pytest.mark.parametrize("name", ["diamond", "mlp", "twice"])
def test_no_two_slots_of_a_plan_could_be_one(name: str) -> None:
    case = CASES[name]
    pipeline = plan_of(case)
    slots = sorted({one.slot for one in pipeline.temporaries})
    for kept, gone in combinations(slots, 2):
        temporaries = tuple(
            replace(one, slot=kept) if one.slot == gone else one for one in pipeline.temporaries
        )
        _, found = watched(case, replace(pipeline, temporaries=temporaries), None)
        assert "E0801" in found, f"slot {gone} could be slot {kept}"
