"""Let the accesses of one program to a tensor that it writes take effect in program order.

Before:   one function, placed; accesses have `bounds` (`find_access_facts`)
After:    `tile.barrier` stands between any two accesses to the same memory, one of which writes,
          unless every element is touched by one and the same thread in both; and between any access
          and one that acquires and releases

Algorithm: walk the function with the accesses since the last barrier.
1. An access that conflicts with one of them gets a barrier before it, and they are forgotten.
2. A branch starts from what was before it; after it is what any of its ways leaves.
3. A loop starts from what was before it or what its body leaves, until that adds nothing. What is
   found of it is kept (`tilec.ir.loop_states`).

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
from tilec.ir.loop_states import LoopStates
from tilec.ir.types import is_tile, view_facts
from tilec.layout import Layout, unique_holders
from tilec.ops.bounds import bounds_of
from tilec.ops.encoding import layout_of
from tilec.ops.registry import rules


def insert_barriers(function: ir.OpView) -> None:
    """Rewrites the function in place; needs a current context."""
    [block] = function.regions[0].blocks
    for op in Walk().run(block):
        with op.location, ir.InsertionPoint(op):
            ir.Operation.create("tile.barrier")


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


@dataclass(frozen=True)
class _Step:
    """An operation as far as it matters here: an access, or control flow with its regions."""

    op: ir.OpView
    access: _Access | None = None
    bodies: tuple[tuple[_Step, ...], ...] = ()
    is_loop: bool = False


class Walk:
    """Finds where barriers go; `visits` counts the steps that were walked: the measure of work."""

    def __init__(self) -> None:
        self.visits = 0
        self._found: list[ir.OpView] = []
        self._loops = LoopStates[_Access]()

    def run(self, block: ir.Block) -> list[ir.OpView]:
        """The operations before which a barrier is needed, in program order."""
        self._after(_steps(block), frozenset(), note=True)
        return self._found

    def _after(self, steps: tuple[_Step, ...], before: _Accesses, *, note: bool) -> _Accesses:
        """The accesses since the last barrier at the end of a block, given those at its start."""
        pending = before
        for step in steps:
            self.visits += 1
            if step.access is None:
                pending = self._after_control(step, pending, note=note)
                continue
            if any(step.access.conflicts_with(other) for other in pending):
                pending = frozenset()
                if note:
                    self._found.append(step.op)
            if step.access not in pending:
                pending |= {step.access}
        return pending

    def _after_control(self, step: _Step, before: _Accesses, *, note: bool) -> _Accesses:
        if step.is_loop:
            return self._after_loop(step, before, note=note)
        ways = [self._after(body, before, note=note) for body in step.bodies]
        skipped = before if len(ways) < 2 else frozenset()
        return skipped.union(*ways)

    def _after_loop(self, loop: _Step, before: _Accesses, *, note: bool) -> _Accesses:
        def turned(entering: _Accesses) -> _Accesses:
            return self._after_turn(loop, entering, note=False)

        entering = self._loops.entered(loop, before, turned)
        if note:
            return before | self._after_turn(loop, entering, note=True)
        return before | self._loops.behind(loop, entering, lambda: turned(entering))

    def _after_turn(self, loop: _Step, entering: _Accesses, *, note: bool) -> _Accesses:
        """What the regions of a loop leave, one after the other; it may end after any of them."""
        left: _Accesses = frozenset()
        pending = entering
        for body in loop.bodies:
            pending = self._after(body, pending, note=note)
            left |= pending
        return left


def _steps(block: ir.Block) -> tuple[_Step, ...]:
    """What of a block matters; what is in it is read once, however often it is walked."""
    return tuple(step for op in block.operations if (step := _step(op)) is not None)


def _step(op: ir.OpView) -> _Step | None:
    rule = rules()[op.operation.name]
    if not rule.control:
        access = _access(op)
        return None if access is None else _Step(op, access)
    bodies = tuple(_steps(region.blocks[0]) for region in op.regions if len(region.blocks))
    return _Step(op, None, bodies, rule.loop) if any(bodies) else None


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
