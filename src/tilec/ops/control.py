"""Control flow: `scf.for`, `scf.while`, `scf.if`, calls of helpers."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ops.rules import Datum, Machine, OpRules


class _For(OpRules):
    name = "scf.for"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        lower, upper, step, *carried = operands
        block = op.regions[0].blocks[0]
        for number in range(int(lower), int(upper), int(step)):
            carried = machine.run(block, [lower.dtype.type(number), *carried])
        return carried


class _While(OpRules):
    name = "scf.while"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        before, after = (region.blocks[0] for region in op.regions)
        carried = list(operands)
        while True:
            # scf.condition hands over the condition, then what goes on.
            holds, *carried = machine.run(before, carried)
            if not holds:
                return carried
            carried = machine.run(after, carried)


class _If(OpRules):
    name = "scf.if"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        region = op.regions[0 if operands[0] else 1]
        return machine.run(region.blocks[0], []) if len(region.blocks) else []


class _Call(OpRules):
    name = "func.call"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return machine.call(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, operands)


class _Terminator(OpRules):
    """Hands its operands to the operation around it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return list(operands)


TERMINATORS = frozenset({"scf.yield", "scf.condition", "func.return", "linalg.yield"})

RULES: tuple[OpRules, ...] = (
    _For(),
    _While(),
    _If(),
    _Call(),
    *map(_Terminator, sorted(TERMINATORS)),
)
