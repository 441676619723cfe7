"""The tiles that are held in registers around a loop, while it runs."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.ops.registry import rules


def held_across(function: ir.OpView, loop: ir.OpView) -> Iterator[ir.Value]:
    """The tiles that loops before this one left, or loops around it carry, for use after its start.

    A value that the loop only starts from is not among them: it becomes what the loop carries.
    """
    order = {op.operation: number for number, op in enumerate(operations(function))}
    start = order[loop.operation]
    inside = {op.operation for op in operations(loop)}
    last = start + len(inside)
    around = list(_around(loop))
    for other in operations(function):
        if not rules()[other.operation.name].loop or other.operation in inside or other == loop:
            continue
        if other.operation in around:
            values = [v for region in other.regions for v in region.blocks[0].arguments]
        elif order[other.operation] < start:
            values = list(other.results)
        else:
            continue
        for value in filter(is_tile, values):
            uses = (use.owner for use in value.uses)
            if any(u in inside or _follows(u, loop, order[u], last, around) for u in uses):
                yield value


def _around(op: ir.OpView) -> Iterator[ir.Operation]:
    parent = op.operation.parent
    while parent is not None and parent.operation.name != "func.func":
        yield parent.operation
        parent = parent.operation.parent


def _follows(
    user: ir.Operation, loop: ir.OpView, number: int, last: int, around: list[ir.Operation]
) -> bool:
    """Whether an operation runs after the loop: it is written later, and not in another branch."""
    if number <= last:
        return False
    common = next((op for op in _around(user.opview) if op in around), None)
    if common is None or rules()[common.name].loop:
        return True
    return bool(_branch_of(user, common) == _branch_of(loop.operation, common))


def _branch_of(op: ir.Operation, control: ir.Operation) -> ir.Block:
    """The block of a control operation that holds another operation."""
    while op.parent.operation != control:
        op = op.parent.operation
    return op.operation.block
