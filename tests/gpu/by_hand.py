"""Launches with nothing but CUDA's driver and docs/abi.md (`raw_launcher`): nothing of tilec."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from tests.unit.raw_launcher import Launch, launch

_MULTIPROCESSORS, _SHARED_LIMIT = 16, 8  # of CUdevice_attribute, of CUfunction_attribute
_CLUSTER_DIMENSION = 4  # of CUlaunchAttributeID
# As cuda.h numbers them.
_DATA_TYPES = {
    "UINT8": 0, "UINT16": 1, "UINT32": 2, "INT32": 3, "UINT64": 4, "INT64": 5, "FLOAT16": 6,
    "FLOAT32": 7, "FLOAT64": 8, "BFLOAT16": 9, "TFLOAT32": 11,
}  # fmt: skip
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {128: 2, 256: 3}


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: a number, and a value of 64 bytes, which begins at a multiple of 8."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def call(name: str, *arguments: Any) -> None:
    """A function of the driver, which must succeed."""
    status = getattr(_driver(), name)(*arguments)
    assert status == 0, f"{name}: {status}"


def multiprocessors() -> int:
    """Of device 0."""
    count = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(count), _MULTIPROCESSORS, 0)
    return count.value


class ByHand:
    """The kernels of a cubin or fat binary; a context is current, as `tilec.runtime` leaves it."""

    def __init__(self, image: bytes) -> None:
        self._module = ctypes.c_void_p()
        call("cuModuleLoadData", ctypes.byref(self._module), image)

    def launch(self, kernel: Any, arguments: list[Any]) -> str | None:
        """Launches an instance, of which the JSON is given, and waits; gives the variant."""
        made = launch(kernel, arguments, multiprocessors())
        if made is None:
            return None
        [variant] = [v for v in kernel["variants"] if v["symbol"] == made.symbol]
        self.start(made, variant)
        call("cuCtxSynchronize")
        return made.symbol

    def start(self, made: Launch, variant: Any) -> None:
        """Starts a launch of a variant on the default stream."""
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), self._module, made.symbol.encode())
        if made.shared_bytes and variant["static_smem_bytes"] + made.shared_bytes > 49152:
            call("cuFuncSetAttribute", function, _SHARED_LIMIT, made.shared_bytes)
        values = [_in_memory(one) for one in made.parameters]
        places = (ctypes.c_void_p * len(values))(*(place for _, place in values))
        if made.cluster == (1, 1, 1):
            call("cuLaunchKernel", function, *made.grid, made.threads, 1, 1, made.shared_bytes,
                 None, places, None)  # fmt: skip
            return
        cluster = _Attribute(_CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(*made.cluster))
        config = _Config(made.grid, (made.threads, 1, 1), made.shared_bytes, None,
                         ctypes.pointer(cluster), 1)  # fmt: skip
        call("cuLaunchKernelEx", ctypes.byref(config), function, places, None)


def _in_memory(given: Any) -> tuple[object, int]:
    """A parameter's bytes: what holds them, and where they are."""
    if isinstance(given, tuple):
        return _encoded(given)
    content = given if isinstance(given, bytes) else (given % 2**64).to_bytes(8, "little")
    held = ctypes.create_string_buffer(content, len(content))
    return held, ctypes.addressof(held)


def _encoded(told: tuple[Any, ...]) -> tuple[object, int]:
    data_type, address, extents, strides, box, swizzle, promotion = told
    held = ctypes.create_string_buffer(256)
    place = -(-ctypes.addressof(held) // 128) * 128
    rank = len(extents)
    call(
        "cuTensorMapEncodeTiled", ctypes.c_void_p(place), _DATA_TYPES[data_type], rank,
        ctypes.c_void_p(address), (ctypes.c_uint64 * rank)(*extents),
        (ctypes.c_uint64 * max(rank - 1, 1))(*strides), (ctypes.c_uint32 * rank)(*box),
        (ctypes.c_uint32 * rank)(*[1] * rank), 0, _SWIZZLES[swizzle], _PROMOTIONS[promotion], 0,
    )  # fmt: skip
    return held, place
