"""Let accesses to shared memory take effect in program order.

Before:   buffers with offsets
After:    `nvvm.barrier0` (of the math warps: theirs; or `nvvm.bar.warp.sync`, where that is enough)
          stands between any two accesses to the same bytes, one of which writes

Algorithm: walk the skeleton with the accesses since the last barrier.
1. An access that conflicts with one of them gets a barrier before it. A barrier of the block
   forgets them all; one of the warp orders those to buffers that warps have each a part of.
2. A branch starts from what was before it; after it is what any of its ways leaves.
3. A loop starts from what was before it or what its parts leave, until that adds nothing.
4. A barrier that the later ones have made needless (the end of a loop's turn comes before its
   start) is taken out again.

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

from collections.abc import Set
from dataclasses import dataclass, replace
from enum import IntEnum

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ops.lowering import barrier_of, team_around
from tilec.shared_memory.accesses import (
    BLOCK_BARRIER,
    WARP_BARRIER,
    Alloc,
    Arrived,
    Barrier,
    Branch,
    Buffer,
    Commit,
    Fence,
    Loop,
    Node,
    Send,
    Skeleton,
    Touch,
    Unit,
    Wait,
    skeleton_of,
)


def place_barriers(function: ir.OpView, *, warps: int, skeleton: Skeleton | None = None) -> None:
    """Rewrites the function in place; `skeleton` is its own, if that is known."""
    placed = _Walk(warps)
    placed.after(skeleton or skeleton_of(function), frozenset(), insert=True)
    if not placed.inserted:
        return
    skeleton = skeleton_of(function)
    gone: set[ir.Operation] = set()
    for barrier in placed.inserted:
        again = _Walk(warps, gone | {barrier})
        again.after(skeleton, frozenset(), insert=False)
        if not again.has_conflict:
            gone.add(barrier)
    for barrier in gone:
        barrier.erase()


class _Level(IntEnum):
    """What two accesses need between them."""

    NOTHING = 0
    WARP = 1
    BLOCK = 2


@dataclass(frozen=True)
class _Pending:
    """An access since the last barrier of the block."""

    buffer: Buffer
    writes: bool
    is_of_turn_before: bool = False
    is_in_order_within_warps: bool = False
    younger: int | None = None  # of a copy that goes on: how many began after it, as far as counted
    slot: int | None = None
    # Of a copy to here that goes on: how many groups were made since, its own one included.
    groups: int | None = None

    @property
    def goes_on(self) -> bool:
        """Whether no barrier ends it."""
        return self.younger is not None or self.groups is not None

    def meets(self, touch: Touch) -> bool:
        """Whether they touch the same bytes."""
        if not self.buffer.overlaps(touch.buffer):
            return False
        is_told = self.buffer == touch.buffer and None not in (self.slot, touch.slot)
        return not is_told or self.slot == touch.slot


# So many copies are counted; of more it makes no difference.
_MOST_YOUNGER = 16
_State = frozenset[_Pending]


class _Walk:
    """One walk over a skeleton, as if the barriers `without` were not there."""

    def __init__(self, warps: int, without: Set[ir.Operation] = frozenset()) -> None:
        self.warps = warps
        self.without = without
        self.has_conflict = False
        self.inserted: list[ir.Operation] = []

    def after(self, skeleton: Skeleton, before: _State, *, insert: bool) -> _State:
        """The accesses that are pending at the end, given those at the start."""
        state = before
        for node in skeleton:
            state = self._after_node(node, state, insert=insert)
        return state

    def _after_node(self, node: Node, state: _State, *, insert: bool) -> _State:
        match node:
            case Alloc():
                return state
            case Barrier(op, is_of_block):
                if op.operation in self.without:
                    return state
                return self._ordered(state, _Level.BLOCK if is_of_block else _Level.WARP)
            case Touch(op, _, _):
                return self._after_touches(op, (node,), state, insert=insert)
            case Send(op, buffer, _):
                return self._after_send(op, buffer, state, insert=insert)
            case Wait(_, pending):
                return frozenset(_waited(one, pending) for one in state)
            case Fence():
                return state
            case Commit():
                return frozenset(map(_committed, state))
            case Arrived(_, pending):
                return frozenset(_arrived(one, pending) for one in state)
            case Unit(op, touches):
                self._expect_no_conflict_inside(touches)
                return self._after_touches(op, touches, state, insert=insert)
            case Branch(_, ways):
                left = [self.after(way, state, insert=insert) for way in ways]
                return frozenset().union(*left)
            case Loop():
                return self._after_loop(node, state, insert=insert)

    def _after_loop(self, loop: Loop, before: _State, *, insert: bool) -> _State:
        entering = before
        while not (left := _turned(self._turn(loop, entering, insert=False), loop)) <= entering:
            entering |= left
        return _left(before | self._turn(loop, entering, insert=insert), loop)

    def _turn(self, loop: Loop, entering: _State, *, insert: bool) -> _State:
        left: _State = frozenset()
        state = entering
        for part in loop.parts:
            state = self.after(part, state, insert=insert)
            left |= state
        return left

    def _after_send(self, op: ir.OpView, buffer: Buffer, state: _State, *, insert: bool) -> _State:
        read = Touch(op, buffer, writes=False)
        before = self._after_touches(op, (read,), state, insert=insert)
        aged = (
            one
            if one.younger is None
            else replace(one, younger=min(one.younger + 1, _MOST_YOUNGER))
            for one in before
        )
        return frozenset(aged) | {_Pending(buffer, writes=False, younger=0)}

    def _after_touches(
        self, op: ir.OpView, touches: tuple[Touch, ...], state: _State, *, insert: bool
    ) -> _State:
        level = max(
            (self._needed(one, touch) for one in state for touch in touches),
            default=_Level.NOTHING,
        )
        if level is not _Level.NOTHING:
            self.has_conflict = True
            state = self._ordered(state, level)
            if insert:
                self.inserted.append(_emit(op, level))
        return state | {_pending(touch) for touch in touches}

    def _needed(self, before: _Pending, touch: Touch) -> _Level:
        if not (before.writes or touch.writes) or not before.meets(touch):
            return _Level.NOTHING
        assert before.younger is None, f"what a copy may read is written: {touch.op}"
        is_same = before.buffer == touch.buffer
        if is_same and before.writes and touch.writes and not before.is_of_turn_before:
            return _Level.NOTHING  # by the contract of lowering
        assert before.groups is None, f"{touch.op} meets a copy that nobody has waited for"
        if self.warps > 1 and not (is_same and touch.buffer.is_by_warp):
            return _Level.BLOCK
        return _Level.NOTHING if before.is_in_order_within_warps else _Level.WARP

    def _ordered(self, state: _State, level: _Level) -> _State:
        going_on = frozenset(one for one in state if one.goes_on)
        if level is _Level.BLOCK:
            return going_on
        return going_on | {replace(one, is_in_order_within_warps=True) for one in state - going_on}

    def _expect_no_conflict_inside(self, touches: tuple[Touch, ...]) -> None:
        inside = [_pending(touch) for touch in touches]
        for touch in touches:
            for one in inside:
                assert self._needed(one, touch) is _Level.NOTHING, (
                    "threads meet in memory where not all of them come"
                )


def _waited(one: _Pending, pending: int) -> _Pending:
    is_over = one.younger is not None and one.younger >= pending
    return replace(one, younger=None) if is_over else one


# More groups than any loop waits for: what is older is as old.
_MOST_GROUPS = 32


def _pending(touch: Touch) -> _Pending:
    groups = 0 if touch.is_async else None
    return _Pending(touch.buffer, touch.writes, slot=touch.slot, groups=groups)


def _committed(one: _Pending) -> _Pending:
    if one.groups is None:
        return one
    return replace(one, groups=min(one.groups + 1, _MOST_GROUPS))


def _arrived(one: _Pending, pending: int) -> _Pending:
    """With groups after its own, a copy is none of the latest `pending` ones."""
    if one.groups is None or one.groups <= pending:
        return one
    return replace(one, groups=None, is_in_order_within_warps=False)


def _turned(state: _State, loop: Loop) -> _State:
    found = (replace(one, is_of_turn_before=True) for one in state)
    return frozenset(_a_slot_later(one) if one.buffer.ring in loop.rings else one for one in found)


def _a_slot_later(one: _Pending) -> _Pending:
    return one if one.slot is None else replace(one, slot=(one.slot - 1) % one.buffer.slots)


def _left(state: _State, loop: Loop) -> _State:
    """Behind a loop: nobody knows which slot was the last."""
    return frozenset(
        replace(one, slot=None) if one.buffer.ring in loop.rings else one for one in state
    )


def _emit(op: ir.OpView, level: _Level) -> ir.Operation:
    with op.location, ir.InsertionPoint(op):
        if level is _Level.BLOCK:
            team = team_around(op)
            if team is None:
                return ir.Operation.create(BLOCK_BARRIER)
            return barrier_of(team)
        everyone = arith.constant(ir.IntegerType.get_signless(32), -1)
        return ir.Operation.create(WARP_BARRIER, operands=[everyone])
