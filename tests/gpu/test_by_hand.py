"""docs/abi.md, followed to the letter, launches every kernel of `kernels/` right."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from by_hand import ByHand, call, multiprocessors
from cubins import FOLDER
from host_driver import DRY_RUN
from placement import PLACEMENTS
from test_kernels import fault, has_rows

import tilec.runtime as rt
from tests.kernels.cases import problems, symbols
from tests.unit.raw_launcher import Tensor, check_contract, steps_of, workspace_parts
from tilec.artifact.manifest import to_json

pytestmark = pytest.mark.skipif(DRY_RUN, reason="a launch by hand is one by the driver itself")


@cache
def opened(module):
    """A module's kernels by hand, and the JSON of each by its symbol."""
    kernels = json.loads(to_json(module.manifest))["kernels"]
    return ByHand(module.cubin), {kernel["symbol"]: kernel for kernel in kernels}


@pytest.mark.parametrize(("file", "symbol"), symbols())
def test_results_and_guards(load, count, file, symbol):
    by_hand, kernels = opened(load(file))
    kernel = kernels[symbol]
    names = [parameter["name"] for parameter in kernel["parameters"]]
    variants = set()

    def launched(**arguments):
        given = [arguments[name] for name in names]
        plain = [Tensor(*one.array[:5]) if isinstance(one, rt.Tensor) else one for one in given]
        variants.add(by_hand.launch(kernel, plain))

    faults = []
    for problem in problems(symbol):
        fitting = [p for p in PLACEMENTS if has_rows(problem) or not p.gap]
        for placement in (fitting[0], fitting[-1]):
            found = fault(launched, problem, placement)
            if found:
                faults.append(found)
    assert not faults, f"{len(faults)} launches are wrong:\n" + "\n".join(faults[:12])
    count("launches by hand take variants", len(variants - {None}))


@pytest.fixture
def run(load):
    """Runs a pipeline of `tests/pipelines/programs` by hand, launch after launch."""

    def run(file, name, *given):
        module = load(f"{FOLDER}/pipelines/{file}")
        document = json.loads(to_json(module.manifest))
        variants = {v["symbol"]: v for k in document["kernels"] for v in k["variants"]}
        [pipeline] = [one for one in document["pipelines"] if one["name"] == name]
        plain = [Tensor(*one.array[:5]) if isinstance(one, rt.Tensor) else one for one in given]
        sizes = workspace_parts(pipeline, check_contract(pipeline, plain))
        workspace = rt.empty((max(sum(sizes), 1),), "u8")
        machine = {"sms": multiprocessors(), "card": ""}
        steps = steps_of(document, pipeline, plain, workspace.array.pointer, machine)
        by_hand = ByHand(module.cubin)
        for step in steps:
            if step.launch is not None:
                by_hand.start(step.launch, variants[step.launch.symbol])
        call("cuCtxSynchronize")
        return len(steps)

    return run


@pytest.mark.parametrize("n", [0, 1, 4099])
def test_pipelines(run, zones, n):
    x = np.random.default_rng(n).integers(-99, 99, n).astype(np.float64)
    y = zones.output((n,), "f32")
    assert run("diamond", "diamond", y, zones.input(x, "f32"), 3.0) > 1
    np.testing.assert_array_equal(zones.values(y), 2 * (2 * 3 * x + 3 * 3 * x))


def test_a_pipeline_that_turns_a_tensor(run, zones):
    x = np.random.default_rng(0).integers(-99, 99, (3, 5, 130)).astype(np.float64)
    y = zones.output((5, 3, 130), "f32")
    run("two_files", "swapped", y, zones.input(x, "f32", strides=(5 * 140, 140, 1)))
    np.testing.assert_array_equal(zones.values(y), x.transpose(1, 0, 2))
