"""`t.at([…])`, `t.item()`: one element of a tile, as a scalar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.layout import Layout
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import chosen, compared, constant, make, shape_of
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.encoding import layout_of
from tilec.ops.indices import index_values
from tilec.ops.lower_layout import lower_extract
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import Datum, Machine, OpRules, Places, Placing
from tilec.types import USIZE, TileType, Type


def sole_element(tile: ir.Value) -> ir.Value:
    """The element of a tile that has one."""
    zero = constant(USIZE, 0)
    return _extracted(tile, [zero] * len(shape_of(tile)))


def _extracted(tile: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    element = ir.RankedTensorType(tile.type).element_type
    return make("tensor.extract", element, tile, *indices)


class _Item(Operation):
    name = "item"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "t.item()"
    summary = "The one element of a tile, as a scalar."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1)
        tile = uses.expect_tile(call, 0)
        if any(extent != 1 for extent in tile.shape):
            message = f"`item` takes a tile of one element, got `{tile}`"
            raise uses.refuse("E0301", message, Label(call.arguments[0].span))
        return TileType(tile.element)

    def emit(self, emission: Emission) -> ir.Value:
        [tile] = emission.operands
        return sole_element(tile) if shape_of(tile) else tile


class _At(Operation):
    name = "at"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "t.at([i, …])"
    summary = "The element at an index, as a scalar; outside the tile zero."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2)
        tile = uses.expect_tile(call, 0)
        indices = uses.index_types(call, 1)
        if len(indices) != tile.rank:
            raise uses.refuse(
                "E0303",
                f"expected {tile.rank} indices, got {len(indices)}",
                Label(call.arguments[1].span),
                Label(call.arguments[0].span, f"this is `{tile}`"),
            )
        return TileType(tile.element)

    def emit(self, emission: Emission) -> ir.Value:
        tile = emission.operands[0]
        indices = index_values(emission, 1)
        if not indices:
            return tile
        inside, safe = _clamped(indices, shape_of(tile))
        zero = constant(element_in(emission.result), 0)
        return chosen(inside, _extracted(tile, safe), zero)


def _clamped(indices: Sequence[ir.Value], shape: Sequence[int]) -> tuple[ir.Value, list[ir.Value]]:
    """Whether all indices are inside, and indices that are, equal where they were."""
    all_inside: ir.Value | None = None
    safe = []
    for index, extent in zip(indices, shape, strict=True):
        # As unsigned numbers, negative indices are beyond any extent.
        inside = compared("ult", index, constant(USIZE, extent))
        safe.append(chosen(inside, index, constant(USIZE, 0)))
        if all_inside is None:
            all_inside = inside
        else:
            all_inside = make("arith.andi", inside.type, all_inside, inside)
    return all_inside, safe


OPERATIONS: tuple[Operation, ...] = (_Item(), _At())


class _Extract(OpRules):
    name = "tensor.extract"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        tile, *indices = operands
        return [tile[tuple(int(i) for i in indices)]]

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        layout = known[0] or placing.default(shape_of(op.operands[0]))
        return Places((layout, *[None] * (len(known) - 1)), (None,))

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        tile, *indices = operands
        return [lower_extract(layout_of(op.operands[0].type), tile, indices, lowering)]


class _FromElements(OpRules):
    """`tensor.from_elements`, which folding may leave."""

    name = "tensor.from_elements"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        shape = tuple(op.results[0].type.shape)
        return [np.stack([np.asarray(x) for x in operands]).reshape(shape)]


RULES: tuple[OpRules, ...] = (_Extract(), _FromElements())
