"""Devices, contexts and default streams, with a CUDA that only keeps track of them."""

from __future__ import annotations

import os
import threading
import warnings
from array import array
from types import SimpleNamespace

import pytest
from cuda.bindings import driver as real
from manifest_samples import add_kernel
from noted_cuda import MULTIPROCESSORS, SUCCESS, forget, installed

import tilec.runtime as rt
from tilec.runtime import devices, driver, launch, machine_code, starting, streams
from tilec.runtime.array import Array
from tilec.runtime.entry import Entry
from tilec.runtime.launcher import Launcher

pytestmark = pytest.mark.usefixtures("launch_path")


@pytest.fixture(params=[1, 2])
def cuda(request, monkeypatch):
    yield installed(monkeypatch, request.param)
    forget()


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
    for failure in failures:
        raise failure


def started(device, stream, early=False):
    variant = add_kernel().variants[0]
    entry = Entry(add_kernel(), variant, device, (1, 1, 1), [0] * 5, 0)
    code = machine_code.Code(b"", "sm_90a", "x")
    starting.prepared(code, entry, array("Q", [0] * 5), early)(stream)


def test_memory_is_allocated_where_nothing_was_current(cuda):
    assert rt.empty((4,), "f32").device == 0
    in_a_thread(lambda: rt.empty((4,), "f32"))


@pytest.mark.parametrize("context", [1, 101])
def test_memory_is_allocated_where_another_library_made_its_context_current(cuda, context):
    def allocate():
        cuda.cuCtxSetCurrent(context)
        assert rt.empty((4,), "f32").device == 0
        assert cuda.current == context

    allocate()
    in_a_thread(allocate)
    allocate()


def test_memory_of_another_device_leaves_the_current_one(cuda):
    if cuda.count == 1:
        pytest.skip("needs two devices")
    for device in (0, 1):
        cuda.cuCtxSetCurrent(device + 1)
        assert rt.empty((4,), "f32").device == device
        assert rt.empty((4,), "f32", 1 - device).device == 1 - device
        assert cuda.device == device


def test_a_thread_without_a_context_launches(cuda):
    in_a_thread(lambda: started(0, 0))
    in_a_thread(lambda: started(0, 96))
    assert cuda.launched == [(1, 0), (96, 0)]


def test_a_driver_that_tells_no_addresses_of_functions_is_asked_by_python(cuda):
    cuda.cuGetProcAddress = lambda *told: (real.CUresult.CUDA_ERROR_NOT_FOUND, 0, None)
    cuda.cuCtxSetCurrent(1)
    started(0, 0)
    assert cuda.launched == [(1, 0)]


def test_what_was_prepared_in_one_thread_is_launched_in_another(cuda):
    variant = add_kernel().variants[0]
    entry = Entry(add_kernel(), variant, 0, (1, 1, 1), [0] * 5, 0)
    code = machine_code.Code(b"", "sm_90a", "x")
    start = starting.prepared(code, entry, array("Q", [0] * 5))
    in_a_thread(lambda: start(0))
    start(1)
    assert cuda.launched == [(1, 0), (1, 0)]


def test_a_default_stream_is_that_of_the_tensors_device(cuda):
    if cuda.count == 1:
        pytest.skip("needs two devices")
    for current in (0, 1):
        for device in (0, 1):
            cuda.cuCtxSetCurrent(current + 1)
            started(device, 0)
            assert cuda.launched[-1] == (1, device)
            assert cuda.device == current


def test_streams_are_known_by_what_libraries_answer(cuda):
    for given in (
        7,
        SimpleNamespace(cuda_stream=7),
        SimpleNamespace(__cuda_stream__=lambda: (0, 7)),
        SimpleNamespace(cuda_stream=7, __cuda_stream__=lambda: (0, 7)),
    ):
        assert driver.stream_of(given) == 7
    for wrong in ("s", 7.0, SimpleNamespace(cuda_stream=None), -1, 2**64):
        with pytest.raises(rt.TilecError, match="expected a CUDA stream"):
            driver.stream_of(wrong)


class Closable:
    """A stream of cuda.core."""

    def __init__(self, address):
        self.address = address
        self.is_closed = False

    def __cuda_stream__(self):
        return 0, self.address


def test_a_stream_that_was_closed_is_not_asked_about(cuda, monkeypatch):
    """By a caller who has waited for it where the runtime did not see that."""
    monkeypatch.setattr(streams, "Stream", Closable)
    monkeypatch.setattr(streams, "_CLOSABLE", {})
    add = Launcher(
        SimpleNamespace(driver=lambda: driver, code=lambda: machine_code.Code(b"", "sm_90a", "x")),
        [add_kernel()],
    )
    tensors = [Array(2**40 + 2**20 * i, "f32", (64,), (1,), 0) for i in range(3)]
    given, other = Closable(64), Closable(128)
    handle = add.launch(*tensors, 1.0, stream=given)
    given.is_closed = True
    asked = len(cuda.streams)
    launch.UNDER_WAY.settle()
    add.launch(*tensors, 1.0, stream=other)
    add.launch(*tensors, 1.0, stream=0)
    handle.wait()
    assert ("finished", 0) in cuda.streams[asked:]
    assert all(64 not in told for told in cuda.streams[asked:])
    with pytest.raises(rt.TilecError, match="is closed"):
        add.launch(*tensors, 1.0, stream=given)
    # Another stream at its address is another one.
    add.launch(*tensors, 1.0, stream=Closable(64)).wait()
    assert ("record", 64) in [told[::2] for told in cuda.streams[asked:]]


@pytest.mark.parametrize("is_busy", [False, True])
@pytest.mark.parametrize("used", ["launch", "other stream", "memory"])
def test_a_process_that_was_forked_says_that_cuda_does_not_work_there(cuda, used, is_busy):
    """Also where a thread that is not there was at the launches."""
    add = Launcher(
        SimpleNamespace(driver=lambda: driver, code=lambda: machine_code.Code(b"", "sm_90a", "x")),
        [add_kernel()],
    )
    given = *(Array(2**40 + 2**20 * i, "f32", (64,), (1,), 0) for i in range(3)), 1.0
    for _ in range(2):
        add.launch(*given, stream=0)

    def use():
        if used == "memory":
            return rt.empty((4,), "f32")
        return add.launch(*given, stream=0 if used == "launch" else 500)

    def said_in_a_fork():
        return said_by_child(use)

    said = launch.UNDER_WAY._settling.run(said_in_a_fork) if is_busy else said_in_a_fork()
    assert said.startswith("NoDevice: CUDA does not work in a process that was forked")
    add.launch(*given, stream=0)


def test_a_process_that_was_forked_before_anything_was_used_is_one_as_any_other(cuda):
    assert said_by_child(devices.require_device) == "nothing"


def said_by_child(use):
    """What a process says that is forked here, and whose other thread makes use of something."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads
        child = os.fork()
    if child == 0:
        said = ["waits for ever"]

        def work():
            try:
                use()
                said[0] = "nothing"
            except Exception as error:
                said[0] = f"{type(error).__name__}: {error}"

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(10)
        os.write(writer, said[0].encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        return said.read()


def test_streams_of_a_cuda_core_that_does_not_say_whether_they_are_closed(cuda, monkeypatch):
    """Before version 1.2."""

    class Stream:
        def __cuda_stream__(self):
            return 0, 64

    monkeypatch.setattr(streams, "Stream", Stream)
    monkeypatch.setattr(streams, "_CLOSABLE", {})
    given = Stream()
    assert driver.stream_of(given) == 64
    assert not streams._is_closed(64)


def test_streams_of_cuda_core_are_forgotten_with_their_objects(cuda, monkeypatch):
    monkeypatch.setattr(streams, "Stream", Closable)
    monkeypatch.setattr(streams, "_CLOSABLE", {})
    kept = [Closable(2**20 + n) for n in range(10)]
    for one in kept:
        driver.stream_of(one)
    for n in range(1000):
        driver.stream_of(Closable(16 * n))
    assert len(streams._CLOSABLE) <= streams._REMEMBERED + 10
    assert all(streams._CLOSABLE[one.address]() is one for one in kept)


def test_a_stream_of_another_device_is_refused(cuda):
    if cuda.count == 1:
        pytest.skip("needs two devices")
    cuda.cuCtxSetCurrent(1)
    started(1, 1500)
    assert cuda.launched == [(1500, 1)]
    with pytest.raises(rt.ContractError, match="tensors are on device 0, the stream on device 1"):
        started(0, 1500)
    assert cuda.launched == [(1500, 1)]


def test_a_launch_that_the_driver_refuses_names_the_kernel(cuda, monkeypatch):
    refused = real.CUresult.CUDA_ERROR_INVALID_VALUE
    monkeypatch.setattr(cuda, "cuLaunchKernel", lambda *arguments: [refused])
    monkeypatch.setattr(devices.bindings, "cuGetErrorString", lambda s: (SUCCESS, b"bad"), False)
    cuda.cuCtxSetCurrent(1)
    with pytest.raises(rt.LaunchError, match=r"`add__f32_1024` was not launched: .*VALUE: bad"):
        started(0, 0)


def test_a_device_is_asked_for_its_multiprocessors_once(cuda):
    for _ in range(3):
        for device in range(cuda.count):
            assert driver.sm_count(device) == MULTIPROCESSORS - 2 * device
    assert driver.sm_count(None) == MULTIPROCESSORS  # the current device is 0
    attribute = real.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    assert cuda.asked == [(attribute, device) for device in range(cuda.count)]


@pytest.mark.parametrize("early", [False, True])
def test_an_early_launch_has_an_attribute_that_says_so(cuda, early):
    cuda.cuCtxSetCurrent(1)
    started(0, 5, early)
    assert [one["early"] for one in cuda.launched_extended] == [True] * early
    assert len(cuda.launched) == (not early)
