"""`cat(a, b)` and `split`: tiles put together along an axis, and cut in halves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import tile_type
from tilec.ops import uses
from tilec.ops.build import integer, integers, make, segments
from tilec.ops.call import Call, Emission, Form, Operation, Receiver, Value
from tilec.ops.rules import Datum, Machine, OpRules
from tilec.types import TileType, TupleType, Type


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
    name = "tensor.concat"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.concatenate(operands, axis=ir.IntegerAttr(op.attributes["dim"]).value)]


class _ExtractSlice(OpRules):
    """With constant offsets, sizes and steps, as `split` makes it."""

    name = "tensor.extract_slice"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        [tile] = operands
        starts, sizes, steps = (
            tuple(op.attributes[f"static_{what}"]) for what in ("offsets", "sizes", "strides")
        )
        return [
            tile[
                tuple(
                    slice(start, start + size * step, step)
                    for start, size, step in zip(starts, sizes, steps, strict=True)
                )
            ]
        ]


RULES: tuple[OpRules, ...] = (_Concat(), _ExtractSlice())
