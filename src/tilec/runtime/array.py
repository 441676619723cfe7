"""What the runtime knows of a tensor argument: numbers, no object of any library."""

from __future__ import annotations

from typing import NamedTuple

from tilec.artifact.abi import ELEMENT_BYTES

ADDRESS_BITS = 64


class Array(NamedTuple):
    """A strided tensor in device memory.

    Units:    `pointer` is an address in bytes; `strides` are in elements, outermost first
    """

    pointer: int
    element: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int
    read_only: bool = False

    @property
    def is_empty(self) -> bool:
        return 0 in self.shape

    @property
    def span_bytes(self) -> int:
        """Bytes from the first element to past the last; strides are not negative."""
        if self.is_empty:
            return 0
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (last + 1) * ELEMENT_BYTES[self.element]


class Imported(Array):
    """A tensor of another library, which thinks it in use as long as `held` lives. What is kept for
    later launches is the array alone."""

    held: object = None


class Facts:
    """Stands for all of an array but its address; equal facts are one object, to look up fast."""

    __slots__ = ()


_FACTS: dict[tuple[object, ...], Facts] = {}
_REMEMBERED_FACTS = 4096


def facts_of(array: Array) -> Facts:
    """The facts of an array: one object for all arrays that differ in their addresses only.

    When too many are remembered they are forgotten, and the same facts may be another object: a
    look-up then misses, which costs time only.
    """
    if len(_FACTS) >= _REMEMBERED_FACTS:
        _FACTS.clear()
    return _FACTS.setdefault(array[1:], Facts())


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a tensor that is dense in row-major order."""
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))
