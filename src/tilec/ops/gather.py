"""`gather`: a tile read from elements that tiles of indices choose; zero for those outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.types import is_tile, tile_type, view_facts
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
from tilec.ops.between_threads import from_memory
from tilec.ops.build import make, segments
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.formats import dtype_of, shape_of
from tilec.ops.fragments import in_registers, pack, zero
from tilec.ops.index_tiles import (
    axes_of,
    block_of,
    claims_of_indexed,
    data_of_indexed,
    expect_block,
    index_operands,
)
from tilec.ops.lower_access import lower_load
from tilec.ops.lower_indexed import as_block, effective_bounds, index_layout, indexed_access
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.memory_layout import is_as_wide, memory_layout
from tilec.ops.rules import (
    Claim,
    Data,
    DataOf,
    Datum,
    IndexedShape,
    Machine,
    OpRules,
    Places,
    Placing,
)
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
    flexible = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        _, count, _ = op.attributes["operandSegmentSizes"]
        view, scalars, tiles = operands[0], operands[1 : 1 + count], operands[1 + count :]
        kind = op.results[0].type
        shape = shape_of(kind)
        gathered = view.gather(block_of(op, scalars, tiles, shape), shape, op)
        return [gathered.view(dtype_of(kind))]

    def indexed(self, op: ir.OpView) -> IndexedShape:
        view, *rest = op.operands
        starts, chosen = axes_of(op, rest)
        return IndexedShape(op.results[0], view, starts, chosen, shape_of(op.results[0].type))

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        return claims_of_indexed(op, self.indexed(op))

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        return data_of_indexed(self.indexed(op), data_of)

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        best = self._best(op, placing)
        return Places(self._operands(op, best), (best,))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        if wanted == self._best(op, placing):
            return self._operands(op, wanted)
        access = self.indexed(op)
        # What is written in this launch is read once, at its place in the program's order.
        is_shared = view_facts(access.view.type).own == "shared"
        bounds = effective_bounds(op, access)
        if not is_shared or not is_as_wide(wanted, as_block(access), bounds, placing):
            return None
        return self._operands(op, wanted)

    def _best(self, op: ir.OpView, placing: Placing) -> Layout:
        access = self.indexed(op)
        return memory_layout(as_block(access), effective_bounds(op, access), placing)

    def _operands(self, op: ir.OpView, layout: Layout) -> tuple[Layout | None, ...]:
        of_tiles = index_layout(self.indexed(op), layout)
        return tuple(of_tiles if is_tile(value) else None for value in op.operands)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        here = indexed_access(op, self.indexed(op), operands[0], operands[1:], lowering)
        held = in_registers(here.view.element)
        registers = [from_memory(v, held) for v in lower_load(here, zero(here.element))]
        return [pack(registers) if is_tile(op.results[0]) else registers[0]]


RULES: tuple[OpRules, ...] = (_TileGather(),)
