"""Tensors and parts as the CPU execution sees them: windows on arrays, whose reads are total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np
from mlir import ir
from numpy.typing import NDArray

Array = NDArray[Any]


class Observer(Protocol):
    """Hears of every program, and of every access that it makes."""

    def starts(self, program: tuple[int, ...]) -> None:
        """What follows is done by the program of this index."""

    def touched(
        self, op: ir.OpView, tensor: str, elements: Array, *, written: bool, outside: int
    ) -> None:
        """An access: the elements inside (their numbers in the argument's row-major order).

        `outside` is how many elements of the access lie outside of its view.
        """


@dataclass(frozen=True)
class View:
    """A tensor, a part of one, or either with its axes in another order.

    Shapes:   `data` has the extents of the view, clipped; `origin` and `index` one number an axis
    Units:    `origin` is the view's first element in its tensor, `index` counts parts
    """

    tensor: str
    data: Array
    origin: tuple[int, ...]
    index: tuple[int, ...]
    elements: Array | None = None  # the number of each element, where somebody observes
    observer: Observer | None = None

    @property
    def extents(self) -> tuple[int, ...]:
        return self.data.shape

    def read(
        self, start: Sequence[int], shape: tuple[int, ...], fill: Array | None, op: ir.OpView
    ) -> Array:
        """The tile at `start`; elements outside the view are `fill` or zero."""
        empty = np.zeros((), self.data.dtype) if fill is None else fill.view(self.data.dtype)
        tile = np.array(np.broadcast_to(empty, shape))
        window, within = self._overlap(start, shape)
        tile[within] = self.data[window]
        self._tell(op, window, prod(shape), written=False)
        return tile

    def write(self, start: Sequence[int], tile: Array, op: ir.OpView) -> None:
        """Put a tile at `start`; elements outside the view are left out."""
        window, within = self._overlap(start, tile.shape)
        self.data[window] = tile[within].view(self.data.dtype)
        self._tell(op, window, tile.size, written=True)

    def tile(self, index: Sequence[int], block: Sequence[int]) -> View:
        """The part of extents `block` at a tile index, clipped to this view."""
        start = tuple(i * b for i, b in zip(index, block, strict=True))
        window, _ = self._overlap(start, tuple(block))
        # `...` keeps an array of rank 0 what it is: a window.
        place: Any = (*window, ...)
        return replace(
            self,
            data=self.data[place],
            elements=None if self.elements is None else self.elements[place],
            origin=tuple(o + s for o, s in zip(self.origin, start, strict=True)),
            index=tuple(index),
        )

    def permuted(self, order: Sequence[int]) -> View:
        """Axis `i` of the result is axis `order[i]`."""
        return replace(
            self,
            data=self.data.transpose(order),
            elements=None if self.elements is None else self.elements.transpose(order),
            origin=tuple(self.origin[a] for a in order),
            index=tuple(self.index[a] for a in order),
        )

    def _overlap(
        self, start: Sequence[int], shape: tuple[int, ...]
    ) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where a box at `start` meets the view: as slices of the view, and of the box."""
        window, within = [], []
        for first, size, extent in zip(start, shape, self.extents, strict=True):
            low = min(max(first, 0), extent)
            high = max(min(first + size, extent), low)
            window.append(slice(low, high))
            # An empty meeting may lie far outside the box: any empty slice of it will do.
            within.append(slice(low - first, high - first) if high > low else slice(0, 0))
        return tuple(window), tuple(within)

    def _tell(self, op: ir.OpView, window: tuple[slice, ...], size: int, *, written: bool) -> None:
        if self.observer is None or self.elements is None:
            return
        # `...` keeps what is taken of an array of rank 0 an array.
        place: Any = (*window, ...)
        inside = self.elements[place].ravel()
        outside = size - inside.size
        self.observer.touched(op, self.tensor, inside, written=written, outside=outside)


def view_of(tensor: str, array: Array, observer: Observer | None) -> View:
    """An argument of a kernel as a view."""
    zeros = (0,) * array.ndim
    elements = None
    if observer is not None:
        elements = np.arange(array.size).reshape(array.shape)
    return View(tensor, array, zeros, zeros, elements, observer)
