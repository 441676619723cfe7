"""Whichever call of the driver fails, launchers in Rust do what those in C do after it."""

from __future__ import annotations

import ctypes

import pytest

from tests.emit.calling import PLAN
from tests.emit.pipeline_calling import GRAPH, LAUNCH, LAUNCH_ON, UPDATE
from tests.emit.pipeline_samples import pipelined
from tests.emit.rust.calling import RustLaunchers
from tests.emit.statuses import STATUS
from tests.emit.test_failing_driver import GOES_ON
from tests.emit.test_loading import add_arguments, clustered_arguments, scaled_arguments
from tests.emit.test_pipeline_failures import NOTHING, STREAMS, summed, wide
from tests.emit.toolchain import failing_driver

MAY_LEAVE = ("Destroy", "Free", "Pop")  # what is not given back where these fail


class Failing(RustLaunchers):
    """With a fake driver any call of which may be made to fail."""

    def driver_path(self):
        return failing_driver(self._tools)

    def open(self, path):
        super().open(path)
        self.driver.fake_failed.restype = ctypes.c_char_p


@pytest.fixture(scope="module")
def launchers(tools):
    return Failing([pipelined()], tools / "rust_failing", tools)


def scenario(functions):
    """Calls all that launchers do; each step, with its status and message."""
    yield "load", functions.library.shim_load(0), functions.library.shim_message().decode()
    products = clustered_arguments()
    for name, arguments, *what in (
        ("add", add_arguments()),
        ("add", add_arguments(-1)),
        ("clustered", products),
        ("persistent", products),
        ("persistent", products, PLAN),
        ("scaled", scaled_arguments()),
    ):
        outcome = functions.call(name, arguments, *what)
        yield name, outcome.status, outcome.message
    for (name, arguments), way in ((summed(), LAUNCH), (wide(), LAUNCH), (wide(), LAUNCH_ON)):
        called = functions.run(name, arguments, way, streams=STREAMS)
        yield name, called.status, called.message
    made = functions.run(*summed(), GRAPH)
    yield "graph", made.status, made.message
    if made.graph:
        for called in (
            functions.replay(made.graph),
            functions.run(*summed(scale=3.0), UPDATE, graph=made.graph),
            functions.replay(made.graph),
        ):
            yield "graph", called.status, called.message
        functions.destroy(made.graph)


def test_each_call_of_the_driver_may_fail(launchers):
    names = set()
    for number in range(1, 1000):
        functions = launchers.anew()
        functions.driver.fake_forget()
        functions.driver.fake_fail(number)
        started = functions.use_driver()
        told = [step for step in scenario(functions) if step[1]]
        failed = functions.driver.fake_failed()
        functions.driver.fake_fail(0)
        if failed is None:
            break
        name = failed.decode()
        names.add(name)
        assert len(told) + bool(started) <= 1, (name, told)
        assert told or started or name in GOES_ON or name == "cuCtxPushCurrent_v2", name
        for _, status, message in told:
            assert status in STATUS.values() and "CUDA" in message
        if not any(word in name for word in MAY_LEAVE):
            in_destroy = name.startswith("cuCtx") and not told
            assert in_destroy or functions.left() == NOTHING, (name, told)
            assert in_destroy or functions.driver.fake_current() == -1, (name, told)
        functions.driver.fake_enter(-1)
        assert functions.use_driver() == 0
        assert not [step for step in scenario(functions) if step[1]], name
    assert number > 200
    assert len(names) >= 33
