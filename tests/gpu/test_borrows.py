"""Launches on several streams of a GPU: what conflicts is refused or ordered, results are right."""

from __future__ import annotations

import time

import numpy as np
import pytest
from cubins import FOLDER
from gate import Gate
from host_driver import DRY_RUN

import tilec.runtime as rt

pytestmark = pytest.mark.skipif(DRY_RUN, reason="a dry run has no streams")

N = 2**16


def warm(kernel, *arguments):
    """The kernel, launched once: its code is loaded then, which would wait for what is behind a
    gate."""
    kernel(*arguments)
    return kernel


@pytest.fixture
def streams(device):
    from cuda.core import Device

    return [Device(device).create_stream() for _ in range(3)]


@pytest.fixture
def gate(device):
    """Streams that wait at it do nothing until the test opens it."""
    with Gate() as closed:
        yield closed


@pytest.fixture
def behind(load, gate):
    """Launches z = x + x of ones on a stream, behind a closed gate."""
    add = warm(load("add").add, *(rt.empty((N,), "f32") for _ in range(3)))

    def launched(stream):
        x, z = rt.to_device(np.ones(N, np.float32)), rt.empty((N,), "f32")
        gate.close(stream)
        return add, add.launch(z, x, x, stream=stream), x, z

    yield launched
    rt.order_conflicts("refuse")


def test_a_conflict_is_refused_while_the_first_launch_is_under_way(behind, gate, streams):
    y = rt.empty((4,), "f32")
    add, handle, x, z = behind(streams[0])
    with pytest.raises(rt.BorrowError, match=r"reads `x`, which `add__f32.*writes as `z`"):
        add.launch(y, z.at(64, (4,)), x.at(0, (4,)), stream=streams[1])
    assert not handle.done
    gate.open()
    handle.wait()
    add.launch(x, z, z, stream=streams[1]).wait()
    np.testing.assert_array_equal(x.numpy(), np.full(N, 4))


@pytest.mark.parametrize("how", ["order", "ordered handle", "ordered stream", "unseen"])
def test_what_is_ordered_gives_what_it_gives_on_one_stream(behind, gate, streams, how):
    y = rt.empty((N,), "f32")
    add, handle, _x, z = behind(streams[0])
    if how == "ordered handle":
        rt.ordered(handle, streams[1])
    elif how == "ordered stream":
        rt.ordered(streams[0], streams[1])
    elif how == "unseen":
        streams[1].wait(streams[0])  # which nobody tells tilec of
    last = add.launch(y, z, z, stream=streams[1], order=how == "order")
    assert not handle.done
    assert not last.done
    gate.open()
    last.wait()
    np.testing.assert_array_equal(y.numpy(), np.full(N, 4))


def test_the_default_stream_and_streams_that_wait_for_it_are_in_order(behind, gate, device):
    from cuda.bindings import driver

    _, blocking = driver.cuStreamCreate(0)
    y = rt.empty((N,), "f32")
    add, handle, _x, z = behind(0)
    last = add.launch(y, z, z, stream=int(blocking))
    assert not handle.done
    gate.open()
    last.wait()
    np.testing.assert_array_equal(y.numpy(), np.full(N, 4))
    driver.cuStreamDestroy(blocking)


def test_memory_is_freed_when_nothing_needs_it(behind, gate, streams):
    add, handle, x, z = behind(streams[0])
    with pytest.raises(rt.BorrowError, match="which may still run, has borrowed it as `z`"):
        z.free()
    assert not handle.done
    gate.open()
    handle.wait()
    z.free()
    with pytest.raises(rt.BorrowError, match="`z` was freed"):
        add.launch(z, x, x, stream=streams[0])


def test_streams_of_pytorch_are_ordered(load, gate):
    torch = pytest.importorskip("torch")
    x = torch.ones(N, device="cuda")
    z, y = torch.empty_like(x), torch.empty_like(x)
    add = warm(load("add").add, z, x, x)
    side = torch.cuda.Stream()
    for waits in (True, False):
        torch.cuda.synchronize()
        z.zero_()
        gate.close(torch.cuda.current_stream().cuda_stream)
        add.launch(z, x, x)
        if waits:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            handle = add.launch(y, z, z)
        assert not handle.done
        gate.open()
        handle.wait()
        assert torch.equal(y, torch.full((N,), 4.0, device="cuda"))


def test_what_is_apart_runs_side_by_side_and_is_not_asked_about(load, streams):
    add = load("add").add
    pairs = [(rt.to_device(np.full(1000, n, np.float32)), rt.empty((1000,), "f32")) for n in (1, 2)]
    begin = time.perf_counter()
    for _ in range(500):
        for stream, (x, z) in zip(streams, pairs, strict=False):
            add.launch(z, x, x, stream=stream)
    assert time.perf_counter() - begin < 60, "nothing waits for anything"
    for stream, (x, z) in zip(streams, pairs, strict=False):
        stream.sync()
        np.testing.assert_array_equal(z.numpy(), 2 * x.numpy())


def test_a_graph_is_in_order_with_itself_and_refused_beside_others(load, gate, streams):
    diamond = load(f"{FOLDER}/pipelines/diamond")
    x, y = rt.to_device(np.ones(N, np.float32)), rt.empty((N,), "f32")
    warm(diamond.scaled, y, x, 1.0)
    with diamond.diamond.graph(y, x, 1.0) as graph:
        graph.replay(streams[0]).wait()
        gate.close(streams[0])
        handles = [graph.replay(streams[number]) for number in (0, 1, 0)]
        with pytest.raises(rt.BorrowError, match=r"`scaled__f32_.*which `diamond`"):
            diamond.scaled.launch(x, y, 2.0, stream=streams[2])
        with pytest.raises(rt.BorrowError, match="holds its memory"):
            x.free()
        last = diamond.scaled.launch(x, y, 2.0, stream=streams[2], order=True)
        assert not any(handle.done for handle in (*handles, last))
        gate.open()
        last.wait()
        np.testing.assert_array_equal(x.numpy(), np.full(N, 20))
    x.free()
