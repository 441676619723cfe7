"""`store` and its kin: a tile written to a tensor or a part; elements outside are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.dialects import arith
from tilec.ir.types import is_tile
from tilec.layout import Layout
from tilec.layout.boxes import boxes_of
from tilec.ops import uses
from tilec.ops.access import (
    claims_of_access,
    expect_plain,
    expect_ranks,
    expect_unsafe,
    expect_value,
    first_element,
    marks,
)
from tilec.ops.between_threads import to_memory
from tilec.ops.bounds import bounds_of
from tilec.ops.build import constant, make, segments, spread
from tilec.ops.call import Call, Emission, Form, Operation, Receiver, Value
from tilec.ops.channel import copy_coordinate
from tilec.ops.formats import shape_of
from tilec.ops.fragments import bit_width, unpack
from tilec.ops.global_memory import Use
from tilec.ops.indices import index_values
from tilec.ops.lower_access import lower_store
from tilec.ops.lowering import Lowered, Lowering, TensorMap, View
from tilec.ops.memory_layout import cost_of_access, held_layout, memory_layout
from tilec.ops.rules import AccessShape, Claim, DataOf, Datum, Machine, OpRules, Places, Placing
from tilec.ops.send import boxes_sent, map_of, send_by_copies, send_by_rows, sending_of
from tilec.ops.thread_access import Access
from tilec.types import UNIT, USIZE, Element, PartType, TileType, Type


def _stored(
    emission: Emission,
    view: ir.Value,
    tile: ir.Value,
    indices: Sequence[ir.Value],
    unit: str,
    *,
    unchecked: bool = False,
) -> Value:
    make(
        "tile.store",
        None,
        view,
        tile,
        *indices,
        unit=ir.StringAttr.get(unit),
        operandSegmentSizes=segments(1, 1, len(indices)),
        **marks(emission, unchecked=unchecked),
    )
    return ()


@dataclass(frozen=True)
class _Store(Operation):
    """`y.store::<…>([…], tile)`; the extents may be left to the tile."""

    name: str
    unit: str
    signature: str
    summary: str
    unchecked: bool = False
    form: Form = Form.METHOD
    receiver: Receiver | None = Receiver.TENSOR

    def result_type(self, call: Call) -> Type:
        if self.unchecked:
            expect_unsafe(call)
        uses.expect_counts(call, 3, None)
        tensor = expect_plain(call, writes=True)
        extents = None if call.generics is None else len(call.generics)
        expect_ranks(call, tensor, extents=extents)
        tile = uses.expect_tile(call, 2)
        shape = tile.shape if call.generics is None else uses.extents(call)
        if len(shape) != tensor.rank:
            message = f"expected a tile of rank {tensor.rank}, got `{tile}`"
            help = None
            if tile.is_scalar:
                help = (
                    f"write the extents: `.{call.name}::<{', '.join('…' * tensor.rank)}>([…], …)`"
                )
            raise uses.refuse("E0303", message, Label(call.arguments[2].span), help=help)
        expect_value(call, 2, tensor.element, shape, Label(call.name_span, "stored here"))
        return UNIT

    def emit(self, emission: Emission) -> Value:
        view, _, tile = emission.operands
        kind = emission.types[2]
        assert isinstance(kind, TileType) and isinstance(kind.element, Element)
        if emission.generics is not None:
            shape = tuple(int(e) for e in emission.generics if isinstance(e, int))
            tile = spread(tile, kind.element, shape)
        indices = index_values(emission, 1)
        return _stored(emission, view, tile, indices, self.unit, unchecked=self.unchecked)


class _PartStore(Operation):
    name = "store"
    form = Form.METHOD
    receiver = Receiver.PART
    signature = "part.store(tile)"
    summary = "Writes the tile that this program owns, clipped at the tensor's end."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2)
        part = call.arguments[0].type
        assert isinstance(part, PartType)
        uses.expect_size(part.block, call.span)
        owner = Label(call.arguments[0].span, f"this is `{part}`")
        expect_value(call, 1, part.element, part.block, owner)
        return UNIT

    def emit(self, emission: Emission) -> Value:
        part, tile = emission.operands
        kind = emission.types[0]
        assert isinstance(kind, PartType)
        zeros = [constant(USIZE, 0) for _ in kind.block]
        return _stored(emission, part, spread(tile, kind.element, kind.block), zeros, "tile")


OPERATIONS: tuple[Operation, ...] = (
    _Store("store", "tile", "y.store::<…>([i, …], tile)", "Writes at a tile index, clipped."),
    _Store(
        "store_at", "element", "y.store_at::<…>([r, …], tile)", "Writes at an element, clipped."
    ),
    _Store(
        "store_unchecked",
        "tile",
        "y.store_unchecked::<…>([i, …], tile)",
        "`store` of a tile that the program vouches is inside; in `unsafe` only.",
        unchecked=True,
    ),
    _PartStore(),
)


class _TileStore(OpRules):
    name = "tile.store"
    is_sendable = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        view, tile, *indices = operands
        shape = shape_of(op.operands[1].type)
        view.write(first_element(op, shape, indices), tile, op)
        return []

    def access(self, op: ir.OpView) -> AccessShape | None:
        view, tile, *indices = op.operands
        unit = ir.StringAttr(op.attributes["unit"]).value
        return AccessShape(tile, view, tuple(indices), shape_of(tile.type), unit)

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        access = self.access(op)
        assert access is not None
        return claims_of_access(op, access, has_fill=False)

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        access = self.access(op)
        assert access is not None
        layout = known[1] or memory_layout(access, bounds_of(op), placing)
        return Places((None, layout, *[None] * len(access.indices)), ())

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        access, layout = self.access(op), places.operands[1]
        assert access is not None
        if layout is None or (sending_of(op) and boxes_of(layout, _element_bytes(access))):
            return 0.0
        return cost_of_access(layout, access, bounds_of(op), placing)

    def tensor_maps(self, op: ir.OpView) -> Sequence[TensorMap]:
        sending, boxes = sending_of(op), boxes_sent(op.operands[1])
        if sending is None or sending.by != "copies" or boxes is None:
            return ()
        return (map_of(sending.param, boxes),)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        access = self.access(op)
        assert access is not None
        view, tile, *indices = operands
        assert isinstance(view, View)
        use = Use(is_last="last" in op.attributes)

        def access_by(layout: Layout) -> Access:
            return Access(lowering, view, layout, access.shape, indices, access.unit, bounds_of(op))

        sending = sending_of(op)
        boxes = None if sending is None else boxes_sent(access.tile)
        layout = held_layout(access.tile, lowering.warps)
        if boxes is None or sending is None:
            assert isinstance(tile, ir.Value), "only boxes take registers as they need them"
            registers = unpack(tile) if is_tile(access.tile) else [tile]
            lower_store(access_by(layout), [to_memory(v) for v in registers], use)
        elif sending.by == "copies":
            starts = _starts(view, access, indices)
            send_by_copies(boxes, layout, view, starts, tile, lowering)
        else:
            send_by_rows(boxes, access_by, tile, lowering, use)
        return []

    def leaves_in_pieces(self, op: ir.OpView) -> bool:
        return sending_of(op) is not None and boxes_sent(op.operands[1]) is not None


def _element_bytes(access: AccessShape) -> int:
    return bit_width(ir.MemRefType(access.view.type).element_type) // 8


def _starts(view: View, access: AccessShape, indices: Sequence[Lowered]) -> list[ir.Value]:
    """Where the tile starts in its tensor (i32), one an axis."""
    sizes = access.shape if access.unit == "tile" else [1] * len(access.shape)
    near = [copy_coordinate(i, size) for i, size in zip(indices, sizes, strict=True)]
    word = ir.IntegerType.get_signless(32)
    # Launchers describe no tensor whose coordinates have more bits.
    return [
        arith.addi(arith.index_cast(word, start), first)
        for start, first in zip(view.starts, near, strict=True)
    ]


RULES: tuple[OpRules, ...] = (_TileStore(),)
