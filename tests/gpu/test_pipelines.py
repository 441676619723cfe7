"""Pipelines on a GPU, by all the ways there are: one stream, several, graphs, captured.

The programs are those of `tests/pipelines/programs`. Chain and diamond add and scale small whole
numbers, which f32 holds exactly; the gated MLP has a bound. Every way gives the same bits.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np
import pytest
from cubins import FOLDER
from element_bits import rounded
from host_driver import DRY_RUN

import tilec.runtime as rt

HALF_ULP = 2.0**-9  # of bf16, relative
on_gpu = pytest.mark.skipif(DRY_RUN, reason="a dry run has no streams")


@pytest.fixture
def pipeline(load):
    return lambda file, name: load(f"{FOLDER}/pipelines/{file}")[name]


@pytest.fixture
def streams(device):
    """Makes streams."""
    if DRY_RUN:
        return lambda: 0
    from cuda.core import Device

    return lambda: Device(device).create_stream()


def whole(n, seed):
    return np.random.default_rng(seed).integers(-99, 99, n).astype(np.float64)


def chained(x):
    return x + 4950 * (np.arange(len(x)) % 8)  # 0 + 1 + … + 99


def ways(call, streams):
    """Calls of a pipeline by all the ways to run it: each leaves the device done."""

    def on_a_stream(many):
        def launch(*arguments):
            call.launch(*arguments, stream=streams(), streams=many).wait()

        return launch

    def own_workspace(*arguments):
        memory = rt.empty((call.workspace_bytes(*arguments),), "u8")
        call.launch(*arguments, stream=streams(), workspace=memory).wait()

    def graph(*arguments):
        with call.graph(*arguments) as made:
            for _ in range(3):
                handle = made.replay(streams())
        handle.wait()

    return [call, on_a_stream(1), on_a_stream(2), on_a_stream(8), own_workspace, graph]


@pytest.mark.parametrize("n", [0, 1, 255, 4099])
def test_chains_and_diamonds_are_exact_each_way(pipeline, zones, streams, n):
    x = whole(n, n)
    for file, more, expected in (
        ("chain", (), chained(x)),
        ("diamond", (3.0,), 2 * (2 * 3 * x + 3 * 3 * x)),
    ):
        for way in ways(pipeline(file, file), streams):
            y = zones.output((n,), "f32")
            way(y, zones.input(x, "f32"), *more)
            np.testing.assert_array_equal(zones.values(y), expected)


def test_turned_tensors_computed_sizes_and_atomics(pipeline, zones, streams):
    """`swapped` gives a launch a permuted view, `histogram` a size and scalars of its own."""
    rng = np.random.default_rng(0)
    x = rng.integers(-99, 99, (3, 5, 130)).astype(np.float64)
    for way in ways(pipeline("two_files", "swapped"), streams):
        y = zones.output((5, 3, 130), "f32")
        way(y, zones.input(x, "f32", strides=(5 * 140, 140, 1)))
        np.testing.assert_array_equal(zones.values(y), x.transpose(1, 0, 2))
    numbers, bins = rng.integers(0, 10**6, 3001), 37
    for way in ways(pipeline("two_files", "histogram"), streams):
        counts = zones.output((bins,), "i32")
        way(counts, zones.input(numbers, "i32"))
        expected = 3 * np.bincount(numbers % bins, minlength=bins)
        np.testing.assert_array_equal(zones.values(counts), expected)
    for way in ways(pipeline("two_files", "twice"), streams):
        y = zones.output((15, 130), "f32")
        way(y, zones.input(x.reshape(15, 130), "f32"))
        np.testing.assert_array_equal(zones.values(y), 2 * x.reshape(15, 130))


def mlp_inputs(zones, m, d, f):
    rng = np.random.default_rng(m)
    shapes = {"x": (m, d), "w1": (d, f), "w2": (f, d), "w3": (d, f)}
    values = {name: rng.normal(size=s) / np.sqrt(s[0]) for name, s in shapes.items()}
    values["x"] = rng.normal(size=(m, d))
    tensors = {name: zones.input(one, "bf16") for name, one in values.items()}
    return tensors, {name: rounded(one, "bf16") for name, one in values.items()}


def gated(x, w1, w2, w3):
    """The MLP in float64, its tensors rounded; and a bound for what other sums may make of it.

    An element of g, u or h that lies near the middle of two bf16 may be rounded to the other one:
    then h is off by an ulp for itself, and for each of g and u, of which |h| grows no faster than
    1.1 times as fast in g and exactly as fast in u, relatively, where |g| is below 4.
    """
    g, u = rounded(x @ w1, "bf16"), rounded(x @ w3, "bf16")
    h = rounded(g / (1 + np.exp(-g)) * u, "bf16")
    steepness = 1 + np.abs(g)  # of silu, relatively: 1 + g (1 - sigmoid(g))
    bound = (2 * HALF_ULP * np.abs(h) * (2 + steepness)) @ np.abs(w2)
    return h @ w2, bound + HALF_ULP * np.abs(h @ w2) + 1e-30


@pytest.mark.parametrize("sizes", [(1, 64, 64), (100, 128, 208), (128, 256, 512)])
def test_an_mlp_is_the_same_each_way(pipeline, zones, streams, sizes):
    m, d, f = sizes
    tensors, values = mlp_inputs(zones, m, d, f)
    expected, bound = gated(**values)
    found = []
    for way in ways(pipeline("mlp", "mlp"), streams):
        y = zones.output((m, d), "bf16")
        way(y, *tensors.values())
        assert (np.abs(zones.values(y) - expected) <= bound + HALF_ULP * np.abs(expected)).all()
        found.append(y.bits())
    for bits in found[1:]:
        np.testing.assert_array_equal(bits, found[0])


def selections(m, d, f):
    """Factors of `clustered.tile`, whose products pick columns and so are exact; and the result."""
    rng = np.random.default_rng(m)
    x = rng.integers(-99, 99, (m, d)).astype(np.float64)
    of_d, of_f = rng.integers(0, d, f), rng.integers(0, f, d)
    w, v = np.zeros((d, f)), np.zeros((f, d))
    w[of_d, np.arange(f)] = 1
    v[of_f, np.arange(d)] = 1
    return (x, w, v), x[:, of_d][:, of_f][:, of_d]


# Of fewer blocks than a cluster has; more than the device has room for at once; unaligned rows.
SELECTIONS = [(1, 64, 128), (1500, 512, 1664), (300, 129, 130)]


@pytest.mark.parametrize("sizes", SELECTIONS)
def test_launches_in_clusters_and_of_split_sums(load, zones, streams, sizes):
    factors, expected = selections(*sizes)
    given = [zones.input(one, "bf16") for one in factors]
    for way in ways(load(f"{FOLDER}/clustered").products, streams):
        y = zones.output(expected.shape, "bf16")
        way(y, *given)
        np.testing.assert_array_equal(zones.values(y), expected)


def test_a_graph_outlives_the_callers_tensors(pipeline, device):
    n = 100_003
    x, y = rt.to_device(whole(n, 1).astype(np.float32)), rt.empty((n,), "f32")
    graph = pipeline("chain", "chain").graph(y, x)
    del x
    others = [rt.to_device(np.full(n, np.nan, np.float32)) for _ in range(8)]
    for _ in range(2):
        graph.replay().wait()
        np.testing.assert_array_equal(y.numpy(), chained(whole(n, 1)))
    assert np.isnan(others[0].numpy()).all()


def test_a_graph_takes_other_tensors(pipeline, zones, streams):
    n = 5000
    first, second, third = (zones.input(whole(n, seed), "f32") for seed in (1, 2, 3))
    outputs = [zones.output((n,), "f32") for _ in range(3)]
    graph = pipeline("diamond", "diamond").graph(outputs[0], first, 1.0)
    graph.replay()
    graph.update(y=outputs[1], x=second)
    graph.replay()
    with pytest.raises(rt.ContractError, match="`y` is written and overlaps `x`"):
        graph.update(x=outputs[1])
    graph.update(factor=-2.0, y=outputs[2], x=third)
    graph.replay().wait()
    for y, seed, factor in zip(outputs, (1, 2, 3), (1, 1, -2), strict=True):
        np.testing.assert_array_equal(zones.values(y), 10 * factor * whole(n, seed))
    for more in (300, 70_001, 0, 17):  # other grids, and another form
        x, y = zones.input(whole(more, more), "f32"), zones.output((more,), "f32")
        graph.update(y=y, x=x, factor=1.0)
        graph.replay(streams()).wait()
        np.testing.assert_array_equal(zones.values(y), 10 * whole(more, more))


def test_misaligned_tensors_take_other_variants_of_a_graph(pipeline, zones):
    n = 4096
    call = pipeline("diamond", "diamond")
    aligned = zones.input(whole(n, 1), "f32"), zones.output((n,), "f32")
    graph = call.graph(aligned[1], aligned[0], 1.0)
    for shift in (4, 0, 12):
        x = zones.input(whole(n, shift), "f32", misaligned_bytes=shift)
        y = zones.output((n,), "f32", misaligned_bytes=shift)
        graph.update(x=x, y=y)
        graph.replay().wait()
        np.testing.assert_array_equal(zones.values(y), 10 * whole(n, shift))


@on_gpu
def test_a_graph_on_two_streams_runs_once_at_a_time(pipeline, device, streams):
    """Its launches share a workspace: overlapping ones would disturb each other."""
    n = 70_000
    x, y = rt.to_device(whole(n, 4).astype(np.float32)), rt.empty((n,), "f32")
    graph = pipeline("chain", "chain").graph(y, x)
    both = streams(), streams()
    for turn in range(12):
        handle = graph.replay(both[turn % 2])
    other = graph.replay(both[1])
    handle.wait()
    other.wait()
    np.testing.assert_array_equal(y.numpy(), chained(whole(n, 4)))


@on_gpu
@pytest.mark.parametrize("many", [1, 4])
def test_threads_launch_at_once(pipeline, device, streams, many):
    """Each has its own workspace and streams beside its own."""
    n, call = 50_000, pipeline("diamond", "diamond")
    failures = []

    def work(seed, stream):
        try:
            x = rt.to_device(whole(n, seed).astype(np.float32))
            results = []
            for turn in range(20):
                results.append(rt.empty((n,), "f32"))
                call.launch(results[-1], x, float(turn), stream=stream, streams=many)
            stream.sync()
            for turn, y in enumerate(results):
                np.testing.assert_array_equal(y.numpy(), 10 * turn * whole(n, seed))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed, streams())) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@contextmanager
def captured(stream):
    """Captures a stream into a graph, and gives a function that launches it."""
    from cuda.bindings import driver

    def checked(answer):
        assert answer[0] == driver.CUresult.CUDA_SUCCESS, answer
        return answer[1] if len(answer) > 1 else None

    made = []
    handle = int(stream.handle)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    checked(driver.cuStreamBeginCapture(handle, mode))
    yield lambda: checked(driver.cuGraphLaunch(made[1], handle))
    made.append(checked(driver.cuStreamEndCapture(handle)))
    made.append(checked(driver.cuGraphInstantiate(made[0], 0)))


@on_gpu
@pytest.mark.parametrize("many", [1, 3])
def test_launches_are_captured_with_their_workspace(pipeline, device, streams, many):
    n, call = 10_000, pipeline("diamond", "diamond")
    x, y = rt.to_device(whole(n, 5).astype(np.float32)), rt.empty((n,), "f32")
    call.launch(y, x, 1.0, streams=many).wait()  # loaded
    stream, graph = streams(), call.graph(y, x, 1.0)
    with captured(stream) as replay:
        handle = call.launch(y, x, 2.0, stream=stream, streams=many)
        with pytest.raises(rt.LaunchError, match="does not run before the graph"):
            handle.wait()
        with pytest.raises(rt.LaunchError, match="the graph of `diamond` is not launched on a str"):
            graph.replay(stream)  # which does not spoil the capture
    beside = rt.empty((n,), "f32")
    for factor in (1.0, 3.0):
        call.launch(beside, x, factor, streams=many).wait()  # nothing is left of the capture
        np.testing.assert_array_equal(beside.numpy(), 10 * factor * whole(n, 5))
        for _ in range(2):
            replay()
            stream.sync()
            np.testing.assert_array_equal(y.numpy(), 20 * whole(n, 5))


def test_what_a_launch_does_not_take_launches_nothing(pipeline, zones):
    call = pipeline("mlp", "mlp")
    tensors, _ = mlp_inputs(zones, 16, 64, 64)
    y = zones.output((16, 64), "bf16")
    with pytest.raises(rt.ContractError, match=r"`mlp`: `w2`: expected extent"):
        call(y, tensors["x"], tensors["w1"], tensors["w1"].at(0, (32, 64)), tensors["w3"])
    with pytest.raises(rt.ContractError, match=r"`mlp`: `y` is written and overlaps `x`"):
        call(tensors["x"], *tensors.values())
    assert np.isnan(zones.values(y)).all()
