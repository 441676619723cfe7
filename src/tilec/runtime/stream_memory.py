"""Memory, events and streams for the time that a pipeline runs, as CUDA gives them.

Memory comes from the device's stream-ordered pool: it is there for what the stream is given after
the request, and freed after what it was given before the release, without waiting for either. While
a stream is captured both become nodes of the graph, which then owns the memory.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from cuda.bindings import driver as bindings
from cuda.core import Device, Stream

from tilec.runtime.cuda_driver import Completion
from tilec.runtime.devices import (
    SUCCESS,
    context_of,
    current_device,
    device_count,
    made_current,
    text_of,
)
from tilec.runtime.entry import Started
from tilec.runtime.errors import LaunchError, failure
from tilec.runtime.events import Event
from tilec.runtime.streams import QUEUES, check_device, is_captured, outside_capture, queue_of


def stream_memory(size_bytes: int, entry: Started, stream: int) -> int:
    """The address of memory that what the stream is given from now on may use.

    Raises:   LaunchError if there is none; ContractError if the stream is another device's
    """
    _keep_freed_memory(entry.device)
    queue = QUEUES.get(stream) or queue_of(stream)
    if device_count() > 1:
        check_device(entry, stream)
    with context_of(entry.device):
        status, address = bindings.cuMemAllocAsync(size_bytes, queue)
    if status != SUCCESS:
        raise failure(
            f"`{entry.kernel.symbol}` was not launched: no workspace of {size_bytes} bytes",
            text_of(status),
        )
    return int(address)


def free_stream_memory(address: int, entry: Started, stream: int) -> None:
    """Frees memory once the stream is done with what it was given so far.

    Raises:   LaunchError if the device failed
    """
    queue = QUEUES.get(stream) or queue_of(stream)
    with context_of(entry.device):
        [status] = bindings.cuMemFreeAsync(address, queue)
    if status != SUCCESS:
        raise failure(f"`{entry.kernel.symbol}` failed on the GPU", text_of(status))


@cache
def _keep_freed_memory(device: int | None) -> None:
    """Has the pool of a device keep what is freed, at its first use.

    cuda.core raises the threshold above which a pool gives memory back when it first hands the pool
    out. Pools begin with one of 0, with which each wait for the device would have the next
    request map memory anew.
    """
    index = current_device() if device is None else device
    with made_current(index):
        _ = Device(index).memory_resource


def made_event(device: int | None) -> Event:
    """An event of a device, which has not happened."""
    with context_of(device) as index, outside_capture():
        return Event(index)


def record(event: Completion, stream: int) -> None:
    """Makes an event stand for all that a stream was given so far.

    Raises:   LaunchError
    """
    assert isinstance(event, Event), "events are what this module made"
    [status] = bindings.cuEventRecord(event.handle, queue_of(stream))
    _check(status)


def wait_for(event: Completion, stream: int) -> None:
    """Has what a stream is given from now on come after an event.

    Raises:   LaunchError
    """
    assert isinstance(event, Event), "events are what this module and `recorded` made"
    [status] = bindings.cuStreamWaitEvent(queue_of(stream), event.handle, 0)
    _check(status)


def _check(status: bindings.CUresult) -> None:
    if status != SUCCESS:
        raise LaunchError(f"streams could not be ordered: {text_of(status)}")


# Streams beside those of callers, by device, that nobody uses just now.
_FREE: defaultdict[int, deque[Stream]] = defaultdict(deque)
# Those that a capture took: they cannot be used for anything else until it ends.
_CAPTURED: defaultdict[int, deque[Stream]] = defaultdict(deque)


@contextmanager
def side_streams(count: int, entry: Started, beside: int) -> Iterator[Sequence[int]]:
    """Streams for this thread alone, with the device current. They are used again as soon as the
    block is left: what they are given then comes after.

    If the stream `beside` which they are is being captured, they become part of the capture as they
    wait for it.

    Raises:   ContractError if that stream is another device's
    """
    if device_count() > 1:
        check_device(entry, beside)
    with context_of(entry.device) as index:
        taken = [_taken(index) for _ in range(count)]
        try:
            yield [int(stream.handle) for stream in taken]
        finally:
            (_CAPTURED if is_captured(beside) else _FREE)[index].extend(taken)


def _taken(device: int) -> Stream:
    captured = _CAPTURED[device]
    for _ in range(len(captured)):  # other threads may take from it meanwhile
        try:
            stream = captured.popleft()
        except IndexError:
            break
        (captured if is_captured(int(stream.handle)) else _FREE[device]).append(stream)
    try:
        return _FREE[device].pop()
    except IndexError:
        with made_current(device), outside_capture():
            return Device(device).create_stream()
