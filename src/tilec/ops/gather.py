"""`gather`: a tile read from elements that tiles of indices choose; zero for those outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.types import tile_type
from tilec.layout import Layout
from tilec.ops import uses
from tilec.ops.access import (
    expect_plain,
    expect_rank_of_extents,
    expect_rank_of_index,
    expect_turbofish,
    expect_unsafe,
    marks,
)
from tilec.ops.build import make, segments
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.formats import dtype_of, shape_of
from tilec.ops.index_tiles import block_of, expect_block, index_operands, placed_by_default
from tilec.ops.rules import Datum, Machine, OpRules, Places, Placing
from tilec.types import TileType, Type


@dataclass(frozen=True)
class _Gather(Operation):
    name: str
    signature: str
    summary: str
    unchecked: bool = False
    form: Form = Form.METHOD
    receiver: Receiver | None = Receiver.TENSOR

    def result_type(self, call: Call) -> Type:
        if self.unchecked:
            expect_unsafe(call)
        uses.expect_counts(call, 2, None)
        tensor = expect_plain(call)
        expect_turbofish(call, tensor)
        expect_rank_of_index(call, tensor, len(uses.index_tile_types(call, 1)))
        expect_rank_of_extents(call, tensor, len(call.generics or ()))
        shape = uses.extents(call)
        expect_block(call, 1, shape)
        return TileType(tensor.element, shape)

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        scalars, tiles, tiled = index_operands(emission, 1, emission.result.shape)
        return make(
            "tile.gather",
            tile_type(emission.result),
            emission.operands[0],
            *scalars,
            *tiles,
            tiled=tiled,
            operandSegmentSizes=segments(1, len(scalars), len(tiles)),
            **marks(emission, unchecked=self.unchecked),
        )


OPERATIONS: tuple[Operation, ...] = (
    _Gather(
        "gather",
        "x.gather::<…>([rows, c])",
        "`load_at` whose indices may be tiles: of rank 1 along their axis, or of the result's rank"
        " for each element; zero outside.",
    ),
    _Gather(
        "gather_unchecked",
        "x.gather_unchecked::<…>([rows, c])",
        "`gather` of elements that the program vouches are inside; in `unsafe` only.",
        unchecked=True,
    ),
)


class _TileGather(OpRules):
    name = "tile.gather"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        _, count, _ = op.attributes["operandSegmentSizes"]
        view, scalars, tiles = operands[0], operands[1 : 1 + count], operands[1 + count :]
        kind = op.results[0].type
        shape = shape_of(kind)
        gathered = view.gather(block_of(op, scalars, tiles, shape), shape, op)
        return [gathered.view(dtype_of(kind))]

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        return placed_by_default(op, placing)


RULES: tuple[OpRules, ...] = (_TileGather(),)
