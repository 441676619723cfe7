"""`reshape`, `expand`, `squeeze`: the same elements in the same order under another shape."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import prod

from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.layout import Layout, views
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import regroup, shape_of, spread
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.encoding import layout_of
from tilec.ops.extract import sole_element
from tilec.ops.facts import do_count
from tilec.ops.formats import shape_of as extents_of
from tilec.ops.fragments import certain, pack, select_registers, unpack
from tilec.ops.linear import Linear
from tilec.ops.lower_layout import through_rows
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.pending import selected
from tilec.ops.rules import Data, DataOf, Datum, Machine, OpRules, Places, Placing
from tilec.types import BOOL, Element, TileType, Type


def reshaped(value: ir.Value, element: Element, shape: tuple[int, ...]) -> ir.Value:
    """A tile or scalar under another shape of as many elements; a rank-0 tile is a scalar."""
    if shape_of(value) == shape:
        return value
    if not shape_of(value):
        return spread(value, element, shape)
    if not shape:
        return sole_element(value)
    return regroup(value, element, shape)


class _Regroup(Operation):
    form = Form.METHOD
    receiver = Receiver.TILE

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, None)
        tile = uses.expect_tile(call, 0)
        return TileType(tile.element, self.shape(call, tile))

    @abstractmethod
    def shape(self, call: Call, tile: TileType) -> tuple[int, ...]:
        """The extents of the result."""

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        [value] = emission.operands
        return reshaped(value, element_in(emission.result), emission.result.shape)


class _Reshape(_Regroup):
    name = "reshape"
    signature = "t.reshape::<…>()"
    summary = "The same elements in row-major order under other extents."

    def shape(self, call: Call, tile: TileType) -> tuple[int, ...]:
        shape = uses.extents(call)
        if prod(shape) != prod(tile.shape):
            raise uses.refuse(
                "E0301",
                f"{uses.shape_text(tile.shape)} has {prod(tile.shape)} elements,"
                f" {uses.shape_text(shape)} has {prod(shape)}",
                Label(call.name_span),
                Label(call.arguments[0].span, f"this is `{tile}`"),
            )
        return shape


class _Expand(_Regroup):
    name = "expand"
    signature = "t.expand::<AXIS>()"
    summary = "A new axis of extent 1, which becomes the axis AXIS."

    def shape(self, call: Call, tile: TileType) -> tuple[int, ...]:
        uses.expect_counts(call, 1, 1)
        uses.expect_rank(tile.rank + 1, call.name_span)
        axis = uses.axis(call, tile.rank + 1)
        return (*tile.shape[:axis], 1, *tile.shape[axis:])


class _Squeeze(_Regroup):
    name = "squeeze"
    signature = "t.squeeze::<AXIS>()"
    summary = "Without the axis AXIS, whose extent is 1."

    def shape(self, call: Call, tile: TileType) -> tuple[int, ...]:
        uses.expect_counts(call, 1, 1)
        axis = uses.axis(call, tile.rank)
        if tile.shape[axis] != 1:
            raise uses.refuse(
                "E0301",
                f"`squeeze` takes an axis of extent 1, got extent {tile.shape[axis]}",
                Label(call.generic_spans[0]),
                Label(call.arguments[0].span, f"this is `{tile}`"),
            )
        return (*tile.shape[:axis], *tile.shape[axis + 1 :])


OPERATIONS: tuple[Operation, ...] = (_Reshape(), _Expand(), _Squeeze())


class _SameOrder(OpRules):
    """Registers keep their elements where a layout of the other shape can say so."""

    flexible = True

    def __init__(self, name: str) -> None:
        self.name = name

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [operands[0].reshape(extents_of(op.results[0].type))]

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        return operands[0]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        mask = data_of(op.operands[0])
        if isinstance(mask, Data):
            return mask
        return regroup(mask, BOOL, extents_of(op.results[0].type))

    def counts(self, op: ir.OpView) -> bool:
        return self.moved_axes(op) is not None and do_count(op.operands[0])

    def moved_axes(self, op: ir.OpView) -> tuple[int | None, ...] | None:
        before, after = (extents_of(v.type) for v in (op.operands[0], op.results[0]))
        long = [axis for axis, extent in enumerate(before) if extent != 1]
        if [before[axis] for axis in long] != [extent for extent in after if extent != 1]:
            return None
        rest = iter(long)
        return tuple(None if extent == 1 else next(rest) for extent in after)

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        if known[0] is None:
            return Places((None,) * len(known), (None,))
        view = views.reshaped(known[0], extents_of(op.results[0].type))
        return Places((None,) * len(known), (view.layout if view else None,))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        shape = extents_of(op.operands[0].type)
        view = views.reshaped(wanted, shape)
        layout = view.layout if view else placing.default(shape)
        return (layout, *[None] * (len(op.operands) - 1))

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        source, target = layout_of(op.operands[0].type), layout_of(op.results[0].type)
        view = self._view(op)
        if view is not None:
            assert view.layout == source, "`serve` asked for this layout"
            return [select_registers(operands[0], certain(view.to_new))]
        return [pack(through_rows(source, target, unpack(operands[0]), lowering))]

    def may_wait(self, op: ir.OpView) -> bool:
        return self._view(op) is not None

    def pending(self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering) -> Lowered:
        view = self._view(op)
        assert view is not None, "it may wait"
        return selected(operands[0], certain(view.to_new))

    def _view(self, op: ir.OpView) -> views.View | None:
        """The result as another view of what the operand's threads have, where it is one."""
        source, target = layout_of(op.operands[0].type), layout_of(op.results[0].type)
        return views.reshaped(target, source.shape)


RULES: tuple[OpRules, ...] = (
    _SameOrder("tensor.expand_shape"),
    _SameOrder("tensor.collapse_shape"),
)
