"""`scatter`: a tile written to elements that tiles of indices choose; those outside are left out.

Which of two equal indices wins is not stated. The CPU execution takes the last in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import is_tile
from tilec.layout import Layout
from tilec.ops import uses
from tilec.ops.access import (
    expect_plain,
    expect_rank_of_extents,
    expect_rank_of_index,
    expect_unsafe,
    expect_value,
    marks,
)
from tilec.ops.between_threads import to_memory
from tilec.ops.broadcasting import element_in
from tilec.ops.build import make, segments, spread
from tilec.ops.call import Call, Emission, Form, Operation, Receiver, Value
from tilec.ops.formats import shape_of
from tilec.ops.fragments import unpack
from tilec.ops.global_memory import Use
from tilec.ops.index_tiles import (
    axes_of,
    block_of,
    claims_of_indexed,
    expect_block,
    index_operands,
)
from tilec.ops.lower_access import lower_store
from tilec.ops.lower_indexed import as_block, effective_bounds, index_layout, indexed_access
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.memory_layout import is_as_wide, memory_layout
from tilec.ops.rules import Claim, DataOf, Datum, IndexedShape, Machine, OpRules, Places, Placing
from tilec.types import UNIT, Own, TensorType, TileType, Type


@dataclass(frozen=True)
class _Scatter(Operation):
    name: str
    signature: str
    summary: str
    unchecked: bool = False
    form: Form = Form.METHOD
    receiver: Receiver | None = Receiver.TENSOR

    def result_type(self, call: Call) -> Type:
        if self.unchecked:
            expect_unsafe(call, help="`scatter` leaves out what is outside")
        uses.expect_counts(call, 3, None)
        tensor = expect_plain(call, writes=True)
        _expect_vouched(call, tensor)
        expect_rank_of_index(call, tensor, len(uses.index_tile_types(call, 1)))
        if call.generics is not None:
            expect_rank_of_extents(call, tensor, len(call.generics))
        tile = uses.expect_tile(call, 2)
        shape = tile.shape if call.generics is None else uses.extents(call)
        if len(shape) != tensor.rank:
            message = f"expected a tile of rank {tensor.rank}, got `{tile}`"
            raise uses.refuse("E0303", message, Label(call.arguments[2].span))
        expect_block(call, 1, shape)
        expect_value(call, 2, tensor.element, shape, Label(call.name_span, "stored here"))
        return UNIT

    def emit(self, emission: Emission) -> Value:
        view, _, tile = emission.operands
        kind = emission.types[2]
        assert isinstance(kind, TileType)
        shape = kind.shape
        if emission.generics is not None:
            shape = tuple(int(e) for e in emission.generics if isinstance(e, int))
        scalars, tiles, tiled = index_operands(emission, 1, shape)
        make(
            "tile.scatter",
            None,
            view,
            spread(tile, element_in(kind), shape),
            *scalars,
            *tiles,
            tiled=tiled,
            operandSegmentSizes=segments(1, 1, len(scalars), len(tiles)),
            **marks(emission, unchecked=self.unchecked),
        )
        return ()


def _expect_vouched(call: Call, tensor: TensorType) -> None:
    """E0501 outside `unsafe`: where indices are values, nothing tells those of programs apart."""
    # Writing through a shared borrow is for the ownership check to refuse.
    if call.in_unsafe or tensor.own is Own.SHARED:
        return
    message = f"two programs may `{call.name}` to the same element"
    help = (
        "take it as `&Atomic<Tensor<…>>` and `swap` or `fetch_add`,"
        " or vouch for it in `unsafe { … }`"
    )
    receiver = Label(call.arguments[0].span, f"this is `{tensor}`")
    raise uses.refuse("E0501", message, Label(call.name_span), receiver, help=help)


OPERATIONS: tuple[Operation, ...] = (
    _Scatter(
        "scatter",
        "y.scatter([rows, c], tile)",
        "`store_at` whose indices may be tiles, as of `gather`; clipped; in `unsafe` only.",
    ),
    _Scatter(
        "scatter_unchecked",
        "y.scatter_unchecked([rows, c], tile)",
        "`scatter` to elements that the program vouches are inside; in `unsafe` only.",
        unchecked=True,
    ),
)


class _TileScatter(OpRules):
    name = "tile.scatter"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        _, _, count, _ = op.attributes["operandSegmentSizes"]
        view, tile, *indices = operands
        shape = shape_of(op.operands[1].type)
        view.scatter(block_of(op, indices[:count], indices[count:], shape), tile, op)
        return []

    def indexed(self, op: ir.OpView) -> IndexedShape:
        view, tile, *indices = op.operands
        starts, chosen = axes_of(op, indices)
        return IndexedShape(tile, view, starts, chosen, shape_of(tile.type))

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        return claims_of_indexed(op, self.indexed(op))

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        access = self.indexed(op)
        block, bounds = as_block(access), effective_bounds(op, access)
        layout = known[1]
        if layout is None or not is_as_wide(layout, block, bounds, placing):
            layout = memory_layout(block, bounds, placing)
        of_tiles = index_layout(access, layout)
        indices = (of_tiles if is_tile(value) else None for value in list(op.operands)[2:])
        return Places((None, layout if is_tile(access.tile) else None, *indices), ())

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        view, tile, *indices = operands
        here = indexed_access(op, self.indexed(op), view, indices, lowering)
        registers = unpack(tile) if is_tile(op.operands[1]) else [tile]
        lower_store(here, [to_memory(v) for v in registers], Use(is_relaxed=True))
        return []


RULES: tuple[OpRules, ...] = (_TileScatter(),)
