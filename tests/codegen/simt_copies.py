"""Tensors as a launcher describes them to the hardware that copies tiles, and what a copy writes.

Source:   CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, "Tensor swizzling modes"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
from simt_memory import SimtError

Array = Any

PIECE = 16  # bytes, of which swizzles are made


@dataclass(frozen=True, repr=False)
class MappedTensor:
    """Shapes:   `box` has one extent an axis of the tensor, outermost first
    Units:    `strides` in bytes, of the axes but the last
    """

    array: Array
    address: int
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    is_written: bool = False
    rounds: bool = False

    def __post_init__(self) -> None:
        inner = self.box[-1] * self.array.itemsize
        assert 1 <= self.array.ndim == len(self.box) <= 5
        assert all(1 <= extent <= 256 for extent in self.box)
        assert all(1 <= extent <= 1 << 32 for extent in self.array.shape), "no extent is 0"
        assert self.address % 16 == 0, "a tensor begins at a multiple of 16 bytes"
        assert all(s % 16 == 0 and 0 <= s < 1 << 40 for s in self.strides), self.strides
        assert inner % 16 == 0, f"rows of {inner} bytes"
        assert self.swizzle == inner, "only whole chunks are tried here"

    @cached_property
    def bytes(self) -> int:
        """Of one copy: those outside of the tensor count too."""
        return int(prod(self.box)) * int(self.array.itemsize)

    def content(self, first: Sequence[int]) -> Array:
        """The bytes of one copy as rows of pieces: zero outside of the tensor."""
        found = np.zeros(self.box, self.array.dtype)
        sides = list(zip(first, self.box, self.array.shape, strict=True))
        inside = [(max(at, 0), min(at + extent, whole)) for at, extent, whole in sides]
        if all(low < high for low, high in inside):
            target = tuple(
                slice(low - at, high - at) for at, (low, high) in zip(first, inside, strict=True)
            )
            source = self.array[tuple(slice(*ends) for ends in inside)]
            found[target] = _to_tf32(source) if self.rounds else source
        return found.view(np.uint8).reshape(-1, PIECE)

    def pieces(self, place: int) -> Array:
        """Which pieces of shared memory a copy to this byte writes, in the order of its content."""
        if place % 128:
            raise SimtError(f"a copy to byte {place}")
        start = place % 1024
        return _pieces(self.bytes, self.swizzle, start) + (place - start) // PIECE


def _to_tf32(numbers: Array) -> Array:
    """f32 to nearest even with ten bits of fraction; NaN as the hardware has it."""
    bits = numbers.view(np.uint32)
    rounded = bits + np.uint32(0xFFF) + (bits >> 13 & 1) & np.uint32(0xFFFFE000)
    return np.where(np.isnan(numbers), np.uint32(0x7FFFE000), rounded).view(np.float32)


@lru_cache(maxsize=256)
def _pieces(size: int, swizzle: int, start: int) -> Array:
    place = start + np.arange(0, size, PIECE)
    bits = {128: 7, 64: 3, 32: 1}[swizzle]
    return (place ^ (place >> 7 & bits) << 4) // PIECE
