"""A fat binary on a GPU: the runtime and the driver take the same cubin of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from by_hand import ByHand
from cubins import CUBINS, FOLDER
from host_driver import DRY_RUN

import tilec.runtime as rt
from tests.unit.raw_launcher import Tensor
from tilec.artifact.embed import extract
from tilec.artifact.fatbin import cubins_of
from tilec.artifact.manifest import to_json

pytestmark = pytest.mark.skipif(DRY_RUN, reason="the driver chooses")

X = np.arange(1000, dtype=np.float32)


@pytest.fixture
def joined(device):
    path = CUBINS / FOLDER / "joined" / "add.fatbin"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    targets = [json.loads(extract(cubin))["target"] for cubin in cubins_of(path.read_bytes())]
    assert targets == ["sm_80", "sm_90a"]
    return path


def test_the_runtime_launches_the_cubin_for_the_device(joined, zones):
    module = rt.load(joined)
    z, x = zones.output((1000,), "f32"), zones.input(X, "f32")
    module.add(z, x, x)
    np.testing.assert_array_equal(zones.values(z), 2 * X)
    assert module.manifest.target == "sm_90a"


def test_the_driver_takes_the_whole_file(joined, zones):
    kernels = json.loads(to_json(rt.load(joined).manifest))["kernels"]
    [kernel] = [one for one in kernels if one["symbol"] == "add__f32_1024"]
    z, x = zones.output((1000,), "f32"), zones.input(X, "f32")
    given = [Tensor(*one.array[:5]) for one in (z, x, x)]
    ByHand(joined.read_bytes()).launch(kernel, given)
    np.testing.assert_array_equal(zones.values(z), 2 * X)
