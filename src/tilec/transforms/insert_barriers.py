"""Let the accesses of one program to a tensor that it writes take effect in program order.

Before:   one function, placed; accesses have `bounds` (`find_access_facts`)
After:    `tile.barrier` stands between any two accesses to the same memory, one of which writes,
          unless every element is touched by one and the same thread in both; and between any access
          and one that acquires and releases

Algorithm: walk the function with the accesses since the last barrier.
1. An access that conflicts with one of them gets a barrier before it, and they are forgotten.
2. A branch starts from what was before it; after it is what any of its ways leaves.
3. A loop starts from what was before it or what its body leaves, until that adds nothing.

Sound: a thread sees its own accesses in program order, and a barrier orders those of all threads.
Two accesses are by the same threads when they are tiles of one shape and one layout, from one
grid of such tiles (each begins at multiples of its extents): then every element is always held by
the same thread. A load by several threads that hold copies is not. Where indices are values
(`gather`, `scatter`, atomic updates) nothing is known of who touches what.

What acquires and releases is ordered with the accesses to every tensor: those before it are done
when it releases, and those after it see what it acquired, whichever threads they are of. Its own
code orders the one thread that does it (`ops/lower_atomic.py`), barriers do the rest.

    part.store(t); part.load()                one shape, one layout: no barrier
    part.store(t); part.sub::<16>([i]).load() two shapes: a barrier
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.types import view_facts
from tilec.layout import Layout, unique_holders
from tilec.ops.bounds import bounds_of
from tilec.ops.encoding import layout_of
from tilec.ops.registry import rules
from tilec.ops.rules import is_tile


def insert_barriers(function: ir.OpView) -> None:
    """Rewrites the function in place; needs a current context."""
    [block] = function.regions[0].blocks
    _after(block, frozenset(), insert=True)


@dataclass(frozen=True)
class _Access:
    """An access as far as it matters which thread touches what."""

    tensor: ir.Value
    axes: tuple[int, ...]  # those of the tensor that the axes of the tile are
    shape: tuple[int, ...]
    layout: Layout | None
    is_on_grid: bool  # it begins at multiples of its extents
    writes: bool
    orders_all: bool = False  # it acquires and releases

    def conflicts_with(self, other: _Access) -> bool:
        if self.orders_all or other.orders_all:
            return True
        if self.tensor != other.tensor or not (self.writes or other.writes):
            return False
        return not self._is_by_the_threads_of(other)

    def _is_by_the_threads_of(self, other: _Access) -> bool:
        if not (self.is_on_grid and other.is_on_grid) or self.layout is None:
            return False
        if (self.axes, self.shape, self.layout) != (other.axes, other.shape, other.layout):
            return False
        copies = unique_holders(self.layout)
        return (self.writes and other.writes) or copies.lane == copies.warp == 0


_Accesses = frozenset[_Access]


def _after(block: ir.Block, before: _Accesses, *, insert: bool) -> _Accesses:
    """The accesses since the last barrier at the end of a block, given those at its start."""
    pending = before
    for op in list(block.operations):
        if rules()[op.operation.name].control:
            pending = _after_control(op, pending, insert=insert)
            continue
        access = _access(op)
        if access is None:
            continue
        if any(access.conflicts_with(other) for other in pending):
            pending = frozenset()
            if insert:
                with op.location, ir.InsertionPoint(op):
                    ir.Operation.create("tile.barrier")
        pending |= {access}
    return pending


def _after_control(op: ir.OpView, before: _Accesses, *, insert: bool) -> _Accesses:
    if not rules()[op.operation.name].loop:
        ways = [_after(region.blocks[0], before, insert=insert) for region in _bodies(op)]
        skipped = before if len(ways) < 2 else frozenset()
        return skipped.union(*ways)
    entering = before
    while not (left := _after_turn(op, entering, insert=False)) <= entering:
        entering |= left
    return before | _after_turn(op, entering, insert=insert)


def _after_turn(op: ir.OpView, entering: _Accesses, *, insert: bool) -> _Accesses:
    """What the regions of a loop leave, one after the other; it may end after any of them."""
    left: _Accesses = frozenset()
    pending = entering
    for region in _bodies(op):
        pending = _after(region.blocks[0], pending, insert=insert)
        left |= pending
    return left


def _bodies(op: ir.OpView) -> list[ir.Region]:
    return [region for region in op.regions if len(region.blocks)]


def _access(op: ir.OpView) -> _Access | None:
    found = rules()[op.operation.name].access(op)
    if found is None:
        return _anywhere(op)
    if view_facts(found.view.type).own == "shared":
        return None
    tensor, axes = _tensor_of(found.view, len(found.shape))
    starts = (bounds.divisor for bounds in bounds_of(op))
    return _Access(
        tensor,
        axes,
        found.shape,
        layout_of(found.tile.type) if is_tile(found.tile) else None,
        not any(start % size for start, size in zip(starts, found.shape, strict=True)),
        bool(declarations()[op.operation.name].writes),
    )


def _anywhere(op: ir.OpView) -> _Access | None:
    """An access to memory of which nothing but the tensor is known."""
    declared = declarations().get(op.operation.name)
    if declared is None:
        return None
    touched = (*declared.reads, *declared.writes, *declared.updates)
    if not touched:
        return None
    assert set(touched) == {"view"}, f"{declared.name} accesses one view"
    view = op.operands[declared.operands.index("view")]
    if view_facts(view.type).own == "shared":
        return None
    tensor, _ = _tensor_of(view, 0)
    writes = bool(declared.writes or declared.updates)
    orders_all = rules()[declared.name].orders_all(op)
    return _Access(tensor, (), (), None, False, writes, orders_all)


def _tensor_of(view: ir.Value, rank: int) -> tuple[ir.Value, tuple[int, ...]]:
    """The argument that a view looks at, and which of its axes those of the view are."""
    axes = tuple(range(rank))
    while not isinstance(view.owner, ir.Block):
        maker = view.owner.opview
        rule = rules()[maker.operation.name]
        axes = tuple(rule.viewed_axis(maker, axis) for axis in axes)
        view = maker.operands[0]
    return view, axes
