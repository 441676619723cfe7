"""Tensors in device memory for callers who have no array library, and copies to and from NumPy."""

from __future__ import annotations

from math import prod

import numpy as np

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.runtime.array import Array, Facts, contiguous_strides, facts_of
from tilec.runtime.cuda_driver import HostArray, Memory, cuda_driver
from tilec.runtime.elements import element_of, numpy_dtype
from tilec.runtime.errors import BorrowError, TilecError
from tilec.runtime.launch import UNDER_WAY
from tilec.runtime.memory import Export, SharedMemory

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class Tensor:
    """A strided tensor that keeps its device memory alive. Made by `empty` and `to_device`.

    Units:    `strides` are in elements; `dtype` is an element type's name, such as `bf16`
    """

    # `facts` stands for the array without its address: what launches look up.
    __slots__ = ("__weakref__", "_array", "_shared", "facts", "pointer")

    def __init__(self, buffer: Memory, array: Array, shared: SharedMemory | None = None) -> None:
        self._shared = SharedMemory(buffer) if shared is None else shared
        self._array = array
        self.pointer = array.pointer
        self.facts = facts_of(array)
        self._shared.tensors.add(self)

    @property
    def array(self) -> Array:
        """What the runtime knows of it.

        Raises:   BorrowError if it was freed
        """
        if self._shared.is_freed:
            raise BorrowError("the tensor was freed")
        return self._array

    @property
    def is_freed(self) -> bool:
        return self._shared.is_freed

    def free(self) -> None:
        """Gives the memory back now, not when the last tensor in it is gone. No tensor in it may be
        used then.

        Raises:   BorrowError, and frees nothing, if a launch that may still run, a graph or another
                  library needs it, or if it was freed
        """
        if self._shared.is_freed:
            raise BorrowError("the tensor was freed")
        self._shared.check_free()
        self._shared.is_freed = True
        for tensor in self._shared.tensors:
            # Launches that know its shape look at neither more: they find nothing known of it.
            tensor.pointer, tensor.facts = 0, Facts()
        self._shared.buffer.close()

    def lend(self, holder: object) -> None:
        """Refuses to free the memory while `holder` lives and has not given it back."""
        self._shared.holders.add(holder)

    def take_back(self, holder: object) -> None:
        """`holder` needs the memory no more."""
        self._shared.holders.discard(holder)

    @property
    def dtype(self) -> str:
        return self._array.element

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._array.strides

    @property
    def device(self) -> int:
        return self._array.device

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
        shape = tuple(shape)
        strides = contiguous_strides(shape) if strides is None else tuple(strides)
        buffer = self._shared.buffer
        array = Array(self.array.pointer + offset_bytes, element, shape, strides, self.device)
        start = array.pointer - int(buffer.handle)
        if len(shape) != len(strides) or min((*shape, *strides), default=0) < 0:
            raise ValueError(f"no tensor has shape {shape} and strides {strides}")
        if start < 0 or start + array.span_bytes > buffer.size:
            raise ValueError(
                f"bytes {start} to {start + array.span_bytes} are not inside the memory "
                f"of {buffer.size} bytes"
            )
        return Tensor(buffer, array, self._shared)

    def bits(self) -> HostArray:
        """A copy on the host, each element as an unsigned integer of its width."""
        size = ELEMENT_BYTES[self.dtype]
        pointer = self.array.pointer
        memory = np.empty(self.array.span_bytes // size, _BITS[size])
        if self.array.is_empty:
            return np.empty(self.shape, _BITS[size])
        cuda_driver().copy_to_host(memory, pointer, self.device)
        byte_strides = [stride * size for stride in self.strides]
        view: HostArray = np.lib.stride_tricks.as_strided(memory, self.shape, byte_strides)
        dense: HostArray = view.copy()
        return dense

    def numpy(self) -> HostArray:
        """A copy on the host; `bf16` and `f8…` need the package ml_dtypes."""
        values: HostArray = self.bits().view(numpy_dtype(self.dtype))
        return values

    def __dlpack__(self, **options: object) -> object:
        export = Export(self._shared.buffer)
        exported = cuda_driver().exported(self.array, export)
        self.lend(export)
        return exported.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return cuda_driver().exported(self.array, self._shared.buffer).__dlpack_device__()

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
