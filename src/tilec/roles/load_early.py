"""What math warps load by themselves in a turn is on its way before they wait for a slot.

Before:   s = get; r = read s; x = load t k; …
After:    x = load t k; s = get; r = read s; …

Only what is little is held for so long. Threads would else wait for memory in each turn, where
nothing of theirs goes on.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.ir.types import is_tile, view_facts
from tilec.ops.registry import rules
from tilec.ops.rules import shape_of
from tilec.schedule.made_of import made_of

# Of a tile, for each thread.
_MOST_ELEMENTS = 2


def loads_before_slots(body: ir.Block, threads: int) -> None:
    """Moves loads of a loop's body, in place."""
    ops = list(body.operations)
    get = next((op for op in ops if op.operation.name == "warp.get"), None)
    if get is None:
        return
    late = ops[ops.index(get) :]
    for op in late[1:]:
        if not _is_little(op, threads):
            continue
        needed = made_of(op, late)
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
