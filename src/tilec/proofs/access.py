"""An access to a tensor as a relation: which elements a program touches, and where that happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.integers.formula import Formula, at_least, both, either, less
from tilec.integers.polynomial import Polynomial
from tilec.ops.abstract import AbstractView
from tilec.proofs.knowledge import Fact


@dataclass(frozen=True, eq=False)
class Access:
    """One load or store, in all programs and turns of loops.

    Shapes:   `starts` and `sizes` are by the tensor's axes; None if nobody knows what is touched
    Units:    elements, counted in the tensor
    """

    op: ir.OpView
    view: AbstractView
    starts: tuple[Polynomial, ...] | None
    sizes: tuple[int, ...]
    writes: bool
    path: tuple[Fact, ...]  # what holds where it is

    @property
    def is_unsafe(self) -> bool:
        return "unsafe" in self.op.attributes

    @property
    def is_unchecked(self) -> bool:
        return "unchecked" in self.op.attributes

    @property
    def rank(self) -> int:
        return len(self.view.extents)

    def touches(self, element: Sequence[Polynomial]) -> list[Formula]:
        """That an element (its coordinates in the tensor) is one of those touched."""
        return [f for axis in range(self.rank) for f in self._touches(axis, element[axis])]

    def _touches(self, axis: int, coordinate: Polynomial) -> list[Formula]:
        found = [at_least(coordinate, 0), less(coordinate, self.view.extents[axis])]
        found += [at_least(coordinate, low) for low in self.view.lows[axis]]
        found += [less(coordinate, high) for high in self.view.highs[axis]]
        if self.starts is not None:
            start, size = self.starts[axis], self.sizes[axis]
            found += [at_least(coordinate, start), less(coordinate, start + size)]
        return found

    def is_below(self, axis: int) -> Formula:
        """That some of its elements are below the view along an axis."""
        assert self.starts is not None
        start = self.starts[axis]
        return either(*(less(start, low) for low in (Polynomial(), *self.view.lows[axis])))

    def is_above(self, axis: int) -> Formula:
        """That some of its elements are past the view along an axis."""
        assert self.starts is not None
        end = self.starts[axis] + self.sizes[axis]
        highs = (self.view.extents[axis], *self.view.highs[axis])
        return either(*(less(high, end) for high in highs))

    def begins_above(self, axis: int) -> Formula:
        """That all of its elements are past the view along an axis."""
        assert self.starts is not None
        highs = (self.view.extents[axis], *self.view.highs[axis])
        return either(*(at_least(self.starts[axis], high) for high in highs))

    def conditions(self) -> Formula:
        """What holds where it is."""
        return both(*(fact.formula for fact in self.path))
