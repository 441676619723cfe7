"""Which devices there are, and which one is current."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from cuda.bindings import driver as bindings
from cuda.core import Device

from tilec.runtime.errors import NoDevice

SUCCESS = bindings.CUresult.CUDA_SUCCESS


@cache
def require_device() -> None:
    """Makes sure that there is a driver and a device.

    Raises:   NoDevice. (A success is remembered, a failure is not. cuda.core is asked only after
              this: without a driver its second call may wait for ever.)
    """
    if _was_used_before_fork:
        raise NoDevice(
            "CUDA does not work in a process that was forked from one that had used it: start "
            'such processes by `multiprocessing.get_context("spawn")` or `"forkserver"`'
        )
    try:
        [status] = bindings.cuInit(0)
    except Exception as error:
        raise NoDevice(f"there is no CUDA driver: {error}") from None
    if status != SUCCESS:
        raise NoDevice(f"there is no GPU: {status.name}")


_was_used_before_fork = False


def _after_fork() -> None:
    global _was_used_before_fork
    _was_used_before_fork = _was_used_before_fork or require_device.cache_info().currsize > 0
    require_device.cache_clear()


os.register_at_fork(after_in_child=_after_fork)


def current_device() -> int:
    """The device of this thread's current context, else device 0, which becomes current."""
    require_device()
    # The context first: asking for the device of none is an error, which tools that watch report.
    _, context = bindings.cuCtxGetCurrent()
    if int(context):
        status, device = bindings.cuCtxGetDevice()
        if status == SUCCESS:
            return int(device)
    Device(0).set_current()
    return 0


@cache
def device_count() -> int:
    """How many devices this process sees."""
    require_device()
    status, count = bindings.cuDeviceGetCount()
    return int(count) if status == SUCCESS else 1


def sm_count(device: int | None) -> int:
    """How many multiprocessors a device has, or the current one.

    Raises:   NoDevice
    """
    return _sm_count(current_device() if device is None else device)


@cache
def _sm_count(device: int) -> int:
    require_device()
    attribute = bindings.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    status, count = bindings.cuDeviceGetAttribute(attribute, bindings.CUdevice(device))
    if status != SUCCESS:
        raise NoDevice(f"there is no device {device}: {text_of(status)}")
    return int(count)


def card(device: int | None) -> str:
    """What CUDA calls a device, or the current one: "NVIDIA H100 80GB HBM3".

    Raises:   NoDevice
    """
    return _card(current_device() if device is None else device)


@cache
def _card(device: int) -> str:
    require_device()
    status, name = bindings.cuDeviceGetName(128, bindings.CUdevice(device))
    if status != SUCCESS:
        raise NoDevice(f"there is no device {device}: {text_of(status)}")
    return bytes(name).partition(b"\0")[0].decode()


def capability(device: int | None) -> tuple[int, int]:
    """The compute capability of a device, or the current one: (9, 0).

    Raises:   NoDevice
    """
    return _capability(current_device() if device is None else device)


@cache
def _capability(device: int) -> tuple[int, int]:
    require_device()
    attributes = bindings.CUdevice_attribute
    numbers: list[int] = []
    for attribute in (
        attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    ):
        status, number = bindings.cuDeviceGetAttribute(attribute, bindings.CUdevice(device))
        if status != SUCCESS:
            raise NoDevice(f"there is no device {device}: {text_of(status)}")
        numbers.append(int(number))
    return numbers[0], numbers[1]


@cache
def address_of(name: str, since_cuda: int) -> int:
    """The address of a function of the driver, 0 if it has none; `since_cuda` is the CUDA of which
    it is, 12000 of 12.0."""
    flags = bindings.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT
    status, address, _ = bindings.cuGetProcAddress(name.encode(), since_cuda, flags)
    return int(address or 0) if status == SUCCESS else 0


@contextmanager
def made_current(device: int | None) -> Iterator[int]:
    """With a device current, or whichever is; the context that was is current again afterwards.

    cuda.core refuses to work with a device that it has not made current itself in this thread,
    even if another library did: so it does, each time. For its own contexts and those of the
    CUDA runtime (the primary ones) this changes nothing.
    """
    index = current_device() if device is None else device
    current_device()  # some context is there to come back to
    _, context = bindings.cuCtxGetCurrent()
    Device(index).set_current()
    try:
        yield index
    finally:
        bindings.cuCtxSetCurrent(context)


# The primary context of each device that `context_of` was asked for.
_PRIMARY: dict[int | None, int] = {}


class context_of:  # noqa: N801  (used as a function is)
    """As `made_current`, for what cuda.core has no part in: cheaper where it is current already."""

    __slots__ = ("_device", "_made")

    def __init__(self, device: int | None) -> None:
        self._device = device
        self._made: AbstractContextManager[int] | None = None

    def __enter__(self) -> int:
        device = self._device
        status, context = bindings.cuCtxGetCurrent()
        is_there = status == SUCCESS and int(context)
        if device is not None and is_there and _PRIMARY.get(device) == int(context):
            return device
        self._made = made_current(device)
        index = self._made.__enter__()
        _, primary = bindings.cuCtxGetCurrent()
        _PRIMARY[index] = int(primary)
        return index

    def __exit__(self, *exception: Any) -> None:
        if self._made is not None:
            self._made.__exit__(*exception)


def text_of(status: bindings.CUresult) -> str:
    """The driver's name of an error and what it says of it."""
    answer, text = bindings.cuGetErrorString(status)
    return f"{status.name}: {text.decode()}" if answer == SUCCESS else str(status.name)
