"""`tile.element`: one element of a tensor that the kernel only reads, as a number."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.layout import blocked
from tilec.ops.access import first_element
from tilec.ops.between_threads import from_memory
from tilec.ops.bounds import bounds_of
from tilec.ops.fragments import in_registers, zero
from tilec.ops.lower_access import lower_load
from tilec.ops.lowering import Lowered, Lowering, View
from tilec.ops.rules import Datum, Machine, OpRules
from tilec.ops.thread_access import Access


class _Element(OpRules):
    name = "tile.element"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        view, *indices = operands
        shape = (1,) * len(indices)
        tile = view.read(first_element(op, shape, indices), shape, None, op)
        return [tile.reshape(())]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        view, *indices = operands
        assert isinstance(view, View)
        shape = (1,) * len(indices)
        # Every thread that asks reads it for itself.
        layout = blocked(shape, lowering.warps, tuple(reversed(range(len(shape)))))
        unit = ir.StringAttr(op.attributes["unit"]).value
        here = Access(lowering, view, layout, shape, indices, unit, bounds_of(op))
        loaded = lower_load(here, zero(here.element))
        return [from_memory(loaded[0], in_registers(view.element))]


RULES: tuple[OpRules, ...] = (_Element(),)
