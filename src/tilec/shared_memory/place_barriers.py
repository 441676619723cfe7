"""Let accesses to shared memory take effect in program order.

Before:   buffers with offsets
After:    `nvvm.barrier0` (of the math warps: theirs; or `nvvm.bar.warp.sync`, where that is enough)
          stands between any two accesses to the same bytes, one of which writes

Algorithm: walk the skeleton with the accesses since the last barrier.
1. An access that conflicts with one of them gets a barrier before it. A barrier of the block
   forgets them all; one of the warp orders those to buffers that warps have each a part of.
2. A branch starts from what was before it; after it is what any of its ways leaves.
3. A loop starts from what was before it or what its parts leave, until that adds nothing.
   What is found of a loop is kept (`tilec.ir.loop_states`).
4. A barrier that the later ones have made needless (`needless_barriers.py`) is taken out again.

5. A copy by hardware is a read that no barrier ends. Once it was waited for, it is one that a
   barrier is to order.

    write a; read a                      a barrier
    loop { write a; read a }             two: the next turn writes what this one read
    loop { write a; read a; write b; read b }     two: that of `b` also orders the next turn's `a`

   Slots of a ring are counted from that of the current turn: a turn later they are one less.
6. A copy of threads that goes on by itself is pending until its group was waited for, whatever
   barriers there are; from there on it is a write like any other. Nothing may meet it before.

Sound: `verify` says so again, and differently.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ir.loop_states import LoopStates
from tilec.ops.lowering import barrier_of, team_around
from tilec.shared_memory.accesses import (
    BLOCK_BARRIER,
    WARP_BARRIER,
    Alloc,
    Barrier,
    Branch,
    Loop,
    Node,
    Send,
    Skeleton,
    Touch,
    Unit,
    skeleton_of,
)
from tilec.shared_memory.needless_barriers import needless_barriers
from tilec.shared_memory.pending import (
    Level,
    Pending,
    after_barrier,
    after_step,
    after_turn,
    begun_at,
    behind_loop,
    needed,
    touches_of,
)


def place_barriers(function: ir.OpView, *, warps: int, skeleton: Skeleton | None = None) -> None:
    """Rewrites the function in place; `skeleton` is its own, if that is known."""
    walk = Walk(warps)
    walk.run(skeleton or skeleton_of(function))
    if not walk.inserted:
        return
    for barrier in needless_barriers(skeleton_of(function), walk.inserted, warps):
        barrier.erase()


_State = frozenset[Pending]


class Walk:
    """Inserts barriers; `visits` counts the nodes that were walked: the measure of the work."""

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.visits = 0
        self.inserted: list[ir.Operation] = []
        self._loops = LoopStates[Pending]()

    def run(self, skeleton: Skeleton) -> None:
        self._after(skeleton, frozenset(), insert=True)

    def _after(self, skeleton: Skeleton, before: _State, *, insert: bool) -> _State:
        """The accesses that are pending at the end, given those at the start."""
        state = before
        for node in skeleton:
            state = self._after_node(node, state, insert=insert)
        return state

    def _after_node(self, node: Node, state: _State, *, insert: bool) -> _State:
        self.visits += 1
        match node:
            case Alloc():
                return state
            case Barrier(_, is_of_block):
                return self._ordered(state, Level.BLOCK if is_of_block else Level.WARP)
            case Branch(_, ways):
                left = [self._after(way, state, insert=insert) for way in ways]
                return frozenset().union(*left)
            case Loop():
                return self._after_loop(node, state, insert=insert)
            case Touch() | Send() | Unit():
                return self._after_touches(node, state, insert=insert)
            case _:
                return frozenset(after_step(one, node) for one in state)

    def _after_loop(self, loop: Loop, before: _State, *, insert: bool) -> _State:
        entering = self._loops.entered(loop, before, lambda state: self._turned(loop, state))
        if insert:
            left = self._turn(loop, entering, insert=True)
        else:
            left = self._loops.behind(
                loop, entering, lambda: self._turn(loop, entering, insert=False)
            )
        return frozenset(behind_loop(one, loop) for one in before | left)

    def _turned(self, loop: Loop, entering: _State) -> _State:
        left = self._turn(loop, entering, insert=False)
        return frozenset(after_turn(one, loop) for one in left)

    def _turn(self, loop: Loop, entering: _State, *, insert: bool) -> _State:
        left: _State = frozenset()
        state = entering
        for part in loop.parts:
            state = self._after(part, state, insert=insert)
            left |= state
        return left

    def _after_touches(self, node: Touch | Send | Unit, state: _State, *, insert: bool) -> _State:
        touches = touches_of(node)
        if insert:
            _expect_no_conflict_inside(node, self.warps)
        level = max(
            (needed(one, touch, self.warps) for one in state for touch in touches),
            default=Level.NOTHING,
        )
        if level is not Level.NOTHING:
            state = self._ordered(state, level)
            if insert:
                self.inserted.append(_emit(node.op, level))
        if isinstance(node, Send):
            state = frozenset(after_step(one, node) for one in state)
        return state.union(begun_at(node))

    def _ordered(self, state: _State, level: Level) -> _State:
        left = (after_barrier(one, level, self.warps) for one in state)
        return frozenset(one for one in left if one is not None)


def _expect_no_conflict_inside(node: Touch | Send | Unit, warps: int) -> None:
    if not isinstance(node, Unit):
        return
    inside = begun_at(node)
    for touch in node.touches:
        for one in inside:
            assert needed(one, touch, warps) is Level.NOTHING, (
                "threads meet in memory where not all of them come"
            )


def _emit(op: ir.OpView, level: Level) -> ir.Operation:
    with op.location, ir.InsertionPoint(op):
        if level is Level.BLOCK:
            team = team_around(op)
            if team is None:
                return ir.Operation.create(BLOCK_BARRIER)
            return barrier_of(team)
        everyone = arith.constant(ir.IntegerType.get_signless(32), -1)
        return ir.Operation.create(WARP_BARRIER, operands=[everyone])
