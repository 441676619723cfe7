"""What a pipeline refuses, and what the driver refuses it: told by name, and nothing is left."""

from __future__ import annotations

import ctypes
from threading import Barrier, Thread

import pytest

from tests.emit.expected import launched_on
from tests.emit.noting import LAUNCHED, TAKEN, order_of
from tests.emit.pipeline_calling import (
    CHECK,
    GRAPH,
    LAUNCH,
    LAUNCH_ON,
    LAUNCH_WITH,
    UPDATE,
    WORKSPACE,
)
from tests.emit.statuses import STATUS
from tests.emit.toolchain import HERE, c_compiler, compiled
from tilec.runtime.array import Array, contiguous_strides

BASE = 2**40
STREAMS = (0x100, 0x200, 0x300)
NOTHING = (0, 0, 0, 0, 0)


def dense(place, element, *shape, **changes):
    return Array(BASE * place, element, shape, contiguous_strides(shape), 0)._replace(**changes)


def summed(n=1000, **changes):
    """Arguments of `sums`: out, x: [N], scale; four temporaries of 4 N bytes in three slots."""
    given = {"out": dense(1, "f32", n), "x": dense(2, "f32", n), "scale": 2.0}
    return "sums", _changed(given, changes)


def copied(m=6, **changes):
    """Arguments of `counted`: z, x: [M, 64], n; M is even."""
    given = {"z": dense(1, "i8", m, 64), "x": dense(2, "i8", m, 64), "n": 3}
    return "counted", _changed(given, changes)


def turned(**changes):
    """Arguments of `turned`: z: [A, B, C, D], s, n."""
    given = {"z": dense(1, "u8", 4, 6, 5, 3), "s": 0.5, "n": 2}
    return "turned", _changed(given, changes)


def wide(m=64, **changes):
    """Arguments of `wide`: y, x: [M, M], scale."""
    given = {"y": dense(1, "bf16", m, m), "x": dense(2, "bf16", m, m), "scale": 2.0}
    return "wide", _changed(given, changes)


def _changed(given, changes):
    for name, change in changes.items():
        given[name] = given[name]._replace(**change) if isinstance(change, dict) else change
    return list(given.values())


def shape(*extents, **changes):
    return {"shape": extents, "strides": contiguous_strides(extents), **changes}


FIRST_COPY = "`counted`: the launch of `copy` in p.tile:51 (target = a, source = x): `copy__i8`: "
BROKEN = [
    (summed(out=None), "NULL", "`sums`: `out` is a null pointer"),
    (summed(x={"element": "f16"}), "DTYPE", "`sums`: `x`: expected elements of type `f32`"),
    (summed(x=shape(10, 100)), "RANK", "`sums`: `x`: expected 1 axes, got 2"),
    (summed(x=shape(999)), "EXTENT", "`sums`: `x`: expected extent 1000 of axis 0 (`N`, as axis 0"),
    (summed(out=shape(-1)), "LIMIT", "`sums`: `out`: extent -1 of axis 0 is negative"),
    (summed(out={"strides": (2,)}), "STRIDE", "`sums`: `out`: expected stride 1 of the last"),
    (summed(x={"device": 1}), "DEVICE", "`sums`: `x` is on device 1, `out` on device 0"),
    (summed(1_000_000), "REQUIRES", "`sums`: `requires!(N < 1000000)` does not hold, where N ="),
    (summed(out={"pointer": 0}), "ADDRESS", "`sums`: `out` has no memory: its address is 0"),
    (summed(x={"pointer": BASE + 8}), "OVERLAP", "`sums`: `out` is written and overlaps `x`: "),
    (summed(x={"pointer": BASE * 2 + 2}), "ADDRESS", "`sums`: `x`: expected an address that is"),
    (copied(5), "REQUIRES", FIRST_COPY + "`requires!(M % 2 == 0)` does not hold, where M = 5"),
    (copied(2**41), "LIMIT", "`counted`: `z`: extent 2199023255552 of axis 0 is above the limit"),
    (
        copied(n=-1),
        "GRID",
        "`counted`: the launch of `copy` in p.tile:52 (target = b, source = a): `copy__i8`: "
        "grid extent 1, `count`, is -1, where count = -1",
    ),
    (turned(z=shape(4, 2, 5, 3)), "LIMIT", "`turned`: the temporary `t` has the extent -1"),
    (turned(z=shape(2**30, 2**30, 1, 1)), "LIMIT", "the temporary `t` has more than 2^60 elements"),
    (
        turned(s=101.0),
        "REQUIRES",
        "`turned`: the launch of `scalars` in p.tile:31 (int = z): `scalars`: "
        "`requires!(f32_ < 100.5)` does not hold, where f32_ = 101.0",
    ),
    (
        turned(n=-127),
        "LIMIT",
        "`turned`: the temporary `t` has the extent -635",
    ),
    (("doubled", [dense(1, "f64", 4)] * 2), "NO_INSTANCE", "no instance of `doubled` takes these"),
]  # fmt: skip


@pytest.mark.parametrize("call, status, said", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_contract_is_refused_by_name_and_nothing_is_done(call, status, said, pipelines):
    name, arguments = call
    for what in (LAUNCH, CHECK, WORKSPACE, LAUNCH_WITH, LAUNCH_ON, GRAPH):
        called = pipelines.run(name, arguments, what, streams=STREAMS, workspace=(2**52, 2**50))
        assert said in called.message
        assert (called.status, called.graph) == (STATUS[f"TILEC_ERROR_{status}"], None)
    assert pipelines.noted.count == 0
    assert pipelines.fake.launches == 0


NEEDED = 3 * 4096
UNFIT = [
    ((2**52, NEEDED - 1), "WORKSPACE", f"expected a workspace of {NEEDED} bytes, got {NEEDED - 1}"),
    ((0, NEEDED), "WORKSPACE", "expected a workspace at a multiple of 256 bytes, got 0x0"),
    (
        (2**52 + 128, NEEDED),
        "WORKSPACE",
        "expected a workspace at a multiple of 256 bytes, got 0x10000000000080",
    ),
    ((2 * BASE, NEEDED), "WORKSPACE", "the workspace overlaps `x`: bytes 0x20000000000 to"),
    ((BASE + 3840, NEEDED), "WORKSPACE", "the workspace overlaps `out`: bytes 0x10000000f00 to"),
    (
        (2**64 - NEEDED + 256, NEEDED),
        "WORKSPACE",
        "the workspace: 12288 bytes from address 0xffffffffffffd100 on pass the end of the address",
    ),
    ((2**55, NEEDED), "DEVICE", "the workspace is on device 1, the tensors on 0"),
    ((2**56, NEEDED), "DEVICE", "`workspace`: 0x100000000000000 is the address of no memory that"),
]


@pytest.mark.parametrize("workspace, status, said", UNFIT, ids=range(len(UNFIT)))
def test_a_workspace_that_will_not_do_is_refused(workspace, status, said, pipelines):
    pipelines.fake.second_from, pipelines.fake.host_from = 2**55, 2**56
    called = pipelines.run(*summed(), LAUNCH_WITH, workspace=workspace)
    assert f"`sums`: {said}" in called.message
    assert called.status == STATUS[f"TILEC_ERROR_{status}"]
    assert pipelines.noted.count == 0
    assert pipelines.run(*summed(), LAUNCH_WITH, workspace=(2**52, NEEDED)).message == ""


def test_a_workspace_around_a_tensor_without_axes_is_refused(pipelines):
    given = [dense(1, "f32"), dense(2, "f32"), dense(3, "f32", 1000)]
    needed = 4096 + 256 + 256
    for tensor, name in ((1, "y"), (2, "start")):
        around = (BASE * tensor - 4096, needed)
        called = pipelines.run("totals", given, LAUNCH_WITH, workspace=around)
        assert f"the workspace overlaps `{name}`: bytes" in called.message
        assert called.status == STATUS["TILEC_ERROR_WORKSPACE"]
    assert pipelines.noted.count == 0
    before = (BASE - needed, needed)
    assert pipelines.run("totals", given, LAUNCH_WITH, workspace=before).message == ""


def test_without_temporaries_any_workspace_will_do(pipelines):
    arguments = [dense(1, "f32", 50), dense(2, "f32", 50)]
    called = pipelines.run("doubled", arguments, LAUNCH_WITH, workspace=(0, 0))
    assert called.message == ""
    [launched] = pipelines.notes(LAUNCHED)
    assert launched.kernel.startswith(b"add__f32_256")


def test_the_first_instance_that_takes_the_arguments_is_run(pipelines):
    for extent, kernel in ((50, b"add__f32_256"), (100, b"add__f32_1024")):
        pipelines.driver.fake_forget()
        arguments = [dense(1, "f32", extent), dense(2, "f32", extent)]
        assert pipelines.run("doubled", arguments).message == ""
        [launched] = pipelines.notes(LAUNCHED)
        assert launched.kernel.startswith(kernel)


def test_streams_must_be_some(pipelines):
    for streams, said in ((None, "a null pointer"), ((), "none")):
        called = pipelines.run(*summed(), LAUNCH_ON, streams=streams)
        assert called.status == STATUS["TILEC_ERROR_NULL"]
        assert called.message == f"`sums`: expected one stream at least, got {said}"


def test_a_stream_of_another_device_is_refused(pipelines):
    for what, streams in ((LAUNCH, ()), (LAUNCH_ON, (0x100, 0x20000))):
        called = pipelines.run(*summed(), what, 0x20000, streams=streams)
        assert "`sums`: the tensors are on device 0, the stream on device 1" in called.message
    assert pipelines.noted.count == 0


def test_no_work_needs_no_driver(pipelines):
    fresh = pipelines.anew()
    assert fresh.library.shim_set_driver(ctypes.CDLL(None)._handle) != 0
    nothing = summed(out=shape(0, pointer=0), x=shape(0, pointer=0))
    for what in (LAUNCH, CHECK, LAUNCH_WITH, LAUNCH_ON):
        assert fresh.run(*nothing, what, streams=STREAMS).message == ""
    made = fresh.run(*nothing, GRAPH)
    assert made.message == fresh.replay(made.graph).message == ""
    assert fresh.run(*nothing, UPDATE, graph=made.graph).message == ""
    fresh.destroy(made.graph)
    assert fresh.run(*summed()).status == STATUS["TILEC_ERROR_NO_DRIVER"]
    assert fresh.run(*summed(), CHECK).message == ""


def test_a_driver_without_graphs_and_events_is_an_error_for_them_only(pipelines, tmp_path):
    made = tmp_path / "libold.so"
    compiled(c_compiler(), "-std=gnu11", "-DFAKE_OLD", "-shared", "-fPIC", "-o", made,
             HERE / "fake_cuda.c")  # fmt: skip
    fresh, old = pipelines.anew(), ctypes.CDLL(str(made))
    sizes = (ctypes.c_int * 5)(8, 8, 8, 4, 8)
    for block in (256, 1024):
        old.fake_describe(b"add__f32_%d__v16" % block, 5, sizes)
    assert fresh.library.shim_set_driver(old._handle) == 0
    arguments = [dense(1, "f32", 50), dense(2, "f32", 50)]
    assert fresh.run("doubled", arguments).message == ""
    for call, what, lacking in (
        (summed(), LAUNCH, "cuMemAllocAsync"),
        (("doubled", arguments), LAUNCH_ON, "cuEventCreate"),
        (("doubled", arguments), GRAPH, "cuGraphCreate"),
    ):
        called = fresh.run(*call, what, streams=STREAMS)
        assert called.status == STATUS["TILEC_ERROR_NO_DRIVER"]
        assert f"the CUDA driver has no `{lacking}`" in called.message


def each_failure(pipelines, counter, call):
    """Lets the first, the second, … of some calls fail, until none does; what each call gave."""
    for number in range(1, 60):
        pipelines.driver.fake_forget()
        setattr(pipelines.failing, counter, number)
        called = call()
        if getattr(pipelines.failing, counter):
            assert called.message == ""
            assert number > 1
            return
        assert "CUDA_ERROR_" in called.message
        yield called
    raise AssertionError("it always fails")


@pytest.mark.parametrize(
    ("counter", "way"),
    [
        *(("launch", way) for way in (LAUNCH, LAUNCH_ON)),
        *(("take", way) for way in (LAUNCH, LAUNCH_ON)),
        *((counter, LAUNCH_ON) for counter in ("event", "record", "wait")),
    ],
)
def test_where_the_driver_refuses_midway_nothing_is_left_over(counter, way, pipelines):
    status = STATUS["TILEC_ERROR_MEMORY" if counter == "take" else "TILEC_ERROR_LAUNCH"]
    count = 0
    for called in each_failure(
        pipelines, counter, lambda: pipelines.run(*wide(), way, streams=STREAMS)
    ):
        assert (called.status, pipelines.left()) == (status, NOTHING)
        started = pipelines.notes(LAUNCHED)
        if counter == "launch":
            assert len(started) == count
            line = (20, 21, 22)[count % 3] if count < 12 else count + 11
            assert f"in p.tile:{line} (" in called.message
        if counter != "take":
            order = order_of(pipelines.notes(), STREAMS)
            # What was started is done before the memory goes back.
            assert order.given == [(STREAMS[0], {"start", *range(len(started))})]
        count += 1
    assert count >= {"take": 1, "launch": 14}.get(counter, 3)


def test_without_memory_nothing_is_launched(pipelines):
    pipelines.failing.take = 1
    called = pipelines.run(*summed())
    said = f"`sums` was not launched: no workspace of {NEEDED} bytes: CUDA_ERROR_OUT_OF_MEMORY"
    assert (called.status, called.message) == (STATUS["TILEC_ERROR_MEMORY"], said)
    assert pipelines.fake.launches == 0


def test_a_failed_load_is_an_error_before_anything_is_launched(pipelines):
    fresh = pipelines.anew()
    fresh.driver.fake_forget()
    fresh.use_driver()
    fresh.fake.fail_load = 1
    called = fresh.run(*wide())
    assert called.status == STATUS["TILEC_ERROR_LOAD"]
    assert called.message.startswith("`wide`: the launch of `following` in p.tile:20 (y = a0, x = ")
    fresh.fake.fail_load, fresh.fake.fail_map = 0, 1
    called = fresh.run(*wide())
    assert called.status == STATUS["TILEC_ERROR_TENSOR_MAP"]
    assert (fresh.fake.launches, fresh.left()) == (0, NOTHING)


@pytest.mark.parametrize("device", [0, 1])
def test_a_launch_is_in_a_context_of_its_device_and_leaves_the_current_one(device, pipelines):
    pipelines.driver.fake_enter(0)
    changes = {"device": device}
    for what in (LAUNCH, LAUNCH_ON):
        streams = [0x20000 * device + stream for stream in STREAMS]
        called = pipelines.run(*summed(out=changes, x=changes), what, streams[0], streams=streams)
        assert called.message == ""
        assert (pipelines.fake.context, pipelines.driver.fake_current()) == (device, 0)


def test_sixteen_threads_run_pipelines_at_once(pipelines):
    fresh = pipelines.anew()
    fresh.driver.fake_forget()
    fresh.use_driver()
    barrier = Barrier(16)
    said = []

    def run(number):
        barrier.wait()
        for what in (LAUNCH, LAUNCH_ON, LAUNCH):
            called = fresh.run(*summed(100 + number), what, 0x100, streams=STREAMS)
            said.append(called.message)

    threads = [Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [""] * 48
    assert (fresh.fake.loads, fresh.fake.launches, fresh.left()) == (1, 48 * 5, NOTHING)
    # Each call has a workspace of its own: a launch writes into one, or to `out`.
    workspaces = {note.address: note.bytes for note in fresh.notes(TAKEN)}
    assert len(workspaces) == 48
    for note in fresh.notes(LAUNCHED):
        [n] = {int.from_bytes(one, "little") for one in launched_on(note).parameters[4:]}
        assert 100 <= n < 116
