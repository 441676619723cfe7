"""What roles do beside their own work where blocks work in clusters."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.dialects import scf
from tilec.ir.walk import operations
from tilec.schedule.plan import Schedule


def close_shared(schedule: Schedule, channels: Sequence[ir.Value], loader: ir.Block) -> None:
    """The loader waits at its end until nobody arrives at what the blocks share any more."""
    with ir.InsertionPoint(loader):
        for channel, made in zip(schedule.channels, channels, strict=True):
            if channel.shared:
                ir.Operation.create("warp.close", operands=[made])


def guard_writes(block: ir.Block) -> None:
    """Only the block whose program it is writes to memory.

    Before:   the math warps' operations for one program, which `warp.program` has named
    After:    each operation that writes is in a branch of its own
    """
    for op in list(block.operations):
        if op.operation.name == "warp.program":
            with op.location, ir.InsertionPoint.after(op.operation):
                bit = ir.IntegerType.get_signless(1)
                is_program = ir.Operation.create("warp.is_program", results=[bit]).results[0]
        for inner in (op, *operations(op)):
            if _writes(inner):
                _guard(inner, is_program)


def _writes(op: ir.OpView) -> bool:
    declared = declarations().get(op.operation.name)
    return declared is not None and bool(declared.writes or declared.updates)


def _guard(op: ir.OpView, condition: ir.Value) -> None:
    unused = not any(len(list(result.uses)) for result in op.results)
    assert unused, f"{op.operation.name} gives what it finds"
    with op.location, ir.InsertionPoint(op):
        branch = scf.IfOp(condition)
        with ir.InsertionPoint(branch.then_block):
            end = scf.yield_([])
    op.operation.move_before(end)
