"""Streams: what callers give for one, waiting for one, and graphs that one is captured into."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import ref

from cuda.bindings import driver as bindings
from cuda.core import Stream

from tilec.runtime.cuda_driver import Completion
from tilec.runtime.devices import (
    SUCCESS,
    context_of,
    current_device,
    device_count,
    made_current,
    require_device,
    text_of,
)
from tilec.runtime.entry import Started
from tilec.runtime.errors import ContractError, TilecError, failure
from tilec.runtime.events import Event

# Streams that every device has, of cuda.h. An address of 0 is one of the two, by what the process
# was set up for, so the legacy one is always asked for by name.
LEGACY_STREAM = 1
PER_THREAD_STREAM = 2

_NO_CAPTURE = bindings.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
_RELAXED = bindings.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
_NON_BLOCKING = int(bindings.CUstream_flags.CU_STREAM_NON_BLOCKING)
# What the legacy stream answers while a stream that waits for it is captured.
_IN_CAPTURE = bindings.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT


def stream_of(given: object) -> int:
    """The address of the stream that a caller means; 0 is the default stream.

    Takes streams of cuda.core, addresses, and what has `cuda_stream` (PyTorch) or
    `__cuda_stream__` (PyTorch, CuPy).
    """
    address = getattr(given, "cuda_stream", None)
    if not isinstance(address, int):
        address = _address_of(given)
    if not isinstance(address, int) or not 0 <= address < 2**64:
        raise TilecError(f"expected a CUDA stream, got {given!r}")
    return address


def _address_of(given: Any) -> object:
    require_device()
    if not isinstance(given, Stream):
        return given.__cuda_stream__()[1] if hasattr(given, "__cuda_stream__") else given
    if _says_closed(given):
        raise TilecError(f"the stream {given!r} is closed")
    address: int = given.__cuda_stream__()[1]
    known = _CLOSABLE.get(address)
    if known is None or known() is not given:
        _note_closable(address, given)
    return address


# The last stream of cuda.core that was given at each address. Callers may close one when its work
# is done, and the driver must not be asked about it then.
_CLOSABLE: dict[int, ref[Stream]] = {}


def _note_closable(address: int, given: Stream) -> None:
    if len(_CLOSABLE) >= _REMEMBERED:  # those that launches hold are there
        for one, known in list(_CLOSABLE.items()):
            if known() is None:
                _CLOSABLE.pop(one, None)
    _CLOSABLE[address] = ref(given)


def _is_closed(stream: int) -> bool:
    known = _CLOSABLE.get(stream)
    given = None if known is None else known()
    return given is not None and _says_closed(given)


def _says_closed(given: Stream) -> bool:
    """False of all streams of a cuda.core before 1.2, which does not say it."""
    return bool(getattr(given, "is_closed", False))


# Streams as `cuda.bindings` takes them, by address. These objects are numbers only, and may outlive
# their streams.
QUEUES: dict[int, bindings.CUstream] = {}
_REMEMBERED = 256


def queue_of(stream: int) -> bindings.CUstream:
    """A stream as `cuda.bindings` takes it."""
    if len(QUEUES) >= _REMEMBERED:
        QUEUES.clear()
    return QUEUES.setdefault(stream, bindings.CUstream(stream or LEGACY_STREAM))


def device_of(stream: int) -> int:
    """The device of a stream; of one that every device has, the current device's."""
    if stream > PER_THREAD_STREAM and device_count() > 1:
        status, device = bindings.cuStreamGetDevice(queue_of(stream))
        if status == SUCCESS:
            return int(device)
    return current_device()


def check_device(entry: Started, stream: int) -> None:
    """That a stream is one of the device that the tensors are on; for machines with several.

    Raises:   ContractError
    """
    if stream <= PER_THREAD_STREAM:
        return
    status, device = bindings.cuStreamGetDevice(queue_of(stream))
    if status == SUCCESS and entry.device not in (None, int(device)):
        raise ContractError(
            f"`{entry.kernel.symbol}`: the tensors are on device {entry.device}, "
            f"the stream on device {int(device)}"
        )


def finish(entry: Started, stream: int) -> None:
    """Waits until the stream has done all that it was given."""
    if device_count() == 1:
        [status] = bindings.cuStreamSynchronize(queue_of(stream))
    else:
        with made_current(entry.device):
            [status] = bindings.cuStreamSynchronize(queue_of(stream))
    if status != SUCCESS:
        raise failure(f"`{entry.kernel.symbol}` failed on the GPU", text_of(status))


def finish_device(entry: Started) -> None:
    """Waits until nothing runs on a device; after a failure nothing does either."""
    with suppress(Exception), made_current(entry.device), outside_capture():
        bindings.cuCtxSynchronize()


def recorded(entry: Started, stream: int) -> Event | None:
    """An event that is done when the stream has done all that it was given so far.

    None while the stream is being captured into a graph: nothing runs, and an event would become
    part of the graph. Of a stream that was closed it tells that the device is done, which is waited
    for.
    """
    if _is_closed(stream):
        finish_device(entry)
        stream = LEGACY_STREAM
    return _recorded(stream, entry.device, f"`{entry.kernel.symbol}` failed on the GPU")


def tail(stream: int, device: int | None) -> Event | None:
    """As `recorded`, of what a caller did not give for a launch.

    Raises:   LaunchError
    """
    return _recorded(stream, device, "what a stream was given failed on the GPU")


def _recorded(stream: int, device: int | None, what_failed: str) -> Event | None:
    with context_of(device) as index, outside_capture():
        if is_captured(stream):
            return None
        event = Event(index)
        queue = QUEUES.get(stream) or queue_of(stream)
        [status] = bindings.cuEventRecord(event.handle, queue)
    if status is not SUCCESS:
        raise failure(what_failed, text_of(status))
    return event


def order(event: Completion, stream: int, device: int | None) -> bool:
    """Has what a stream is given from now on come after an event; False if the stream is being
    captured into a graph, which does not wait for what is outside of it.

    Raises:   LaunchError
    """
    assert isinstance(event, Event), "events are what `recorded` and `tail` gave"
    with context_of(device), outside_capture():
        if is_captured(stream):
            return False
        [status] = bindings.cuStreamWaitEvent(queue_of(stream), event.handle, 0)
    if status != SUCCESS:
        raise failure("a stream does not wait for another one", text_of(status))
    return True


def waits_for_legacy(stream: int) -> bool:
    """Whether a stream and the legacy default stream wait for each other; False of one that is
    being captured into a graph, which the question would spoil, and of one that was closed."""
    if _is_closed(stream) or is_captured(stream):
        return False
    status, flags = bindings.cuStreamGetFlags(queue_of(stream))
    return bool(status == SUCCESS and not int(flags) & _NON_BLOCKING)


def is_captured(stream: int) -> bool:
    """Whether what a stream is given goes into a graph."""
    status, capture = bindings.cuStreamIsCapturing(queue_of(stream))
    return bool(status == _IN_CAPTURE or (status == SUCCESS and capture != _NO_CAPTURE))


def is_over(event: Completion) -> bool:
    """Whether what an event waits for is done; after a device error nothing runs any more."""
    current_device()  # without a context the answer would be an error too
    with outside_capture():
        try:
            return bool(event.is_done)
        except Exception:
            return True


class outside_capture:  # noqa: N801  (used as a function is)
    """Lets this thread ask for events while it captures another stream into a graph, which would
    otherwise spoil the graph.

    A class, since a generator costs as much as the driver does.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        _, self._before = bindings.cuThreadExchangeStreamCaptureMode(_RELAXED)

    def __exit__(self, *exception: object) -> None:
        bindings.cuThreadExchangeStreamCaptureMode(self._before)
