"""docs/abi.md, followed to the letter, launches every kernel of `kernels/` right."""

from __future__ import annotations

import json
from functools import cache

import pytest
from by_hand import ByHand
from host_driver import DRY_RUN
from placement import PLACEMENTS
from test_kernels import fault, has_rows

import tilec.runtime as rt
from tests.kernels.cases import problems, symbols
from tests.unit.raw_launcher import Tensor
from tilec.artifact.manifest import to_json

pytestmark = pytest.mark.skipif(DRY_RUN, reason="a launch by hand is one by the driver itself")


@cache
def opened(module):
    """A module's kernels by hand, and the JSON of each by its symbol."""
    kernels = json.loads(to_json(module.manifest))["kernels"]
    return ByHand(module._cubin), {kernel["symbol"]: kernel for kernel in kernels}


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
