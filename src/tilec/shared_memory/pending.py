"""An access to shared memory that a barrier may still have to order: what ends it, what it needs.

What happens between two accesses happens to each pending access by itself, so that sets of them can
be followed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

from tilec.shared_memory.accesses import (
    Arrived,
    Buffer,
    Commit,
    Fence,
    Loop,
    Send,
    Touch,
    Unit,
    Wait,
)

# So many copies are counted; of more it makes no difference.
_MOST_YOUNGER = 16
# More groups than any loop waits for: what is older is as old.
_MOST_GROUPS = 32


# What is neither control flow nor a barrier.
Step = Touch | Send | Unit | Wait | Fence | Commit | Arrived


class Level(IntEnum):
    """What two accesses need between them."""

    NOTHING = 0
    WARP = 1
    BLOCK = 2


@dataclass(frozen=True)
class Pending:
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


def touches_of(node: Touch | Send | Unit) -> tuple[Touch, ...]:
    """What is touched where control comes to this node."""
    match node:
        case Touch():
            return (node,)
        case Send():
            return (node.read,)
        case Unit(_, touches):
            return touches


def begun_at(node: Touch | Send | Unit) -> tuple[Pending, ...]:
    """What is pending from this node on."""
    begun = tuple(_pending(touch) for touch in touches_of(node))
    if isinstance(node, Send):
        return (*begun, Pending(node.buffer, writes=False, younger=0))
    return begun


def _pending(touch: Touch) -> Pending:
    groups = 0 if touch.is_async else None
    return Pending(touch.buffer, touch.writes, slot=touch.slot, groups=groups)


def needed(before: Pending, touch: Touch, warps: int) -> Level:
    """What has to stand between a pending access and one that comes now."""
    if not (before.writes or touch.writes) or not before.meets(touch):
        return Level.NOTHING
    assert before.younger is None, f"what a copy may read is written: {touch.op}"
    is_same = before.buffer == touch.buffer
    if is_same and before.writes and touch.writes and not before.is_of_turn_before:
        return Level.NOTHING  # by the contract of lowering
    assert before.groups is None, f"{touch.op} meets a copy that nobody has waited for"
    if warps > 1 and not (is_same and touch.buffer.is_by_warp):
        return Level.BLOCK
    return Level.NOTHING if before.is_in_order_within_warps else Level.WARP


def after_barrier(before: Pending, level: Level, warps: int) -> Pending | None:
    """What is pending of it after a barrier; None where nothing is."""
    if before.goes_on or level is Level.NOTHING:
        return before
    # Of one warp, a barrier of the warp orders all that a barrier of the block does.
    if level is Level.BLOCK or warps == 1:
        return None
    return replace(before, is_in_order_within_warps=True)


def after_step(
    before: Pending, node: Touch | Send | Unit | Wait | Fence | Commit | Arrived
) -> Pending:
    """What is pending of it after anything that is no barrier."""
    match node:
        case Send() if before.younger is not None:
            return replace(before, younger=min(before.younger + 1, _MOST_YOUNGER))
        case Wait(_, pending) if before.younger is not None and before.younger >= pending:
            return replace(before, younger=None)
        case Commit() if before.groups is not None:
            return replace(before, groups=min(before.groups + 1, _MOST_GROUPS))
        # With groups after its own, a copy is none of the latest `pending` ones.
        case Arrived(_, pending) if before.groups is not None and before.groups > pending:
            return replace(before, groups=None, is_in_order_within_warps=False)
        case _:
            return before


def after_turn(before: Pending, loop: Loop) -> Pending:
    """What is pending of it where the next turn of a loop begins."""
    slot = before.slot
    if slot is not None and before.buffer.ring in loop.rings:
        slot = (slot - 1) % before.buffer.slots
    return replace(before, is_of_turn_before=True, slot=slot)


def behind_loop(before: Pending, loop: Loop) -> Pending:
    """What is pending of it behind a loop: nobody knows which slot was the last."""
    return replace(before, slot=None) if before.buffer.ring in loop.rings else before
