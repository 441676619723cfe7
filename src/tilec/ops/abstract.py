"""What proofs know of values, as operations see it: `OpRules.abstract` is `interpret` on unknowns.

An integer is a `Number`, a truth value a `Formula`, a view an `AbstractView`. Of anything else
(floats, tiles) nothing is known: None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from mlir import ir

from tilec.integers.formula import Formula
from tilec.integers.number import Number
from tilec.integers.polynomial import Polynomial


@dataclass(frozen=True)
class AbstractView:
    """A tensor, a part of one, or either with its axes in another order.

    Units:    elements, counted in the tensor; everything but `axes` is by the tensor's axes
    """

    tensor: str
    own: str
    axes: tuple[int, ...]  # of each axis of the view, the tensor's
    extents: tuple[Polynomial, ...]  # of the tensor
    starts: tuple[Polynomial, ...]  # the view's first element
    lows: tuple[tuple[Polynomial, ...], ...]  # what elements of the view are not below
    highs: tuple[tuple[Polynomial, ...], ...]  # and what they are below
    ids: tuple[Number, ...] = ()  # of a part, by the view's axes

    def permuted(self, order: Sequence[int]) -> AbstractView:
        """Axis `i` of the result is axis `order[i]`."""
        ids = tuple(self.ids[a] for a in order) if self.ids else ()
        return replace(self, axes=tuple(self.axes[a] for a in order), ids=ids)

    def tile(
        self, ids: Sequence[Number], starts: Sequence[Polynomial], block: Sequence[int]
    ) -> AbstractView:
        """A smaller part, clipped to this view; `starts` (in the tensor) by the view's axes."""
        place = {axis: (s, b) for axis, s, b in zip(self.axes, starts, block, strict=True)}
        rank = range(len(self.extents))
        return replace(
            self,
            starts=tuple(place[a][0] for a in rank),
            lows=tuple((*self.lows[a], place[a][0]) for a in rank),
            highs=tuple((*self.highs[a], place[a][0] + place[a][1]) for a in rank),
            ids=tuple(ids),
        )


Abstract: TypeAlias = "Number | Formula | AbstractView | None"


class Reasoning(Protocol):
    """The abstract execution of all programs at once, as an operation sees it (`tilec.proofs`)."""

    def wrapped(self, number: Number, kind: ir.Type, op: ir.OpView) -> Number:
        """An integer of this type, if no program can make it wrap; else any number of it."""

    def unsigned(self, number: Number, kind: ir.Type) -> Number:
        """The bits of a (signed) integer of this type, read without a sign."""

    def signed(self, number: Number, kind: ir.Type) -> Number:
        """The bits of an unsigned integer of this type, read with a sign."""

    def choose(self, condition: Formula, yes: Number, no: Number) -> Number:
        """`yes` where the condition holds, else `no`."""

    def quotient(self, a: Number, b: Number, rounding: str, op: ir.OpView) -> Number:
        """`a / b` where `b` is not 0; `rounding` is "truncated", "floor" or "ceiling"."""

    def remainder(self, a: Number, b: Number, op: ir.OpView) -> Number:
        """What truncated division of `a` by `b`, which is not 0, leaves."""

    def few(self, number: Number) -> Number:
        """The same with few cases: what is computed of several has their product."""

    def few_values(self, number: Number) -> Number:
        """The number by the constants that it can be here, if these are few; else as it is."""

    def is_power_of_two(self, number: Number) -> bool:
        """Whether it is certainly one."""

    def tested_for_power(self, number: Number, op: ir.OpView) -> Number:
        """`n & (n - 1)`."""

    def exact(self, value: Polynomial) -> Polynomial:
        """What a number is where nothing wraps."""

    def two_to(self, exponent: Number, op: ir.OpView) -> Number | None:
        """A power of two; None if the exponent may be too large, or below 0."""

    def single(self, number: Number) -> Polynomial:
        """The number without cases."""

    def unwrapped(self, number: Number, ops: Sequence[ir.OpView]) -> Polynomial:
        """The number without cases, of which it is known that these operations do not wrap."""

    def opaque(self, op: ir.OpView) -> list[Abstract]:
        """Results of an operation that is not followed."""

    def decide(self, formula: Formula) -> bool | None:
        """Whether a condition always holds here, never, or sometimes (or nobody knows)."""

    def program(self, axis: int) -> Polynomial:
        """The index of a program along an axis of the grid."""

    def programs(self, axis: int) -> Polynomial:
        """The extent of the grid along an axis."""

    def set_grid(self, extents: Sequence[Number]) -> None:
        """What the extents of the grid are."""

    def is_cut(self, view: AbstractView, block: Sequence[int], op: ir.OpView) -> None:
        """The grid has as many programs along each axis as the view has tiles of `block`."""

    def tensor(self, base: AbstractView, extents: Sequence[Polynomial]) -> AbstractView:
        """A whole tensor, given the view that stands for its pointer."""

    def assume(self, formula: Formula, op: ir.OpView) -> None:
        """A precondition, which launchers check."""

    def know_here(self, formula: Formula, op: ir.OpView) -> None:
        """What holds from here to the end of the block, the body of a loop."""

    def run(
        self,
        block: ir.Block,
        arguments: Sequence[Abstract],
        facts: Sequence[Formula],
        op: ir.OpView,
    ) -> list[Abstract]:
        """Execute a block where facts hold; gives what its terminator hands over."""

    def joined(self, condition: Formula, yes: Abstract, no: Abstract, result: ir.Value) -> Abstract:
        """A result of two branches."""

    def repeated(
        self,
        starts: Sequence[Abstract],
        kinds: Sequence[ir.Type],
        turn: Callable[[Polynomial, Sequence[Abstract]], Sequence[Abstract]],
        turns: Polynomial | None,
        op: ir.OpView,
    ) -> list[Abstract]:
        """The variables of a loop after it, given those before it and their types.

        `turn` executes one, given its number and the variables before it, and gives them after it.
        `turns` is how many there are, if that is known.
        """
