"""What the two roles are made by: marks on what a schedule names, and some operations."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.types import is_tile, shared_memory_type
from tilec.ops.build import integer, integer_list
from tilec.ops.fragments import in_memory
from tilec.ops.registry import rules
from tilec.ops.send import SENT, Sending
from tilec.schedule.plan import Schedule
from tilec.schedule.products import Computed, Copied, Staged

# What a copy or a product of the schedule is called in the copies of its block.
LOAD, PRODUCT = "warp.load", "warp.product"


def mark(schedule: Schedule) -> None:
    """Mark loads by channel, fill and place in it, products by number, stores by how they go."""
    for number, channel in enumerate(schedule.channels):
        for fill, loads in enumerate(channel.fills):
            for place, copied in enumerate(loads):
                copied.load.attributes[LOAD] = integer_list((number, fill, place))
    for number, product in enumerate(schedule.products):
        product.op.attributes[PRODUCT] = integer(number)
    for result in schedule.results:
        result.op.attributes[SENT] = Sending(schedule.results_by, result.param).attribute()


def mark_of(op: ir.OpView) -> tuple[int, int, int] | None:
    """The channel of a load, its fill, and its place there; None for anything else."""
    if LOAD not in op.attributes:
        return None
    channel, fill, place = (ir.IntegerAttr(n).value for n in ir.ArrayAttr(op.attributes[LOAD]))
    return channel, fill, place


def reads_of(schedule: Schedule) -> set[tuple[int, int]]:
    """What the math warps read into registers, by channel and place in it.

    Assumes:  the operations that the schedule names are still there
    """
    factors = (factor for one in schedule.products for factor in (one.a, one.b))
    computed = (factor for factor in factors if isinstance(factor, Computed | Staged))
    sources = {source for factor in computed for source in factor.sources}
    return {
        (number, place)
        for number, channel in enumerate(schedule.channels)
        for loads in channel.fills
        for place, copied in enumerate(loads)
        if copied in sources
    }


def takes_held(product: ir.OpView) -> bool:
    """Whether a `warp.dot` takes its first factor from registers."""
    return is_tile(product.operands[0])


def remade(product: ir.OpView) -> ir.Operation | None:
    """The operation after a `warp.dot` that overwrites the registers of its operand A for the next
    iteration; None if no loop carries that operand.

    The product must be done before.
    """
    factor = product.operands[0]
    if not takes_held(product) or not isinstance(factor.owner, ir.Block):
        return None
    block, loop = factor.owner, factor.owner.owner
    if loop.name != "scf.for" or block != product.operation.block:
        return None
    handed = list(block.operations)[-1].operands[factor.arg_number - 1]
    if isinstance(handed.owner, ir.Block) or handed.owner.operation.block != block:
        return None
    listed = list(block.operations)
    is_after = listed.index(handed.owner.opview) > listed.index(product)
    return handed.owner.operation if is_after else None


def first_made(products: Sequence[ir.OpView], behind: ir.OpView | None = None) -> ir.OpView:
    """The first operation of their block that computes what products take from registers, behind
    another one.

    Loads of theirs may begin before.
    """
    block, ops = products[0].operation.block, {op.operation for op in products}
    left = [op.operands[0] for op in products]
    while left:
        owner = left.pop().owner
        if isinstance(owner, ir.Block):
            continue
        maker = owner.operation
        if maker.block != block or maker in ops:
            continue
        if rules()[maker.name].access(maker.opview) is None:
            ops.add(maker)
        left += (value for value in maker.operands if is_tile(value))
    listed = list(block.operations)
    start = 0 if behind is None else listed.index(behind) + 1
    return next(op for op in listed[start:] if op.operation in ops)


def is_scalar(op: ir.OpView) -> bool:
    """Whether it only computes numbers and views, or says what the launcher is to know."""
    if any(is_tile(value) for value in (*op.operands, *op.results)):
        return False
    declared = declarations().get(op.operation.name)
    return declared is None or not (declared.reads or declared.writes or declared.updates)


def made(name: str, operands: Sequence[ir.Value], kind: str) -> ir.Value:
    """The one result, of a type by its text, of an operation that is created here."""
    op = ir.Operation.create(name, results=[ir.Type.parse(kind)], operands=list(operands))
    return op.results[0]


def memory_of(load: Copied) -> ir.Type:
    """The type of its tile in a slot."""
    return shared_memory_type(load.tile.shape, load.element)


def memory_of_staged(factor: Staged) -> ir.Type:
    """The type of a factor as threads write it."""
    element = ir.RankedTensorType(factor.value.type).element_type
    # tf32 is a number of 32 bits there.
    return shared_memory_type(factor.tile.shape, in_memory(element))
