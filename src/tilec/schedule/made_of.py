"""What an operation that is moved ahead takes with it: the numbers that it is made of.

Loads begin before a loop of products (`ahead.py`), or before the wait for a slot
(`transforms/load_early.py`), and their indices stand where they stood.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ops.rules import is_tile


def made_of(
    op: ir.OpView, late: Sequence[ir.OpView], *, with_views: bool
) -> tuple[ir.OpView, ...] | None:
    """What an operation needs of those that stand late, in their order.

    None if that is more than numbers (`with_views`: and views of memory), which are the same
    wherever they are computed.
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
        if not _is_number(owner.opview, with_views=with_views):
            return None
        needed.add(owner.operation)
        left += owner.opview.operands
    return tuple(one for one in late if one.operation in needed)


def _is_number(op: ir.OpView, *, with_views: bool) -> bool:
    """Whether it computes numbers from nothing else, wherever it stands."""
    if len(op.regions) or any(is_tile(value) for value in (*op.operands, *op.results)):
        return False
    declared = declarations().get(op.operation.name)
    if declared is not None:
        return declared.pure
    name: str = op.operation.name
    return name.startswith(("arith.", "memref.") if with_views else "arith.")
