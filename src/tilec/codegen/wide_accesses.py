"""Whether a kernel gains anything from accesses to memory that are wider than an element.

A variant that asks for aligned tensors costs a build as much as the one that asks nothing: layouts,
LLVM and ptxas all go over it. What it saves are instructions of accesses, at most one for each
element. Where hundreds of operations stand beside each access, that is a small part of the
instructions, and it is just there that code is long.
"""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.ir.types import is_tile
from tilec.ops.registry import rules
from tilec.ops.rules import shape_of

# Operations on tiles for each access of their block, from which on its width does not matter: an
# operation takes an instruction for each element, as an access to single elements does.
_LOST_AMONG = 256


def gains_by_wide_accesses(function: ir.OpView) -> bool:
    """Whether any block of the function has few operations for its accesses, or any products.

    Accesses to single elements are as wide as they get. Each block is looked at by itself, so a
    loop that reads much counts beside long code before it.
    """
    [block] = function.regions[0].blocks
    return _gains(block)


def _gains(block: ir.Block) -> bool:
    accesses = others = 0
    for op in block.operations:
        rule = rules()[op.operation.name]
        if rule.control:
            if any(_gains(inner) for region in op.regions for inner in region.blocks):
                return True
        elif rule.multiplied(op) is not None:
            return True  # factors that hardware copies are aligned
        elif tiles := [value for value in (*op.operands, *op.results) if is_tile(value)]:
            if any(isinstance(operand.type, ir.MemRefType) for operand in op.operands):
                accesses += any(prod(shape_of(tile)) > 1 for tile in tiles)
            elif not rule.constant:
                others += 1
    return accesses > 0 and others < _LOST_AMONG * accesses
