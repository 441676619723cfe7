"""`flip`: the reverse order along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from tilec.ir.types import tile_type
from tilec.ops import uses
from tilec.ops.build import integer, make
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.rules import Datum, Machine, OpRules
from tilec.types import TileType, Type


class _Flip(Operation):
    name = "flip"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "t.flip::<AXIS>()"
    summary = "The tile in reverse order along one axis."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, 1)
        tile = uses.expect_tile(call, 0)
        uses.axis(call, tile.rank)
        return tile

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        tile = emission.operands[0]
        [axis] = emission.generics or ()
        assert isinstance(axis, int)
        return make(
            "tile.flip", tile_type(emission.result), tile, axis=integer(axis % emission.result.rank)
        )


OPERATIONS: tuple[Operation, ...] = (_Flip(),)


class _TileFlip(OpRules):
    name = "tile.flip"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.flip(operands[0], ir.IntegerAttr(op.attributes["axis"]).value)]


RULES: tuple[OpRules, ...] = (_TileFlip(),)
