"""What math warps load by themselves in a turn is on its way before they wait for a slot.

Before:   s = get; r = read s; x = load t k; …
After:    x = load t k; s = get; r = read s; …

Only what is little is held for so long. Threads would else wait for memory in each turn, where
nothing of theirs goes on.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.types import view_facts
from tilec.ops.registry import rules
from tilec.ops.rules import is_tile, shape_of

# Of a tile, for each thread.
_MOST_ELEMENTS = 2


def loads_before_slots(body: ir.Block, threads: int) -> None:
    """Moves loads of a loop's body, in place."""
    ops = list(body.operations)
    get = next((op for op in ops if op.operation.name == "warp.get"), None)
    if get is None:
        return
    behind = ops[ops.index(get) + 1 :]
    for op in behind:
        if not _is_little(op, threads):
            continue
        needed = _numbers_for(op, behind)
        if needed is None:
            continue
        for one in (*needed, op):
            one.operation.move_before(get.operation)


def _is_little(op: ir.OpView, threads: int) -> bool:
    access = rules()[op.operation.name].access(op)
    if access is None or access.tile not in list(op.results):
        return False
    if not is_tile(access.tile) or view_facts(access.view.type).own != "shared":
        return False
    return prod(shape_of(access.tile)) <= _MOST_ELEMENTS * threads


def _numbers_for(op: ir.OpView, behind: list[ir.OpView]) -> list[ir.OpView] | None:
    """What it needs of what stands behind the slot, in order; None if that is more than numbers."""
    needed: set[ir.Operation] = set()
    left = list(op.operands)
    later = {one.operation for one in behind}
    while left:
        owner = left.pop().owner
        if isinstance(owner, ir.Block) or owner.operation not in later:
            continue
        if owner.operation in needed:
            continue
        if not _is_number(owner.opview):
            return None
        needed.add(owner.operation)
        left += owner.opview.operands
    return [one for one in behind if one.operation in needed]


def _is_number(op: ir.OpView) -> bool:
    """Whether it computes numbers or views, from nothing else, wherever it stands."""
    if len(op.regions) or any(is_tile(value) for value in (*op.operands, *op.results)):
        return False
    declared = declarations().get(op.operation.name)
    if declared is not None:
        return declared.pure
    name: str = op.operation.name
    return name.startswith(("arith.", "memref."))
