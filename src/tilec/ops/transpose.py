"""`t()` and `permute`: of a tile (its elements move), of a tensor (only its indexing changes)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import tensor_type
from tilec.layout import Layout, views
from tilec.ops import uses
from tilec.ops.abstract import Abstract, AbstractView, Reasoning
from tilec.ops.broadcasting import element_in
from tilec.ops.build import make, transposed
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import certain, select_registers
from tilec.ops.linear import Linear
from tilec.ops.lowering import Lowered, Lowering, View
from tilec.ops.rules import Data, DataOf, Datum, Facts, Machine, OpRules, Places, Placing
from tilec.types import BOOL, TensorType, TileType, Type


class _Reorder(Operation):
    form = Form.METHOD

    written: str
    meaning: str

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        on_tile = receiver is Receiver.TILE
        self.signature = f"{'t' if on_tile else 'x'}.{self.written}"
        self.summary = self.meaning if on_tile else f"{self.meaning} A view: nothing is copied."

    @abstractmethod
    def order(self, call: Call, rank: int) -> tuple[int, ...]:
        """Axis i of the result is axis `order[i]`; E03xx if the use says none."""

    @abstractmethod
    def emit_order(self, emission: Emission, rank: int) -> tuple[int, ...]:
        """The same, of a checked use."""

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, None)
        given = call.arguments[0].type
        if isinstance(given, TensorType):
            return _permuted(given, self.order(call, given.rank))
        tile = uses.expect_tile(call, 0)
        order = self.order(call, tile.rank)
        return TileType(tile.element, tuple(tile.shape[a] for a in order))

    def emit(self, emission: Emission) -> ir.Value:
        [value] = emission.operands
        if isinstance(emission.result, TensorType):
            if not emission.result.rank:
                return value  # MLIR knows no order of no axes
            order = self.emit_order(emission, emission.result.rank)
            permutation = ir.AffineMapAttr.get(ir.AffineMap.get_permutation(list(order)))
            kind = tensor_type(emission.result)
            return make("memref.transpose", kind, value, permutation=permutation)
        assert isinstance(emission.result, TileType)
        order = self.emit_order(emission, emission.result.rank)
        return transposed(value, element_in(emission.result), order)


def _permuted(tensor: TensorType, order: tuple[int, ...]) -> TensorType:
    """Axis `i` of the view is axis `order[i]` of the tensor."""
    place = order.index(tensor.contiguous % tensor.rank) if tensor.rank else -1
    contiguous = -1 if place == tensor.rank - 1 else place
    extents = tuple(tensor.extents[a] for a in order)
    return TensorType(tensor.element, extents, tensor.own, contiguous)


class _Transpose(_Reorder):
    name = "t"
    written = "t()"
    meaning = "The last two axes swapped."

    def order(self, call: Call, rank: int) -> tuple[int, ...]:
        uses.expect_counts(call, 1)
        if rank < 2:
            message = f"`t` swaps the last two axes, got `{call.arguments[0].type}`"
            raise uses.refuse("E0301", message, Label(call.arguments[0].span))
        return _last_two_swapped(rank)

    def emit_order(self, emission: Emission, rank: int) -> tuple[int, ...]:
        return _last_two_swapped(rank)


def _last_two_swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


class _Permute(_Reorder):
    name = "permute"
    written = "permute::<A0, …>()"
    meaning = "Axis `i` of the result is axis `Ai`; every axis is named once."

    def order(self, call: Call, rank: int) -> tuple[int, ...]:
        uses.expect_counts(call, 1, rank)
        order = tuple(uses.axis(call, rank, index) for index in range(rank))
        if len(set(order)) != rank:
            message = f"`permute` names every axis once, got {uses.shape_text(order)}"
            raise uses.refuse("E0203", message, Label(call.name_span))
        return order

    def emit_order(self, emission: Emission, rank: int) -> tuple[int, ...]:
        return tuple(int(axis) % rank for axis in emission.generics or () if isinstance(axis, int))


OPERATIONS: tuple[Operation, ...] = tuple(
    operation(receiver)
    for operation in (_Transpose, _Permute)
    for receiver in (Receiver.TILE, Receiver.TENSOR)
)


class _LinalgTranspose(OpRules):
    name = "linalg.transpose"
    flexible = True

    def moved_axes(self, op: ir.OpView) -> tuple[int | None, ...] | None:
        return tuple(op.attributes["permutation"])

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.transpose(operands[0], tuple(op.attributes["permutation"]))]

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        return operands[0]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        mask = data_of(op.operands[0])
        if isinstance(mask, Data):
            return mask
        return transposed(mask, BOOL, tuple(op.attributes["permutation"]))

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        if known[0] is None:
            return Places((None, None), (None,))
        return Places(
            (None, None), (views.transposed(known[0], tuple(op.attributes["permutation"])).layout,)
        )

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        return (views.transposed(wanted, _inverse(op)).layout, wanted)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        view = views.transposed(layout_of(op.results[0].type), _inverse(op))
        assert view.layout == layout_of(op.operands[0].type), "`serve` asked for this layout"
        return [select_registers(operands[0], certain(view.to_new))]


def _inverse(op: ir.OpView) -> tuple[int, ...]:
    permutation = list(op.attributes["permutation"])
    return tuple(permutation.index(axis) for axis in range(len(permutation)))


class _ViewTranspose(OpRules):
    name = "memref.transpose"
    is_view_of_all = True

    def extent(self, op: ir.OpView, axis: int, facts: Facts) -> ir.Value | int | None:
        return facts.extent(op.operands[0], self.viewed_axis(op, axis))

    def extent_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return facts.extent_divisor(op.operands[0], self.viewed_axis(op, axis))

    def start_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return facts.start_divisor(op.operands[0], self.viewed_axis(op, axis))

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [view] = operands
        assert isinstance(view, AbstractView), "a view is known"
        return [view.permuted(_view_order(op))]

    def viewed_axis(self, op: ir.OpView, axis: int) -> int:
        return _view_order(op)[axis]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [operands[0].permuted(_view_order(op))]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [view] = operands
        assert isinstance(view, View)
        return [view.permuted(_view_order(op))]


def _view_order(op: ir.OpView) -> list[int]:
    """Axis i of the result is axis `order[i]` of the operand."""
    results = ir.AffineMapAttr(op.attributes["permutation"]).value.results
    return [ir.AffineDimExpr(axis).position for axis in results]


RULES: tuple[OpRules, ...] = (_LinalgTranspose(), _ViewTranspose())
