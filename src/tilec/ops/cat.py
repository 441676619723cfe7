"""`cat(a, b)` and `split`: tiles put together along an axis, and cut in halves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from operator import or_

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import tile_type
from tilec.layout import (
    LANES,
    Layout,
    blocked,
    contiguous_elements,
    register_permutation,
    views,
)
from tilec.ops import uses
from tilec.ops.build import constant, integer, integers, make, segments
from tilec.ops.call import Call, Emission, Form, Operation, Receiver, Value
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import pack, select_registers, unpack
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import (
    Data,
    DataOf,
    Datum,
    Machine,
    OpRules,
    Places,
    Placing,
    shape_of,
)
from tilec.types import BOOL, TileType, TupleType, Type


class _Cat(Operation):
    name = "cat"
    form = Form.FUNCTION
    signature = "cat::<AXIS>(a, b)"
    summary = "`a`, then `b`, along an axis (0 if none is named); the other extents are equal."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2, None if call.generics is None else 1)
        element = uses.unify(call, (0, 1))
        left, right = (uses.expect_tile(call, i) for i in (0, 1))
        if left.is_scalar:
            message = f"`cat` takes tiles, got `{left}`"
            raise uses.refuse("E0203", message, Label(call.arguments[0].span))
        axis = 0 if call.generics is None else uses.axis(call, left.rank)
        if not _differ_only_in(left.shape, right.shape, axis):
            raise uses.differing_shapes(left, right, *call.arguments)
        extent = left.shape[axis] + right.shape[axis]
        uses.expect_legal(extent, call.span)
        shape = _with_extent(left.shape, axis, extent)
        uses.expect_size(shape, call.span)
        return TileType(element, shape)

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        axis = _axis(emission, emission.result.rank)
        return make(
            "tensor.concat", tile_type(emission.result), *emission.operands, dim=integer(axis)
        )


def _axis(emission: Emission, rank: int) -> int:
    if emission.generics is None:
        return 0
    [axis] = emission.generics
    assert isinstance(axis, int)
    return axis % rank


def _differ_only_in(left: tuple[int, ...], right: tuple[int, ...], axis: int) -> bool:
    return len(left) == len(right) and all(
        a == b for i, (a, b) in enumerate(zip(left, right, strict=True)) if i != axis
    )


def _with_extent(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    return (*shape[:axis], extent, *shape[axis + 1 :])


class _Split(Operation):
    name = "split"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "t.split::<AXIS>()"
    summary = "The two halves of a tile along an axis, as a tuple."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, 1)
        tile = uses.expect_tile(call, 0)
        axis = uses.axis(call, tile.rank)
        extent = tile.shape[axis]
        if extent % 2:
            message = f"`split` takes an axis of even extent, got extent {extent}"
            raise uses.refuse("E0301", message, Label(call.generic_spans[0]))
        uses.expect_legal(extent // 2, call.generic_spans[0])
        half = TileType(tile.element, _with_extent(tile.shape, axis, extent // 2))
        return TupleType((half, half))

    def emit(self, emission: Emission) -> Value:
        assert isinstance(emission.result, TupleType)
        [half, _] = emission.result.items
        assert isinstance(half, TileType)
        axis = _axis(emission, half.rank)
        starts = [[0] * half.rank for _ in range(2)]
        starts[1][axis] = half.shape[axis]
        return tuple(_slice(emission.operands[0], half, start) for start in starts)


def _slice(tile: ir.Value, half: TileType, start: Sequence[int]) -> ir.Value:
    return make(
        "tensor.extract_slice",
        tile_type(half),
        tile,
        static_offsets=integers(start),
        static_sizes=integers(half.shape),
        static_strides=integers([1] * half.rank),
        operandSegmentSizes=segments(1, 0, 0, 0),
    )


OPERATIONS: tuple[Operation, ...] = (_Cat(), _Split())


class _Concat(OpRules):
    """Threads rename registers: each holds, of the result, what it holds of the tiles.

    So it is made in layouts whose slices are layouts; one that puts the tiles side by side has
    them.
    """

    name = "tensor.concat"
    flexible = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.concatenate(operands, axis=_dimension(op))]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        masks = [data_of(operand) for operand in op.operands]
        if Data.UNKNOWN in masks:
            return Data.UNKNOWN
        tiles = [
            constant(BOOL, True, shape_of(operand)) if isinstance(mask, Data) else mask
            for mask, operand in zip(masks, op.operands, strict=True)
        ]
        kind = tile_type(TileType(BOOL, shape_of(op.results[0])))
        return make("tensor.concat", kind, *tiles, dim=integer(_dimension(op)))

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        axis, shape = _dimension(op), shape_of(op.results[0])
        step = common_step([shape_of(operand)[axis] for operand in op.operands])
        piece = _with_extent(shape, axis, step)
        pieces = (views.sliced(k, (0,) * len(shape), piece) for k in known if k is not None)
        own = next((view.layout for view in pieces if view is not None), None)
        if own is None:
            own = _like(next((k for k in known if k is not None), None), piece, placing)
        return Places((None,) * len(known), (views.tiled(own, axis, shape[axis] // step),))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        found = _slices(op, wanted)
        layouts = [view.layout for view in found if view is not None]
        return tuple(layouts) if len(layouts) == len(found) else None

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        target = layout_of(op.results[0].type)
        registers: dict[int, ir.Value] = {}
        for view, tile, operand in zip(_slices(op, target), op.operands, operands, strict=True):
            assert view is not None, "`serve` refused this layout"
            assert view.layout == layout_of(tile.type), "`serve` asked for this layout"
            held = unpack(operand)
            registers.update({r: held[n] for r, n in enumerate(view.to_new) if n is not None})
        return [pack([registers[r] for r in range(target.registers)])]


def _dimension(op: ir.OpView) -> int:
    return int(ir.IntegerAttr(op.attributes["dim"]).value)


def _slices(op: ir.OpView, layout: Layout) -> list[views.View | None]:
    """Where a layout of the result holds each operand."""
    axis, found, start = _dimension(op), [], 0
    for operand in op.operands:
        shape = shape_of(operand)
        starts = tuple(start if a == axis else 0 for a in range(len(shape)))
        found.append(views.sliced(layout, starts, shape))
        start += shape[axis]
    return found


def _like(layout: Layout | None, shape: tuple[int, ...], placing: Placing) -> Layout:
    """A layout of another shape in which threads hold as many neighbours, as far as it goes."""
    if layout is None:
        return placing.default(shape)
    fastest = max(reversed(range(len(shape))), key=lambda axis: contiguous_elements(layout, axis))
    order = [fastest, *(axis for axis in reversed(range(len(shape))) if axis != fastest)]
    spread = prod(extent & -extent for extent in shape)
    each = max(1, spread // (placing.warps * LANES))
    return blocked(shape, placing.warps, order, min(contiguous_elements(layout, fastest), each))


class _ExtractSlice(OpRules):
    """With constant offsets, sizes and steps of 1, as `split` makes it."""

    name = "tensor.extract_slice"
    flexible = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        [tile] = operands
        places = zip(_starts(op), shape_of(op.results[0]), strict=True)
        return [tile[tuple(slice(start, start + size) for start, size in places)]]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        mask = data_of(op.operands[0])
        if isinstance(mask, Data):
            return mask
        return _slice(mask, TileType(BOOL, shape_of(op.results[0])), _starts(op))

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        [layout] = known
        if layout is None:
            return Places((None,), (None,))
        shape = shape_of(op.results[0])
        view = views.sliced(layout, _starts(op), shape)
        return Places((None,), (view.layout if view else _like(layout, shape, placing),))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        layout = wanted
        for axis, (start, size) in enumerate(zip(_starts(op), wanted.shape, strict=True)):
            whole = shape_of(op.operands[0])[axis]
            if whole == size:
                continue
            step = common_step([start, size, whole])
            piece = _with_extent(layout.shape, axis, step)
            view = views.sliced(layout, (0,) * layout.rank, piece)
            if view is None:
                return None
            layout = views.tiled(view.layout, axis, whole // step)
        return (layout,)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        source, target = layout_of(op.operands[0].type), layout_of(op.results[0].type)
        view = views.sliced(source, _starts(op), target.shape)
        assert view is not None, "`serve` asked for a layout that has this slice"
        renamed = register_permutation(view.layout, target)
        assert renamed is not None, "`serve` asked for this layout up to register numbers"
        return [select_registers(operands[0], [view.to_old[r] for r in renamed])]


def _starts(op: ir.OpView) -> tuple[int, ...]:
    assert set(op.attributes["static_strides"]) <= {1}, "`split` takes neighbours"
    return tuple(op.attributes["static_offsets"])


def common_step(numbers: Sequence[int]) -> int:
    """The largest power of two that divides all of them."""
    bits = reduce(or_, numbers)
    return bits & -bits


RULES: tuple[OpRules, ...] = (_Concat(), _ExtractSlice())
