"""Buffers become addresses.

Before:   `warp.alloc {bytes, offset}`
After:    `llvm.mlir.addressof` of the block's shared memory, plus the offset, of the thread's team
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import arith, llvm
from tilec.ops.fragments import byte_offset, i32
from tilec.ops.lowering import team_around, team_number
from tilec.shared_memory.accesses import ALLOC, Alloc, Branch, Buffer, Loop, Skeleton


def resolve(skeleton: Skeleton, symbol: str) -> None:
    """Rewrite the function that the skeleton was read from; `symbol` is where buffers live."""
    for node in skeleton:
        match node:
            case Alloc(buffer):
                _replace(buffer, symbol)
            case Branch(_, parts) | Loop(_, parts):
                for part in parts:
                    resolve(part, symbol)


def _replace(buffer: Buffer, symbol: str) -> None:
    op, offset = buffer.op, buffer.offset
    assert op.operation.name == ALLOC
    pointer = op.results[0].type
    with op.location, ir.InsertionPoint(op):
        address = llvm.mlir_addressof(pointer, ir.FlatSymbolRefAttr.get(symbol))
        if buffer.team_bytes:
            team = team_around(op)
            assert team is not None, "a team has it"
            further = arith.muli(team_number(team.threads), i32(buffer.team_bytes))
            address = byte_offset(address, further)
        if offset:
            byte = ir.IntegerType.get_signless(8)
            steps = ir.DenseI32ArrayAttr.get([offset])
            address = llvm.getelementptr(pointer, address, [], steps, byte, None)
    op.results[0].replace_all_uses_with(address)
    op.operation.erase()
