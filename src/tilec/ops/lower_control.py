"""Loops and branches over fragments: the same `scf` operations with the types that threads hold."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import nvvm, scf
from tilec.ops.lowering import RINGS, UNIFORM, WAITS, Lowered, Lowering
from tilec.ops.rules import Carried


def terminator_of(block: ir.Block) -> ir.OpView:
    """The last operation of a block."""
    return block.operations[len(block.operations) - 1]


def carried_by_for(op: ir.OpView) -> tuple[Carried, ...]:
    """Each loop variable: its initial value, its argument, what the body yields, the result."""
    [body] = op.regions[0].blocks
    yielded = terminator_of(body)
    return tuple(
        Carried(((op, 3 + n), (yielded, n)), (body.arguments[1 + n], result))
        for n, result in enumerate(op.results)
    )


def carried_by_if(op: ir.OpView) -> tuple[Carried, ...]:
    """Each result and what the two branches yield for it."""
    ends = [terminator_of(region.blocks[0]) for region in op.regions if len(region.blocks)]
    return tuple(
        Carried(tuple((end, n) for end in ends), (result,)) for n, result in enumerate(op.results)
    )


def carried_by_while(op: ir.OpView) -> tuple[Carried, ...]:
    """What the condition sees, and what it hands on to the body and to the results."""
    before, after = (region.blocks[0] for region in op.regions)
    condition, yielded = terminator_of(before), terminator_of(after)
    seen = (
        Carried(((op, n), (yielded, n)), (argument,)) for n, argument in enumerate(before.arguments)
    )
    handed = (
        Carried(((condition, 1 + n),), (argument, op.results[n]))
        for n, argument in enumerate(after.arguments)
    )
    return (*seen, *handed)


def lower_for(op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering) -> list[ir.Value]:
    """`scf.for` over fragments."""
    lower, upper, step, *initial = operands
    [body] = op.regions[0].blocks
    loop = scf.ForOp(lower, upper, step, list(initial))
    _uniform(loop)
    if RINGS in op.attributes:
        loop.attributes[RINGS] = op.attributes[RINGS]
    with ir.InsertionPoint(loop.body), lowering.in_loop():
        yielded = lowering.emit(body, list(loop.body.arguments))
        scf.yield_(yielded)
    if WAITS in op.attributes:
        nvvm.cp_async_wait_group(0)
    return list(loop.results)


def lower_if(op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering) -> list[ir.Value]:
    """`scf.if` over fragments.

    The condition is one for the whole program, so that barriers inside are met by all threads.
    """
    types = [lowering.type_of(result.type) for result in op.results]
    has_else = len(op.regions[1].blocks) > 0
    branch = scf.IfOp(operands[0], types, has_else=has_else)
    _uniform(branch)
    blocks = [branch.then_block] + ([branch.else_block] if has_else else [])
    for region, block in zip(op.regions, blocks, strict=False):
        with ir.InsertionPoint(block):
            scf.yield_(lowering.emit(region.blocks[0], []))
    return list(branch.results)


def lower_while(op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering) -> list[ir.Value]:
    """`scf.while` over fragments."""
    before, after = (region.blocks[0] for region in op.regions)
    results = [lowering.type_of(result.type) for result in op.results]
    loop = scf.WhileOp(results, list(operands))
    _uniform(loop)
    locations = [op.location] * len(operands)
    first = loop.before.blocks.append(
        *[v.type for v in operands if isinstance(v, ir.Value)], arg_locs=locations
    )
    second = loop.after.blocks.append(*results, arg_locs=[op.location] * len(results))
    with ir.InsertionPoint(first), lowering.in_loop():
        condition, *handed = lowering.emit(before, list(first.arguments))
        scf.condition(condition, handed)
    with ir.InsertionPoint(second), lowering.in_loop():
        scf.yield_(lowering.emit(after, list(second.arguments)))
    return list(loop.results)


def _uniform(op: ir.OpView) -> None:
    """Tell that all threads of the block take the same way, so that barriers may stand inside."""
    op.attributes[UNIFORM] = ir.UnitAttr.get()
