"""Moves operations of our dialects out of the loops in which they never change.

Before:     MLIR's licm has moved what it knows
After:      no movable operation directly in a loop's body has all its operands from outside; what
            was proved of an access in the loop is forgotten, if it needs the loop
Algorithm:  inner loops first; in each, in program order, what depends on nothing inside is moved
            before the loop, and is outside from then on
"""

from __future__ import annotations

from mlir import ir

from tilec.ops.bounds import moved_out
from tilec.ops.registry import rules
from tilec.transforms.effects import blocks_of, is_movable


def hoist_invariant(module: ir.Module) -> bool:
    """Move what never changes; whether anything was moved."""
    return _hoist_in(module.operation)


def _hoist_in(op: ir.OpView) -> bool:
    changed = False
    for block in blocks_of(op):
        for inner in list(block.operations):
            changed |= _hoist_in(inner)
    if _is_loop(op):
        changed |= _hoist_from(op)
    return changed


def _is_loop(op: ir.OpView) -> bool:
    rule = rules().get(op.operation.name)
    return rule is not None and rule.loop


def _hoist_from(loop: ir.OpView) -> bool:
    changed = False
    for block in blocks_of(loop):
        for op in list(block.operations):
            if is_movable(op) and not any(_is_of(value, block) for value in op.operands):
                op.operation.move_before(loop.operation)
                moved_out(op)
                changed = True
    return changed


def _is_of(value: ir.Value, block: ir.Block) -> bool:
    """Whether a value comes to be in a block itself: one that an operation of the block uses does
    so there or around it, never deeper inside."""
    owner = value.owner
    return bool((owner if isinstance(owner, ir.Block) else owner.operation.block) == block)
