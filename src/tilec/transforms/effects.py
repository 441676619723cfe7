"""What our own passes may do with operations of our dialects, which MLIR knows nothing of.

MLIR's canonicalize, cse and licm leave IRDL operations alone (they have no traits and no effects);
what may be removed, merged or moved follows from the declarations in `dialects/`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.dialect import Declaration, declarations
from tilec.ir.types import view_facts
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules


def is_removable(op: ir.OpView) -> bool:
    """Whether nobody misses it once its results are unused: loads too, which only read.

    A part that nobody uses still says what the grid is.
    """
    name = op.operation.name
    declared = declarations().get(name)
    if declared is None or declared.writes or declared.updates:
        return False
    if type(rules()[name]).host_grid is not OpRules.host_grid:
        return False
    return declared.pure or bool(declared.reads)


def is_movable(op: ir.OpView) -> bool:
    """Whether it gives the same anywhere: pure, or a read of what nobody writes.

    A shared tensor overlaps nothing that the launch writes, and loads are total, so that they may
    run where they did not run before; `unchecked` ones may not. What updates atomically stays where
    it is, a load too: another program may write between two of them.
    """
    declared = declarations().get(op.operation.name)
    if declared is None or declared.writes or declared.updates:
        return False
    if len(op.operation.regions):
        return False  # a combiner may use more than the operands
    if declared.pure:
        return True
    reads_shared = bool(declared.reads) and all(
        view_facts(view.type).own == "shared" for view in _read_views(op, declared)
    )
    return reads_shared and "unchecked" not in op.operation.attributes


def _read_views(op: ir.OpView, declared: Declaration) -> Iterator[ir.Value]:
    for name in declared.reads:
        # What is read stands before everything variadic, so its place is its number.
        yield op.operands[declared.operands.index(name)]


def blocks_of(op: ir.OpView) -> Iterator[ir.Block]:
    """The blocks of an operation's regions."""
    for region in op.operation.regions:
        yield from region.blocks
