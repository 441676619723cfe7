"""Tensors in device memory for callers who have no array library, and copies to and from NumPy."""

from __future__ import annotations

from math import prod

import numpy as np

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.runtime.array import Array, contiguous_strides, facts_of
from tilec.runtime.cuda_driver import HostArray, Memory, cuda_driver
from tilec.runtime.elements import element_of, numpy_dtype
from tilec.runtime.errors import TilecError
from tilec.runtime.launch import UNDER_WAY

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Tensor:
    """A strided tensor that keeps its device memory alive. Made by `empty` and `to_device`.

    Units:    `strides` are in elements; `dtype` is an element type's name, such as `bf16`
    """

    # `facts` stands for the array without its address: what launches look up.
    __slots__ = ("_buffer", "array", "facts", "pointer")

    def __init__(self, buffer: Memory, array: Array) -> None:
        self._buffer = buffer
        self.array = array
        self.pointer = array.pointer
        self.facts = facts_of(array)

    @property
    def dtype(self) -> str:
        return self.array.element

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.array.strides

    @property
    def device(self) -> int:
        return self.array.device

    def at(
        self,
        offset_bytes: int,
        shape: tuple[int, ...],
        dtype: str | None = None,
        strides: tuple[int, ...] | None = None,
    ) -> Tensor:
        """Another tensor in the same memory, which begins some bytes after this one.

        Raises:   ValueError if it does not lie inside the memory, or a stride is negative
        """
        element = self.dtype if dtype is None else _element(dtype)
        strides = contiguous_strides(shape) if strides is None else strides
        array = Array(self.pointer + offset_bytes, element, shape, strides, self.device)
        start = array.pointer - int(self._buffer.handle)
        if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
            raise ValueError(f"no tensor has shape {shape} and strides {strides}")
        if start < 0 or start + array.span_bytes > self._buffer.size:
            raise ValueError(
                f"bytes {start} to {start + array.span_bytes} are not inside the memory "
                f"of {self._buffer.size} bytes"
            )
        return Tensor(self._buffer, array)

    def bits(self) -> HostArray:
        """A copy on the host, each element as an unsigned integer of its width."""
        size = ELEMENT_BYTES[self.dtype]
        memory = np.empty(self.array.span_bytes // size, _BITS[size])
        if self.array.is_empty:
            return np.empty(self.shape, _BITS[size])
        cuda_driver().copy_to_host(memory, self.pointer, self.device)
        byte_strides = [stride * size for stride in self.strides]
        view: HostArray = np.lib.stride_tricks.as_strided(memory, self.shape, byte_strides)
        dense: HostArray = view.copy()
        return dense

    def numpy(self) -> HostArray:
        """A copy on the host; `bf16` and `f8…` need the package ml_dtypes."""
        values: HostArray = self.bits().view(numpy_dtype(self.dtype))
        return values

    def __dlpack__(self, **options: object) -> object:
        return cuda_driver().exported(self.array, self._buffer).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return cuda_driver().exported(self.array, self._buffer).__dlpack_device__()

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}, shape {self.shape}, device {self.device})"


def empty(shape: tuple[int, ...], dtype: str, device: int | None = None) -> Tensor:
    """A dense tensor whose elements are not set.

    Raises:   NoDevice; TilecError if `dtype` is no element type
    """
    driver = cuda_driver()
    element = _element(dtype)
    if min(shape, default=0) < 0:
        raise ValueError(f"no tensor has shape {shape}")
    index = driver.current_device() if device is None else device
    UNDER_WAY.settle()  # memory that launches borrowed may be free by now
    buffer = driver.allocated(prod(shape) * ELEMENT_BYTES[element], index)
    array = Array(int(buffer.handle), element, tuple(shape), contiguous_strides(shape), index)
    return Tensor(buffer, array)


def to_device(values: object, dtype: str | None = None, device: int | None = None) -> Tensor:
    """A copy of a NumPy array on a device.

    `dtype` reads an array of unsigned integers as the bits of another element type of their width:
    `to_device(bits, "bf16")`.

    Raises:   NoDevice; TilecError if the array's dtype is no element type
    """
    driver = cuda_driver()
    given = np.asarray(values)
    host = np.ascontiguousarray(given).reshape(given.shape)
    element = element_of(host.dtype) if dtype is None else _element(dtype)
    if element is None:
        raise TilecError(f"no element type of kernels is NumPy's `{host.dtype}`")
    if dtype is not None and element_of(host.dtype) != element:
        _check_bits(host, element)
    tensor = empty(host.shape, element, device)
    if host.size:
        driver.copy_to_device(tensor.pointer, host, tensor.device)
    return tensor


def _check_bits(host: HostArray, element: str) -> None:
    if host.dtype.kind != "u" or host.dtype.itemsize != ELEMENT_BYTES[element]:
        raise TilecError(
            f"expected `{element}`, or its bits as unsigned integers of "
            f"{ELEMENT_BYTES[element]} bytes, got `{host.dtype}`"
        )


def _element(dtype: str) -> str:
    if dtype not in ELEMENT_BYTES:
        raise TilecError(f"expected an element type such as `f32`, got {dtype!r}")
    return dtype
