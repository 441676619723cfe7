"""Device tensors that notice what a kernel may not touch.

Each tensor lies inside a larger piece of memory: a guard before it, as many bytes of misalignment
as asked for, its elements with any gaps that its strides leave, a guard after it. Guards and gaps
hold a pattern, and what is to be written holds NaN (all bits set), so that an element that a kernel
leaves out shows. `verify` compares guards, gaps and everything that is only read with what was put
there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from element_bits import from_bits, to_bits

import tilec.runtime as rt
from tilec.artifact.abi import ELEMENT_BYTES
from tilec.runtime.array import Array, contiguous_strides

GUARD_BYTES = 4096


@dataclass
class _Zone:
    name: str
    memory: rt.Tensor
    image: np.ndarray  # what the memory held before any launch, byte by byte
    may_change: np.ndarray  # the bytes that a kernel may write


class RedZones:
    """Makes guarded tensors, and verifies them all."""

    def __init__(self):
        self._zones = []

    def input(self, values, element, *, misaligned_bytes=0, strides=None, name="input"):
        """A tensor that is only read: the nearest numbers of the element type."""
        bits = to_bits(values, element)
        return self._placed(name, bits, element, strides, misaligned_bytes, False)

    def output(self, shape, element, *, misaligned_bytes=0, strides=None, name="output"):
        """A tensor that is written in full: NaN, or all bits set, until then."""
        size = ELEMENT_BYTES[element]
        bits = np.full((*shape, size), 0xFF, np.uint8).view(f"u{size}").reshape(shape)
        return self._placed(name, bits, element, strides, misaligned_bytes, True)

    def in_place(self, values, element, *, misaligned_bytes=0, strides=None, name="in place"):
        """A tensor that is read and written."""
        bits = to_bits(values, element)
        return self._placed(name, bits, element, strides, misaligned_bytes, True)

    def of_bits(
        self, bits, element, *, is_written, misaligned_bytes=0, strides=None, name="tensor"
    ):
        """A tensor that holds these bits, as unsigned integers."""
        return self._placed(name, bits, element, strides, misaligned_bytes, is_written)

    def values(self, tensor):
        """What a tensor holds: floats as float64."""
        return from_bits(tensor.bits(), tensor.dtype)

    def verify(self):
        """Fails if a byte changed that no kernel may write."""
        for zone in self._zones:
            after = zone.memory.bits()
            wrong = np.flatnonzero((after != zone.image) & ~zone.may_change)
            if wrong.size:
                places = ", ".join(str(int(i) - GUARD_BYTES) for i in wrong[:8])
                raise AssertionError(
                    f"{zone.name}: {wrong.size} bytes outside what may be written changed, "
                    f"at bytes {places} from its beginning"
                )

    def _placed(self, name, bits, element, strides, misaligned_bytes, may_change):
        shape, size = bits.shape, bits.itemsize
        strides = contiguous_strides(shape) if strides is None else strides
        span = Array(0, element, shape, strides, 0).span_bytes
        start = GUARD_BYTES + misaligned_bytes
        image = (np.arange(start + span + GUARD_BYTES) * 37 + 11).astype(np.uint8)
        writable = np.zeros(image.shape, np.bool_)
        if bits.size:
            _bytes_of(image, start, shape, strides, size)[...] = _split(bits)
            _bytes_of(writable, start, shape, strides, size)[...] = may_change
        memory = rt.to_device(image)
        assert memory.pointer % 256 == 0, "device memory begins at a multiple of 256 bytes"
        self._zones.append(_Zone(name, memory, image, writable))
        return memory.at(start, shape, element, strides)


def _bytes_of(memory, start, shape, strides, size):
    """The elements of a tensor inside a byte array, with one more axis: the bytes of each."""
    byte_strides = [stride * size for stride in strides]
    return np.lib.stride_tricks.as_strided(memory[start:], (*shape, size), (*byte_strides, 1))


def _split(bits):
    return np.ascontiguousarray(bits).view(np.uint8).reshape(*bits.shape, bits.itemsize)
