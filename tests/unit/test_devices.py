"""Devices, contexts and default streams, with a CUDA that only keeps track of them.

As in cuda.core, a `Device` works in a thread only after `set_current` there, even if another
library made its context current.
"""

from __future__ import annotations

import threading
from array import array
from types import SimpleNamespace

import pytest
from cuda.bindings import driver as real
from manifest_samples import add_kernel

import tilec.runtime as rt
from tilec.runtime import devices, driver, machine_code, streams
from tilec.runtime.entry import Entry

SUCCESS = real.CUresult.CUDA_SUCCESS
NO_CONTEXT = real.CUresult.CUDA_ERROR_INVALID_CONTEXT


class Bindings:
    """Contexts are numbers, 0 none: that of device d is d + 1, and d + 101 is another one there."""

    def __init__(self, count):
        self.count = count
        self.launched = []
        self._thread = threading.local()

    @property
    def current(self):
        return getattr(self._thread, "context", 0)

    @property
    def device(self):
        return self.current % 100 - 1

    def __getattr__(self, name):  # names of types and constants
        return getattr(real, name)

    def cuInit(self, flags):  # noqa: N802
        return [SUCCESS]

    def cuDeviceGetCount(self):  # noqa: N802
        return SUCCESS, self.count

    def cuCtxGetCurrent(self):  # noqa: N802
        return SUCCESS, self.current

    def cuCtxSetCurrent(self, context):  # noqa: N802
        self._thread.context = context
        return [SUCCESS]

    def cuCtxGetDevice(self):  # noqa: N802
        if not self.current:
            return NO_CONTEXT, None
        return SUCCESS, self.device

    def cuStreamGetDevice(self, stream):  # noqa: N802
        return SUCCESS, int(stream) // 1000

    def cuLaunchKernel(self, function, *geometry_and_stream):  # noqa: N802
        stream = int(geometry_and_stream[7])
        if stream <= 2 and not self.current:
            return [NO_CONTEXT]
        self.launched.append((stream, self.device if stream <= 2 else stream // 1000))
        return [SUCCESS]


def device_class(cuda):
    ready = threading.local()

    class Device:
        def __init__(self, index):
            self.index = index

        def set_current(self):
            vars(ready).setdefault("devices", set()).add(self.index)
            cuda.cuCtxSetCurrent(self.index + 1)

        def allocate(self, size_bytes, stream):
            if self.index not in vars(ready).get("devices", ()):
                raise RuntimeError(f"Device {self.index} is not yet initialized")
            assert cuda.device == self.index
            return SimpleNamespace(handle=2**40, size=size_bytes, device=self.index)

    return Device


@pytest.fixture(params=[1, 2])
def cuda(request, monkeypatch):
    cuda = Bindings(request.param)
    for module in (devices, driver, machine_code, streams):
        monkeypatch.setattr(module, "bindings", cuda)
    device = device_class(cuda)
    for module in (devices, driver, machine_code):
        monkeypatch.setattr(module, "Device", device)
    monkeypatch.setattr(machine_code, "_launch_kernel", cuda.cuLaunchKernel)
    monkeypatch.setattr(driver, "LEGACY_DEFAULT_STREAM", SimpleNamespace(sync=lambda: None))
    kernel = SimpleNamespace(handle=5)
    monkeypatch.setattr(machine_code.Code, "kernel", lambda self, variant, device: kernel)
    devices.require_device.cache_clear()
    devices.device_count.cache_clear()
    yield cuda
    devices.require_device.cache_clear()
    devices.device_count.cache_clear()


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


def started(device, stream):
    variant = add_kernel().variants[0]
    entry = Entry(add_kernel(), variant, device, (1, 1, 1), [0] * 5, 0)
    machine_code.prepared(machine_code.Code(b"", "sm_90a", "x"), entry, array("Q", [0] * 5))(stream)


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


def test_what_was_prepared_in_one_thread_is_launched_in_another(cuda):
    variant = add_kernel().variants[0]
    entry = Entry(add_kernel(), variant, 0, (1, 1, 1), [0] * 5, 0)
    code = machine_code.Code(b"", "sm_90a", "x")
    start = machine_code.prepared(code, entry, array("Q", [0] * 5))
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
    for wrong in ("s", 7.0, SimpleNamespace(cuda_stream=None)):
        with pytest.raises(rt.TilecError, match="expected a CUDA stream"):
            driver.stream_of(wrong)


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
    monkeypatch.setattr(machine_code, "_launch_kernel", lambda *arguments: [refused])
    monkeypatch.setattr(devices.bindings, "cuGetErrorString", lambda s: (SUCCESS, b"bad"), False)
    cuda.cuCtxSetCurrent(1)
    with pytest.raises(rt.LaunchError, match=r"`add__f32_1024` was not launched: .*VALUE: bad"):
        started(0, 0)
