"""What an operation that is moved ahead takes with it: the numbers that it is made of.

Loads begin before a loop of products (`ahead.py`), or before the wait for a slot
(`roles/load_early.py`), and their indices stand where they stood.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.effects import computes_numbers


def made_of(op: ir.OpView, late: Sequence[ir.OpView]) -> tuple[ir.OpView, ...] | None:
    """What an operation needs of those that stand late, in their order.

    None if that is more than numbers and views, which are the same wherever they are computed.
    """
    standing = {one.operation for one in late}
    needed: set[ir.Operation] = set()
    left = list(op.operands)
    while left:
        owner = left.pop().owner
        if isinstance(owner, ir.Block) or owner.operation not in standing:
            continue
        if owner.operation in needed:
            continue
        if len(owner.regions) or not computes_numbers(owner.opview):
            return None
        needed.add(owner.operation)
        left += owner.opview.operands
    return tuple(one for one in late if one.operation in needed)
