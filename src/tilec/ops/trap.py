"""`tile.trap_unless`: what must hold in a checked build, or the launch ends and says where.

On a GPU it is CUDA's own assertion, as MLIR lowers it: the driver prints file, line, kernel,
program and thread, and every later call of the process fails with CUDA_ERROR_ASSERT.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from mlir import ir

from tilec.ir.dialects import arith, cf, llvm, scf
from tilec.ir.types import is_tile
from tilec.ops.fragments import i32, unpack
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import Datum, Machine, OpRules


class _TrapUnless(OpRules):
    name = "tile.trap_unless"
    ends_launch = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        if not np.all(operands[0]):
            machine.fail(op, f"does not hold: {_text(op)}")
        return []

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [condition] = operands
        if is_tile(op.operands[0]):
            _assert(reduce(arith.andi, unpack(condition)), _text(op))
            return []
        # The same in all threads: one speaks for the program. The others end before they do what
        # the condition protects from, whose error would hide this one.
        is_other = arith.cmpi(arith.CmpIPredicate.ne, lowering.thread, i32(0))
        _assert(arith.ori(condition, is_other), _text(op))
        fails = arith.xori(condition, arith.constant(ir.IntegerType.get_signless(1), 1))
        with ir.InsertionPoint(scf.IfOp(fails).then_block):
            llvm.inline_asm(None, [], "exit;", "", has_side_effects=True)
            scf.yield_([])
        return []


def _text(op: ir.OpView) -> str:
    return str(ir.StringAttr(op.attributes["text"]).value)


def _assert(condition: ir.Value, text: str) -> None:
    # MLIR takes the function from a name that the location has.
    with ir.Location.name(_function(), ir.Location.current):
        cf.assert_(condition, text)


def _function() -> str:
    """The symbol of the function that is being emitted."""
    op = ir.InsertionPoint.current.block.owner
    while op.operation.name != "llvm.func":
        op = op.operation.parent
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


RULES: tuple[OpRules, ...] = (_TrapUnless(),)
