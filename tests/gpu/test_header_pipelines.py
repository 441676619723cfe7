"""Pipelines launched from C by emitted headers, by all ways; results have the runtime's bits."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from cubins import FOLDER
from host_driver import DRY_RUN
from test_pipelines import SELECTIONS, chained, mlp_inputs, selections, whole

import tilec.runtime as rt
from tests.emit.pipeline_calling import (
    CHECK,
    GRAPH,
    LAUNCH,
    LAUNCH_ON,
    LAUNCH_WITH,
    UPDATE,
    WORKSPACE,
    PipelineFunctions,
)

pytestmark = pytest.mark.skipif(DRY_RUN, reason="a header launches by the driver itself")


class FromC:
    """A pipeline of a header."""

    def __init__(self, functions, name):
        self._functions = functions
        self._name = name

    def run(self, arguments, what, **options):
        plain = [one.array if isinstance(one, rt.Tensor) else one for one in arguments]
        return self._functions.run(self._name, plain, what, **options)

    def done(self, arguments, what, **options):
        called = self.run(arguments, what, **options)
        assert called.status == 0, called.message
        return called

    def replay(self, graph, stream):
        called = self._functions.replay(graph, int(stream.handle))
        assert called.status == 0, called.message

    def destroy(self, graph):
        self._functions.destroy(graph)

    def ways(self, streams):
        """Calls by all the ways to run it: each leaves its work done."""

        def launch(*arguments):
            stream = streams()
            self.done(arguments, LAUNCH, stream=int(stream.handle))
            stream.sync()

        def in_own_memory(*arguments):
            needed = self.done(arguments, WORKSPACE).workspace_bytes
            memory, stream = rt.empty((max(needed, 1),), "u8"), streams()
            place = memory.array.pointer, needed
            self.done(arguments, LAUNCH_WITH, stream=int(stream.handle), workspace=place)
            stream.sync()

        def on_streams(*arguments):
            several = [streams() for _ in range(3)]
            self.done(arguments, LAUNCH_ON, streams=[int(one.handle) for one in several])
            several[0].sync()

        def graph(*arguments):
            made = self.done(arguments, GRAPH).graph
            both = streams(), streams()
            for turn in range(6):
                self.replay(made, both[turn % 2])
            self.destroy(made)
            for stream in both:
                stream.sync()

        return [launch, in_own_memory, on_streams, graph]


@pytest.fixture(scope="session")
def functions(tmp_path_factory):
    """The functions of a module's header; compiled once."""

    @cache
    def compiled(module):
        folder = tmp_path_factory.mktemp("header")
        return PipelineFunctions([module.manifest], folder, module.cubin)

    return compiled


@pytest.fixture
def pipeline(load, functions):
    """A pipeline as the runtime has it, and as the header has it."""

    def both(file, name):
        module = load(f"{FOLDER}/{file}")
        return module[name], FromC(functions(module), name)

    return both


@pytest.fixture
def streams(device):
    from cuda.core import Device

    return lambda: Device(device).create_stream()


@pytest.mark.parametrize("n", [0, 1, 4099, 300_001])
def test_chains_and_diamonds_are_exact_each_way(pipeline, zones, streams, n):
    x = whole(n, n)
    for file, more, expected in (
        ("chain", (), chained(x)),
        ("diamond", (3.0,), 2 * (2 * 3 * x + 3 * 3 * x)),
    ):
        _, made = pipeline(f"pipelines/{file}", file)
        for way in made.ways(streams):
            y = zones.output((n,), "f32")
            way(y, zones.input(x, "f32"), *more)
            np.testing.assert_array_equal(zones.values(y), expected)


@pytest.mark.parametrize("sizes", [(1, 64, 64), (128, 256, 512)])
def test_an_mlp_has_the_bits_of_the_runtime_each_way(pipeline, zones, streams, sizes):
    m, d, f = sizes
    tensors, _ = mlp_inputs(zones, m, d, f)
    by_runtime, made = pipeline("pipelines/mlp", "mlp")
    expected = zones.output((m, d), "bf16")
    by_runtime(expected, *tensors.values())
    for way in made.ways(streams):
        y = zones.output((m, d), "bf16")
        way(y, *tensors.values())
        np.testing.assert_array_equal(y.bits(), expected.bits())


@pytest.mark.parametrize("sizes", SELECTIONS)
def test_launches_in_clusters_and_of_split_sums(pipeline, zones, streams, sizes):
    factors, expected = selections(*sizes)
    given = [zones.input(one, "bf16") for one in factors]
    for way in pipeline("clustered", "products")[1].ways(streams):
        y = zones.output(expected.shape, "bf16")
        way(y, *given)
        np.testing.assert_array_equal(zones.values(y), expected)


def test_turned_tensors_and_computed_sizes(pipeline, zones, streams):
    rng = np.random.default_rng(0)
    x = rng.integers(-99, 99, (3, 5, 130)).astype(np.float64)
    for way in pipeline("pipelines/two_files", "swapped")[1].ways(streams):
        y = zones.output((5, 3, 130), "f32")
        way(y, zones.input(x, "f32", strides=(5 * 140, 140, 1)))
        np.testing.assert_array_equal(zones.values(y), x.transpose(1, 0, 2))


def test_a_graph_takes_other_tensors(pipeline, zones, streams):
    _, made = pipeline("pipelines/diamond", "diamond")
    stream, graph = streams(), None
    for n, shift in ((5000, 0), (5000, 4), (300, 0), (70_001, 12), (0, 0), (17, 0)):
        x = zones.input(whole(n, n + shift), "f32", misaligned_bytes=shift)
        y = zones.output((n,), "f32", misaligned_bytes=shift)
        what = UPDATE if graph else GRAPH
        graph = made.done((y, x, 1.0), what, graph=graph).graph
        made.replay(graph, stream)
        stream.sync()
        np.testing.assert_array_equal(zones.values(y), 10 * whole(n, n + shift))
    y, x = zones.output((64,), "f32"), zones.input(whole(64, 1), "f32")
    assert "`y` is written and overlaps `x`" in made.run((y, y, 1.0), UPDATE, graph=graph).message
    made.replay(graph, stream)
    made.destroy(graph)


def test_a_broken_contract_launches_nothing(pipeline, zones):
    _, made = pipeline("pipelines/mlp", "mlp")
    tensors, _ = mlp_inputs(zones, 16, 64, 16)
    x, w1, w2, w3 = tensors.values()
    y = zones.output((16, 64), "bf16")
    broken = {
        "`mlp`: `w1`: expected extent 64": (y, x, w1.at(0, (63, 16)), w2, w3),
        "`mlp`: `x`: expected elements": (y, x.at(0, (16, 64), "f16"), w1, w2, w3),
        "`mlp`: `y` is written and overlaps `w2`": (y, x, w1, y, w3),
        "`mlp`: `requires!(F % 16 == 0)`": (
            y, x, w1.at(0, (64, 15), strides=(16, 1)), w2.at(0, (15, 64)),
            w3.at(0, (64, 15), strides=(16, 1)),
        ),
    }  # fmt: skip
    for said, arguments in broken.items():
        for what in (CHECK, LAUNCH, GRAPH):
            assert said in made.run(arguments, what).message
    zones.verify()
    assert np.isnan(zones.values(y)).all()  # still what it was
