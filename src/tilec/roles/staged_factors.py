"""Factors that math warps write to shared memory for products to read, and what orders that.

Before:   a product of a value that is computed; its block is a copy of the program
After:    the value is written where it is made, and shown; the warps meet before the product

    two places              one place
    b = …                   b = …
                            drain 0; join_warps   # nobody reads the place any more
    m = write b; show       m = write b; show
    drain 0                                       # these warps do not read the place before
    a = …                   a = …
    join_warps              join_warps            # all have written, and know of the drains
    dot a m                 dot a m

With two places what the next turn multiplies is computed and written beside the products of this
one. What the first factor is computed of is read as late as can be, since its registers may only be
made when no product reads them.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.effects import only_computes
from tilec.ops.build import integer, integer_list
from tilec.ops.staged_factor import written_type
from tilec.schedule.products import Staged


class StagedFactors:
    """The staged factors of one role; `buffers` by the number of a product."""

    def __init__(self, buffers: dict[int, ir.Value], places: int) -> None:
        self._buffers = buffers
        self._places = places
        self._written: dict[ir.Value, ir.Operation] = {}

    def tile_of(self, factor: Staged, number: int, product: ir.OpView) -> ir.Value:
        """The memory that a product reads its second factor from, written and shown before it."""
        value = product.operands[1]
        if value in self._written:
            return self._written[value].results[0]
        block, first = _where_made(value)
        with product.location, ir.InsertionPoint(first):
            if self._places == 1:
                drain(0)
                ir.Operation.create("warp.join_warps")
            written = ir.Operation.create(
                "warp.write",
                results=[written_type(self._buffers[number])],
                operands=[self._buffers[number], value],
                attributes={"axes": integer_list(factor.axes)},
            )
            ir.Operation.create("warp.show")
        self._written[value] = written
        is_here = block == product.operation.block
        with product.location, ir.InsertionPoint(product if is_here else first):
            waits = drain(0) if self._places > 1 else None
            meeting = ir.Operation.create("warp.join_warps")
        if is_here:
            last = waits or written
            _sink(product, meeting, behind=last)
        return written.results[0]


def drain(pending: int) -> ir.Operation:
    return ir.Operation.create("warp.drain", attributes={"pending": integer(pending)})


def _where_made(value: ir.Value) -> tuple[ir.Block, ir.Operation]:
    """The block in which a value is made, and the operation there before which it is known."""
    if isinstance(value.owner, ir.Block):
        return value.owner, value.owner.operations[0].operation
    block = value.owner.operation.block
    ops = list(block.operations)
    return block, ops[ops.index(value.owner.opview) + 1].operation


def _sink(product: ir.OpView, before: ir.Operation, behind: ir.Operation) -> None:
    """Moves what only the registers of a product's first factor are computed by to `before`."""
    block = product.operation.block
    ops = [op.operation for op in block.operations]
    at = ops.index(product.operation)
    kept = set(ops[at:])
    sunk: list[ir.Operation] = []
    needed = {product.operands[0]}
    for op in reversed(ops[: ops.index(behind)]):
        users = [_in_block(use.owner, block) for result in op.results for use in result.uses]
        wanted = any(result in needed for result in op.results)
        if wanted and only_computes(op.opview) and all(user in kept for user in users):
            kept.add(op)
            sunk.append(op)
            needed.update(op.operands)
    for op in reversed(sunk):
        op.move_before(before)


def _in_block(op: ir.OpView, block: ir.Block) -> ir.Operation | None:
    """The operation of a block that another one is, or is inside of."""
    here: ir.Operation | None = op.operation
    while here is not None and here.block != block:
        here = here.parent
    return here
