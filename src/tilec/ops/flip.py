"""`flip`: the reverse order along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from tilec.ir.dialects import vector
from tilec.ir.types import tile_type
from tilec.layout.flip import Part, plan_flip
from tilec.layout.traffic import NONE, of_flip_between_lanes, of_flip_between_warps
from tilec.ops import uses
from tilec.ops.between_threads import (
    from_memory,
    read_shared,
    shuffle_xor,
    to_memory,
    write_shared,
)
from tilec.ops.build import integer, make
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import bit_width, in_memory, pack, unpack
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.notes import Moved
from tilec.ops.rules import Data, DataOf, Datum, Machine, OpRules
from tilec.types import TileType, Type

# Units: bytes of shared memory for what goes between warps at once.
_MOST_BYTES = 32 * 1024
WORD_BITS = 32  # what a shuffle moves (PTX ISA, "shfl.sync")


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
    """In one layout on both sides: registers renamed, then what lies with other threads fetched."""

    name = "tile.flip"
    flexible = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.flip(operands[0], _axis(op))]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        mask = data_of(op.operands[0])
        if isinstance(mask, Data):
            return mask
        return make("tile.flip", mask.type, mask, axis=integer(_axis(op)))

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        layout = layout_of(op.results[0].type)
        plan = plan_flip(layout, _axis(op))
        registers = [unpack(operands[0])[r] for r in plan.registers]
        size = bit_width(registers[0].type) // 8
        moved = NONE
        if plan.warp_xor:
            parts = plan.exchange(len(registers), size, lowering.warps, _MOST_BYTES)
            moved = of_flip_between_warps(parts, size)
            registers = _from_other_warps(parts, registers, lowering)
        elif plan.lane_xor:
            moved = of_flip_between_lanes(plan, size)
            registers = _from_other_lanes(registers, plan.lane_xor)
        lowering.note(Moved("flip", (str(registers[0].type),), layout, layout, moved))
        return [pack(registers)]


def _axis(op: ir.OpView) -> int:
    return int(ir.IntegerAttr(op.attributes["axis"]).value)


def _from_other_lanes(registers: Sequence[ir.Value], lane_xor: int) -> list[ir.Value]:
    """Every lane's registers from the lane whose number differs; narrow ones several at once."""
    element = registers[0].type
    each = max(1, WORD_BITS // bit_width(element))
    if each == 1 or len(registers) % each:
        return [shuffle_xor(value, lane_xor) for value in registers]
    held = pack([to_memory(value) for value in registers])
    words = ir.VectorType.get([len(registers) // each], ir.IntegerType.get_signless(WORD_BITS))
    moved = [shuffle_xor(word, lane_xor) for word in unpack(vector.bitcast(words, held))]
    return [from_memory(value, element) for value in unpack(vector.bitcast(held.type, pack(moved)))]


def _from_other_warps(
    exchange: Sequence[Part], registers: Sequence[ir.Value], lowering: Lowering
) -> list[ir.Value]:
    """Every thread's registers from the thread whose lane and warp differ in the plan's bits."""
    element = registers[0].type
    size = bit_width(element) // 8
    buffer = lowering.shared_bytes(exchange[0].elements * size)
    found: dict[int, list[ir.Value]] = {}
    for part in exchange:
        write_shared(buffer, part.write, [to_memory(r) for r in registers], lowering)
        found.update(read_shared(buffer, part.read, in_memory(element), lowering))
    return [from_memory(found[r][0], element) for r in range(len(registers))]


RULES: tuple[OpRules, ...] = (_TileFlip(),)
