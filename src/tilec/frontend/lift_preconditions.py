"""What launchers ask before a launch stands before everything that a program asks by itself.

A `requires!` after a guard is a precondition of the launch all the same: launchers evaluate it,
whatever the guard says. So what it is computed from is computed again before the guard, and no
check, proof or execution sees a precondition that only some programs, or some launches, come to.
What the guard says is not known there, and must not be: what follows from it holds of no launch.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.registry import rules

_Copies = dict[ir.Value, ir.Value]


def lift_preconditions(function: ir.OpView) -> None:
    """Move the preconditions of a kernel out of its guards, to before these.

    Assumes:  they are computed without effects, from arguments and other such values
    """
    [entry] = function.regions[0].blocks
    for guard in list(entry.operations):
        if guard.regions:
            _lift(guard)


def _lift(guard: ir.OpView) -> None:
    inside = list(operations(guard))
    stated = [op for op in inside if rules()[op.operation.name].precondition(op) is not None]
    if not stated:
        return
    made = {result: op for op in inside for result in op.results}
    copies: _Copies = {}
    for op in stated:
        _set_operands(op, {v: _before(v, guard, made, copies) for v in op.operands if v in made})
        op.operation.move_before(guard.operation)
    # What only preconditions asked for is not computed twice.
    for op in reversed([op for op in inside if any(result in copies for result in op.results)]):
        if not any(True for result in op.results for _ in result.uses):
            op.operation.erase()


def _before(
    value: ir.Value, guard: ir.OpView, made: dict[ir.Value, ir.OpView], copies: _Copies
) -> ir.Value:
    """The same value, which is made inside of the guard, made before it."""
    if value not in copies:
        op = made[value]
        within = list(operations(op))
        own = {result for inner in within for result in inner.results}
        used = {v: None for inner in (op, *within) for v in inner.operands if v not in own}
        outside = {v: _before(v, guard, made, copies) for v in used if v in made}
        copy = op.operation.clone(ir.InsertionPoint(guard.operation))
        for inner in (copy, *operations(copy)):
            _set_operands(inner, outside)
        copies.update(zip(op.results, copy.operation.results, strict=True))
    return copies[value]


def _set_operands(op: ir.OpView, instead: _Copies) -> None:
    for number, operand in enumerate(op.operands):
        if operand in instead:
            op.operands[number] = instead[operand]
