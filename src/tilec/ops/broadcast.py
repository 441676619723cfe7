"""`broadcast::<…>()`: axes of extent 1 stretched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.layout import Layout, dropped
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import broadcast_along, spread
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.encoding import layout_of
from tilec.ops.facts import do_count
from tilec.ops.formats import shape_of
from tilec.ops.fragments import certain, select_registers
from tilec.ops.linear import Linear
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.pending import selected
from tilec.ops.rules import Data, DataOf, Datum, Machine, OpRules, Places, Placing
from tilec.types import TileType, Type


class _Broadcast(Operation):
    name = "broadcast"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "t.broadcast::<…>()"
    summary = "Axes of extent 1 (or a scalar) stretched to these extents."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, None)
        tile = uses.expect_tile(call, 0)
        shape = uses.extents(call)
        if not tile.is_scalar and not _stretches(tile.shape, shape):
            help = "add an axis with `.expand::<AXIS>()`" if tile.rank != len(shape) else None
            raise uses.refuse(
                "E0301",
                f"{uses.shape_text(tile.shape)} does not stretch to {uses.shape_text(shape)}",
                Label(call.name_span),
                Label(call.arguments[0].span, f"this is `{tile}`"),
                help=help,
            )
        return TileType(tile.element, shape)

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        return spread(emission.operands[0], element_in(emission.result), emission.result.shape)


def _stretches(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(own) == len(shape) and all(
        old in (1, new) for old, new in zip(own, shape, strict=True)
    )


OPERATIONS: tuple[Operation, ...] = (_Broadcast(),)


class _LinalgBroadcast(OpRules):
    name = "linalg.broadcast"
    flexible = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        axes = tuple(op.attributes["dimensions"])
        return [np.broadcast_to(np.expand_dims(operands[0], axes), shape_of(op.results[0].type))]

    def counts(self, op: ir.OpView) -> bool:
        return do_count(op.operands[0])

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        return operands[0]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        mask = data_of(op.operands[0])
        if isinstance(mask, Data):
            return mask
        result = ir.RankedTensorType.get(shape_of(op.results[0].type), mask.type.element_type)
        return broadcast_along(mask, result, list(op.attributes["dimensions"]))

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        return Places((None,) * len(known), (None,))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        return (dropped(wanted, *op.attributes["dimensions"]).layout, wanted)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        view = dropped(layout_of(op.results[0].type), *op.attributes["dimensions"])
        assert view.layout == layout_of(op.operands[0].type), "`serve` asked for this layout"
        return [select_registers(operands[0], certain(view.to_new))]

    def may_wait(self, op: ir.OpView) -> bool:
        return True

    def pending(self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering) -> Lowered:
        view = dropped(layout_of(op.results[0].type), *op.attributes["dimensions"])
        return selected(operands[0], certain(view.to_new))


RULES: tuple[OpRules, ...] = (_LinalgBroadcast(),)
