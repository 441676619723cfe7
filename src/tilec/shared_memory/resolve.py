"""Buffers become addresses.

Before:   `warp.alloc {bytes, offset}`
After:    `llvm.mlir.addressof` of the block's shared memory, plus the offset
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import llvm
from tilec.shared_memory.accesses import ALLOC, Alloc, Branch, Loop, Skeleton


def resolve(skeleton: Skeleton, symbol: str) -> None:
    """Rewrite the function that the skeleton was read from; `symbol` is where buffers live."""
    for node in skeleton:
        match node:
            case Alloc(buffer):
                _replace(buffer.op, buffer.offset, symbol)
            case Branch(_, parts) | Loop(_, parts):
                for part in parts:
                    resolve(part, symbol)


def _replace(op: ir.OpView, offset: int, symbol: str) -> None:
    assert op.operation.name == ALLOC
    pointer = op.results[0].type
    with op.location, ir.InsertionPoint(op):
        address = llvm.mlir_addressof(pointer, ir.FlatSymbolRefAttr.get(symbol))
        if offset:
            byte = ir.IntegerType.get_signless(8)
            steps = ir.DenseI32ArrayAttr.get([offset])
            address = llvm.getelementptr(pointer, address, [], steps, byte, None)
    op.results[0].replace_all_uses_with(address)
    op.operation.erase()
