"""`tile.layout`: the same tile, held by the threads in another way."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ops.encoding import layout_of
from tilec.ops.lower_layout import lower_conversion
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import Datum, Machine, OpRules


class _Layout(OpRules):
    """A change of layout: nothing, as far as the program can tell."""

    name = "tile.layout"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [operands[0]]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        source, target = layout_of(op.operands[0].type), layout_of(op.results[0].type)
        [fragment] = operands
        assert isinstance(fragment, ir.Value), "a tile is held as a fragment"
        return [lower_conversion(source, target, fragment, lowering)]


RULES: tuple[OpRules, ...] = (_Layout(),)
