"""Tensors and parts as the CPU execution sees them: windows on arrays, whose reads are total."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
        self,
        op: ir.OpView,
        tensor: str,
        elements: Array,
        *,
        written: bool,
        outside: int,
        atomic: bool = False,
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

    def gather(
        self,
        indices: Sequence[Array],
        shape: tuple[int, ...],
        op: ir.OpView,
        *,
        atomic: bool = False,
    ) -> Array:
        """The elements at an index along each axis, all of `shape`; zero outside the view."""
        chosen = self._chosen(indices, shape)
        tile = np.zeros(shape, self.data.dtype)
        tile[chosen.inside] = self.data[np.newaxis][chosen.places]
        self._tell_chosen(op, chosen, written=False, atomic=atomic)
        return tile

    def scatter(self, indices: Sequence[Array], tile: Array, op: ir.OpView) -> None:
        """Put elements at an index along each axis; what is outside the view is left out.

        Of equal indices the last in row-major order stays.
        """
        chosen = self._chosen(indices, tile.shape)
        values = tile[chosen.inside].view(self.data.dtype)
        # NumPy does not say in which order it writes what is named twice.
        for turn in chosen.turns():
            self.data[np.newaxis][chosen.of(turn)] = values[turn]
        self._tell_chosen(op, chosen, written=True)

    def update(
        self,
        indices: Sequence[Array],
        change: Callable[..., Array],
        values: Sequence[Array],
        like: Array,
        op: ir.OpView,
    ) -> Array:
        """Change elements one after another in row-major order, each to `change(old, *values)`.

        Shapes:   indices and values are all of one shape, that of `like`, which has the type too
        Gives:    what was there before each; `like` where the index is outside the view
        """
        chosen = self._chosen(indices, like.shape)
        inside = [value[chosen.inside] for value in values]
        before = like[chosen.inside]
        for turn in chosen.turns():
            place = chosen.of(turn)
            before[turn] = self.data[np.newaxis][place].view(like.dtype)
            after = change(before[turn], *(value[turn] for value in inside))
            self.data[np.newaxis][place] = after.view(self.data.dtype)
        self._tell_chosen(op, chosen, written=True, atomic=True)
        result: Array = like.copy()
        result[chosen.inside] = before
        return result

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

    def _chosen(self, indices: Sequence[Array], shape: tuple[int, ...]) -> _Chosen:
        """Which indices, all of `shape`, are inside, and where those are."""
        inside = np.ones(shape, np.bool_)
        for index, extent in zip(indices, self.extents, strict=True):
            inside &= (index >= 0) & (index < extent)
        # One more axis in front, so that a view of rank 0 has one.
        places = (np.zeros(shape, np.int64)[inside], *(index[inside] for index in indices))
        return _Chosen(inside, places, (1, *self.extents))

    def _tell_chosen(
        self, op: ir.OpView, chosen: _Chosen, *, written: bool, atomic: bool = False
    ) -> None:
        if self.observer is None or self.elements is None:
            return
        inside = self.elements[np.newaxis][chosen.places]
        outside = chosen.inside.size - inside.size
        self.observer.touched(
            op, self.tensor, inside, written=written, outside=outside, atomic=atomic
        )

    def _tell(self, op: ir.OpView, window: tuple[slice, ...], size: int, *, written: bool) -> None:
        if self.observer is None or self.elements is None:
            return
        # `...` keeps what is taken of an array of rank 0 an array.
        place: Any = (*window, ...)
        inside = self.elements[place].ravel()
        outside = size - inside.size
        self.observer.touched(op, self.tensor, inside, written=written, outside=outside)


@dataclass(frozen=True)
class _Chosen:
    """Elements of a view that indices name, some perhaps twice.

    Shapes:   `inside`: that of the indices; `places`: for each axis the indices that are inside, in
              row-major order
    """

    inside: Array
    places: tuple[Array, ...]
    extents: tuple[int, ...]

    def turns(self) -> Iterator[Array]:
        """Their numbers in groups that name nothing twice; of equal ones, an earlier one first."""
        if not self.places[0].size:
            return
        names = np.ravel_multi_index(self.places, self.extents)
        order = np.argsort(names, kind="stable")
        turn = np.empty_like(order)
        turn[order] = np.arange(order.size) - np.searchsorted(names[order], names[order])
        for number in range(turn.max() + 1):
            yield np.flatnonzero(turn == number)

    def of(self, turn: Array) -> tuple[Array, ...]:
        """The places of one group."""
        return tuple(place[turn] for place in self.places)


def view_of(tensor: str, array: Array, observer: Observer | None) -> View:
    """An argument of a kernel as a view."""
    zeros = (0,) * array.ndim
    elements = None
    if observer is not None:
        elements = np.arange(array.size).reshape(array.shape)
    return View(tensor, array, zeros, zeros, elements, observer)
