"""`tile.layout`: the same tile, held by the threads in another way."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.layout.conversion import plan_conversion
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import bit_width
from tilec.ops.instruction_set import has_stmatrix
from tilec.ops.lower_layout import lower_conversion
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.pieces import fits_at_once
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
        size = bit_width(ir.VectorType(fragment.type).element_type) // 8
        is_whole = fits_at_once(prod(source.shape) * size)
        plan = plan_conversion(
            source,
            target,
            size,
            has_stmatrix=has_stmatrix() and is_whole,
            has_ldmatrix=is_whole,
        )
        return [lower_conversion(plan, fragment, lowering)]


RULES: tuple[OpRules, ...] = (_Layout(),)
