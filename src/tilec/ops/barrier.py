"""`tile.barrier`: what the program did to memory is done before it goes on."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import Datum, Machine, OpRules


class _Barrier(OpRules):
    """Orders threads; the program as a whole does one thing after another anyway."""

    name = "tile.barrier"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return []

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        lowering.barrier()
        return []


RULES: tuple[OpRules, ...] = (_Barrier(),)
