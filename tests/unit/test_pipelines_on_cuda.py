"""What CUDA is asked for where pipelines run, with a CUDA that only keeps track of it."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from manifest_samples import mapped_kernel
from noted_cuda import forget, installed
from noting_driver import Event, arrays, module_of
from pipeline_samples import sums, with_pipelines

import tilec.runtime as rt
from tilec.artifact.pipeline import Argument, PipelineLaunch
from tilec.runtime import driver as real_driver
from tilec.runtime import stream_memory
from tilec.runtime.array import Array
from tilec.runtime.launch import UnderWay

pytestmark = pytest.mark.usefixtures("launch_path")

SLOT = 4096
HERE = SimpleNamespace(device=0)


@pytest.fixture
def installs(monkeypatch):
    """A CUDA with so many devices, where everything is done at once."""
    for name in ("pipeline", "graph", "tensor"):
        monkeypatch.setattr(f"tilec.runtime.{name}.UNDER_WAY", UnderWay())
    monkeypatch.setattr(real_driver, "recorded", lambda entry, stream: Event())
    monkeypatch.setattr(real_driver, "is_over", lambda event: True)
    memory = SimpleNamespace(handle=2**44, size=2**30)
    monkeypatch.setattr(real_driver, "allocated", lambda size, device: memory)
    yield lambda count: installed(monkeypatch, count)
    forget()


@pytest.fixture(params=[1, 2])
def cuda(request, installs):
    return installs(request.param)


def pipeline(early=False):
    made = with_pipelines()
    kernels = tuple(
        replace(k, variants=tuple(replace(v, starts_early=early) for v in k.variants))
        for k in made.kernels
    )
    return module_of(real_driver, replace(made, kernels=kernels)).sums


def given(device=0):
    out, x, _ = (one._replace(device=device) for one in arrays())
    return out, x, 0.5


def in_a_thread(work):
    failures = []

    def run():
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures, failures


def test_the_workspace_comes_from_the_streams_pool_and_goes_back(cuda):
    call = pipeline()
    for stream in (0, 5):
        cuda.streams.clear()
        in_a_thread(lambda on=stream: call.launch(*given(), stream=on))
        where = stream or 1  # the legacy stream by name
        assert cuda.streams == [("alloc", 3 * SLOT, where, 0), ("free", 2**41, where, 0)]
    assert [stream for stream, _ in cuda.launched] == [1] * 5 + [5] * 5
    assert cuda.asked.count(("pool", 0)) == 1


def test_on_another_device_all_of_it_is_there(installs):
    cuda = installs(2)
    call = pipeline()
    cuda.cuCtxSetCurrent(101)
    call.launch(*given(device=1), streams=3)
    assert {device for *_, device in cuda.streams} == {1} and len(cuda.launched) == 5
    assert {device for _, device in cuda.launched} == {1}
    assert cuda.current == 101
    memory = Array(2**45, "u8", (2**20,), (1,), 1)
    for act in (
        lambda: call.launch(*given(device=1), stream=5),
        lambda: call.launch(*given(device=1), stream=5, workspace=memory),
        lambda: call.launch(*given(device=1), stream=5, workspace=memory, streams=2),
        lambda: call.graph(*given(device=1)).replay(5),
    ):
        with pytest.raises(rt.ContractError, match=r"`sums`: .*the tensors are on device 1"):
            act()
    assert len(cuda.launched) == 5


def test_without_memory_nothing_is_launched(cuda):
    cuda.fails = True
    message = "`sums` was not launched: no workspace of 12288 bytes: CUDA_ERROR_OUT_OF_MEMORY"
    with pytest.raises(rt.LaunchError, match=message):
        pipeline().launch(*given())
    assert not cuda.launched


def test_streams_beside_the_callers_are_used_again(cuda):
    call = pipeline()
    for stream in (0, 64):
        cuda.streams.clear()
        in_a_thread(lambda on=stream: call.launch(*given(), stream=on, streams=4))
        here, there = stream or 1, 501
        kinds = [(what, on) for what, _, on, _ in cuda.streams]
        assert kinds == [
            ("alloc", here), ("record", here), ("wait", there), ("record", there), ("wait", here),
            ("free", here),
        ]  # fmt: skip
    assert [on for on, _ in cuda.launched] == [1, 501, 1, 1, 1, 64, 501, 64, 64, 64]


def test_two_threads_never_share_a_stream_beside_theirs(cuda):
    with stream_memory.side_streams(2, HERE, 5) as mine:
        with stream_memory.side_streams(2, HERE, 6) as others:
            assert len({*mine, *others}) == 4
        with stream_memory.side_streams(1, HERE, 6) as again:
            assert set(again) <= set(others)


def test_streams_of_a_capture_are_left_to_it(cuda):
    cuda.captured = {5}
    with stream_memory.side_streams(2, HERE, 5) as taken:
        cuda.captured.update(taken)
    with stream_memory.side_streams(2, HERE, 6) as others:
        assert not set(taken) & set(others)
    cuda.captured.clear()
    with stream_memory.side_streams(4, HERE, 6) as all_of_them:
        assert set(all_of_them) == {*taken, *others}


# Graphs


def test_a_graph_has_kernel_nodes_and_edges(cuda):
    out, x, _ = given()
    graph = pipeline().graph(*given())
    [made] = cuda.graphs
    assert made["edges"] == [(0, 2), (1, 2), (2, 3), (3, 4)] and not made["programmatic"]
    a, b, c = (2**44 + n * SLOT for n in range(3))
    half = 0x3F000000
    assert [node.pop("cells") for node in made["nodes"]] == [
        [a, x.pointer, x.pointer, half, 1000],
        [b, x.pointer, x.pointer, half, 1000],
        [c, a, b, half, 1000],
        [a, c, c, half, 1000],
        [out.pointer, a, a, half, 1000],
    ]
    plain = {"kernel": 5, "grid": (1, 1, 1), "block": (128, 1, 1), "smem": 0}
    assert made["nodes"] == [plain] * 5
    in_a_thread(lambda: graph.replay(64))
    in_a_thread(lambda: graph.replay())
    assert [one[:3] for one in cuda.streams] == [("graph", 0, 64), ("graph", 0, 1)]
    assert not cuda.launched


def test_nodes_that_may_start_early_have_programmatic_edges(cuda):
    _ = pipeline(early=True).graph(*given())
    [made] = cuda.graphs
    assert made["edges"] == [(0, 2), (1, 2)] and made["programmatic"] == [(2, 3), (3, 4)]


def test_early_launches_on_streams_say_so(cuda):
    in_a_thread(lambda: pipeline(early=True).launch(*given(), stream=64))
    assert len(cuda.launched) == 1
    assert [one["early"] for one in cuda.launched_extended] == [True] * 4


def test_an_update_sets_the_nodes(cuda):
    graph = pipeline().graph(*given())
    graph.update(x=given()[1]._replace(pointer=2**43))
    [made] = cuda.graphs
    assert made["nodes"][1]["cells"][1:3] == [2**43, 2**43]


def test_an_update_that_the_driver_refuses_changes_nothing(cuda):
    graph = pipeline().graph(*given())
    before = [list(node["cells"]) for node in cuda.graphs[0]["nodes"]]
    cuda.set_left = 3
    with pytest.raises(rt.LaunchError, match="`sums`: "):
        graph.update(scale=2.0)
    assert [node["cells"] for node in cuda.graphs[0]["nodes"]] == before


def test_only_nodes_that_change_are_set(cuda):
    graph = pipeline().graph(*given())
    cuda.set_left = 3
    graph.update(x=given()[1]._replace(pointer=2**43))  # the argument of two launches
    assert cuda.set_left == 1
    graph.update(x=given()[1]._replace(pointer=2**43))
    assert cuda.set_left == 1


def test_a_graph_is_not_launched_into_another(cuda):
    graph = pipeline().graph(*given())
    cuda.captured = {64}
    with pytest.raises(rt.LaunchError, match="the graph of `sums` is not launched on a stream"):
        graph.replay(64)
    assert not cuda.streams
    graph.replay(65)


def scaled(**changes):
    """A pipeline of one launch, of a variant with tensor maps that `changes` say more of."""
    kernel = mapped_kernel(**changes)
    base = sums()
    tensors = tuple(
        replace(p, element="bf16", extents=("M", "K")) if p.is_tensor else p
        for p in base.parameters
    )
    arguments = Argument("y", "out"), Argument("x", "x"), Argument("scale", value="scale")
    one = PipelineLaunch("scaled", (kernel.symbol,), arguments, (), "sums.tile", 3)
    made = replace(
        base, parameters=tensors, dims=("M", "K"), temporaries=(), launches=(one,), requires=()
    )
    manifest = replace(with_pipelines(), kernels=(kernel,), pipelines=(made,))
    return module_of(real_driver, manifest).sums


def matrices(rows):
    return [Array(2**40 * n, "bf16", (rows, 64), (64, 1), 0) for n in (1, 2)]


def test_clusters_and_tensor_maps_are_told_to_nodes(installs):
    cuda = installs(1)
    out, x = matrices(192)
    graph = scaled(cluster=(1, 2, 1), dynamic_smem_bytes=1024).graph(out, x, 1.0)
    [node] = cuda.graphs[0]["nodes"]
    assert node["cluster"] == (1, 2, 1) and node["grid"] == (1, 4, 1) and node["smem"] == 1024
    assert [told["address"] for told in cuda.maps] == [x.pointer, out.pointer]
    graph.update(x=x._replace(pointer=2**43))
    assert [told["address"] for told in cuda.maps[2:]] == [2**43]


@pytest.mark.parametrize(("rows", "blocks"), [(64 * 1000, 128), (64 * 5, 8)])
def test_persistent_clusters_of_a_node_all_have_room(installs, rows, blocks):
    cuda = installs(1)
    _ = scaled(cluster=(4, 1, 1), persistent_blocks_per_sm=1).graph(*matrices(rows), 1.0)
    assert cuda.graphs[0]["nodes"][0]["grid"] == (blocks, 1, 1)


def test_what_a_graph_holds_is_destroyed_with_it(cuda):
    graph = pipeline().graph(*given())
    graph.close()
    gc.collect()
    assert sorted(one for one in cuda.streams if len(one) == 2) == [
        ("destroyed", 0),
        ("exec destroyed", 0),
    ]
