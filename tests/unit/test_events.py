"""Events on a CUDA that keeps track: in which context they are made; that they are used again."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import pytest
from cuda.bindings import driver as real
from noted_cuda import SUCCESS, forget, installed

import tilec.runtime as rt
from tilec.runtime import driver

NOT_READY = real.CUresult.CUDA_ERROR_NOT_READY
FAILED = real.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS


@pytest.fixture(params=[1, 2])
def cuda(request, monkeypatch):
    """A CUDA whose events are numbers from 1, made in a context each."""
    made = installed(monkeypatch, request.param)
    made.contexts, made.recorded, made.answer = [], [], NOT_READY
    made.capturing = set()

    def create(flags):
        made.contexts.append(made.current)
        return SUCCESS, len(made.contexts)

    def record(event, stream):
        made.recorded.append((event, int(stream), made.current))
        return [SUCCESS if made.answer != FAILED else FAILED]

    def is_capturing(stream):
        status = real.CUstreamCaptureStatus
        captured = int(stream) in made.capturing
        return SUCCESS, status(1 if captured else 0)

    made.cuEventCreate, made.cuEventRecord = create, record
    made.cuEventQuery = made.cuEventSynchronize = lambda event: [made.answer]
    made.cuStreamIsCapturing = is_capturing
    made.cuThreadExchangeStreamCaptureMode = lambda mode: (SUCCESS, mode)
    made.cuStreamWaitEvent = lambda stream, event, flags: [SUCCESS]
    yield made
    forget()


def entry(device=0):
    return SimpleNamespace(device=device, kernel=SimpleNamespace(symbol="add"))


def test_an_event_is_made_in_the_primary_context_of_its_device(cuda):
    held = []
    for current in (0, 1, 101):
        for device in range(cuda.count):
            cuda.cuCtxSetCurrent(current)
            event = driver.recorded(entry(device), 4096)
            assert cuda.contexts[-1] == device + 1 == cuda.recorded[-1][2]
            assert not event.is_done
            assert cuda.current == (current or 1), "what was current is so again"
            held.append(event)


def test_events_are_used_again_once_nobody_has_them(cuda):
    first = driver.recorded(entry(), 4096)
    second = driver.recorded(entry(), 4096)
    assert len(cuda.contexts) == 2
    del first
    gc.collect()
    third = driver.tail(64, 0)
    assert cuda.recorded[-1][0] == 1 and len(cuda.contexts) == 2
    assert not (second.is_done or third.is_done)
    cuda.answer = SUCCESS
    assert second.is_done
    third.sync()


def test_a_thread_without_a_context_makes_events_too(cuda):
    cuda.cuCtxSetCurrent(1)
    driver.recorded(entry(), 4096)
    held = []
    thread = threading.Thread(target=lambda: held.append(driver.recorded(entry(), 4096)))
    thread.start()
    thread.join()
    assert cuda.recorded[-1] == (1, 4096, 1) and held.pop() is not None


def test_what_the_device_failed_with_is_raised(cuda):
    event = driver.recorded(entry(), 4096)
    cuda.answer = FAILED
    for asked in (lambda: event.is_done, event.sync):
        with pytest.raises(rt.LaunchError, match="ILLEGAL_ADDRESS"):
            asked()
    assert driver.is_over(event)
    with pytest.raises(rt.LaunchError, match=r"`add` failed on the GPU: .*ILLEGAL_ADDRESS"):
        driver.recorded(entry(), 4096)


def test_streams_under_capture_neither_record_nor_wait(cuda):
    event = driver.recorded(entry(), 4096)
    cuda.capturing.add(8192)
    assert driver.recorded(entry(), 8192) is None and driver.tail(8192, 0) is None
    assert not driver.order(event, 8192, 0)
    assert driver.order(event, 4096, 0)


def test_streams_are_ordered_on_their_own_device(cuda):
    cuda.cuCtxSetCurrent(1)
    on_last = 1000 * (cuda.count - 1) + 64
    rt.ordered(on_last, on_last + 1)
    assert cuda.recorded == [(1, on_last, cuda.count)]


def test_a_stream_under_capture_is_not_asked_for_its_flags(cuda):
    asked = []

    def flags(stream):
        asked.append(int(stream))
        return SUCCESS, 0

    cuda.cuStreamGetFlags = flags
    cuda.capturing.add(8192)
    assert driver.waits_for_legacy(4096) and not driver.waits_for_legacy(8192)
    assert asked == [4096]
