"""`load` and its kin: a tile read from a tensor or a part; elements outside are zero, or `fill`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import is_tile, tile_type, view_facts
from tilec.layout import Layout
from tilec.ops import uses
from tilec.ops.access import (
    claims_of_access,
    data_of_access,
    expect_plain,
    expect_ranks,
    expect_turbofish,
    expect_unsafe,
    first_element,
    marks,
)
from tilec.ops.between_threads import from_memory, to_memory
from tilec.ops.bounds import bounds_of
from tilec.ops.build import constant, integer, make, segments
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.formats import dtype_of, shape_of
from tilec.ops.fragments import in_registers, pack, zero
from tilec.ops.indices import index_values
from tilec.ops.lower_access import load_later, lower_load
from tilec.ops.lowering import Lowered, Lowering, View
from tilec.ops.memory_layout import (
    cost_of_access,
    held_layout,
    is_as_wide,
    is_beside_sums,
    memory_layout,
)
from tilec.ops.rules import (
    AccessShape,
    Claim,
    Data,
    DataOf,
    Datum,
    Machine,
    OpRules,
    Places,
    Placing,
)
from tilec.ops.thread_access import Access
from tilec.types import USIZE, PartType, TileType, Type


def _loaded(
    emission: Emission,
    view: ir.Value,
    indices: Sequence[ir.Value],
    unit: str,
    fill: ir.Value | None = None,
    *,
    unchecked: bool = False,
) -> ir.Value:
    assert isinstance(emission.result, TileType)
    fills = [] if fill is None else [fill]
    return make(
        "tile.load",
        tile_type(emission.result),
        view,
        *indices,
        *fills,
        unit=ir.StringAttr.get(unit),
        operandSegmentSizes=segments(1, len(indices), len(fills)),
        **marks(emission, unchecked=unchecked),
    )


@dataclass(frozen=True)
class _Load(Operation):
    """`x.load::<…>([…])`; `unit` is what the index counts."""

    name: str
    unit: str
    signature: str
    summary: str
    has_fill: bool = False
    unchecked: bool = False
    turbofish: bool | None = True
    form: Form = Form.METHOD
    receiver: Receiver | None = Receiver.TENSOR

    def result_type(self, call: Call) -> Type:
        if self.unchecked:
            expect_unsafe(call)
        uses.expect_counts(call, 2 + self.has_fill, None)
        tensor = expect_plain(call)
        expect_turbofish(call, tensor)
        expect_ranks(call, tensor, extents=len(call.generics or ()))
        if self.has_fill:
            uses.expect_scalar(call, 2)
            uses.unify_with(call, 2, tensor.element, call.arguments[0].span)
        return TileType(tensor.element, uses.extents(call))

    def emit(self, emission: Emission) -> ir.Value:
        fill = emission.operands[2] if self.has_fill else None
        indices = index_values(emission, 1)
        return _loaded(
            emission,
            emission.operands[0],
            indices,
            self.unit,
            fill,
            unchecked=self.unchecked,
        )


class _LoadLike(Operation):
    name = "load_like"
    form = Form.METHOD
    receiver = Receiver.TENSOR
    signature = "x.load_like(&part)"
    summary = "The tile of `x` at the elements of a part, with its block as extents."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2)
        tensor = expect_plain(call)
        argument = call.arguments[1]
        if not isinstance(argument.type, PartType):
            message = f"`load_like` expected a part, got `{argument.type}`"
            raise uses.refuse("E0203", message, Label(argument.span))
        part = argument.type
        if part.rank != tensor.rank:
            raise uses.refuse(
                "E0303",
                f"a part of rank {part.rank} indexes a tensor of rank {tensor.rank}",
                Label(argument.span, f"this is `{part}`"),
                Label(call.arguments[0].span, f"this is `{tensor}`"),
            )
        uses.expect_size(part.block, call.span)
        return TileType(tensor.element, part.block)

    def emit(self, emission: Emission) -> ir.Value:
        view, part = emission.operands
        [_, kind] = emission.types
        assert isinstance(kind, PartType)
        index = ir.IndexType.get()
        offsets = [
            make("tile.part_offset", index, part, axis=integer(axis)) for axis in range(kind.rank)
        ]
        return _loaded(emission, view, offsets, "element")


class _PartLoad(Operation):
    name = "load"
    form = Form.METHOD
    receiver = Receiver.PART
    signature = "part.load()"
    summary = "The tile that this program owns; elements outside the tensor are zero."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1)
        part = call.arguments[0].type
        assert isinstance(part, PartType)
        uses.expect_size(part.block, call.span)
        return TileType(part.element, part.block)

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        zeros = [constant(USIZE, 0) for _ in emission.result.shape]
        return _loaded(emission, emission.operands[0], zeros, "tile")


OPERATIONS: tuple[Operation, ...] = (
    _Load("load", "tile", "x.load::<…>([i, …])", "The tile at a tile index, zero outside."),
    _Load(
        "load_or",
        "tile",
        "x.load_or::<…>([i, …], fill)",
        "The tile at a tile index, `fill` outside.",
        has_fill=True,
    ),
    _Load("load_at", "element", "x.load_at::<…>([r, …])", "The tile at an element, zero outside."),
    _Load(
        "load_unchecked",
        "tile",
        "x.load_unchecked::<…>([i, …])",
        "`load` of a tile that the program vouches is inside; in `unsafe` only.",
        unchecked=True,
    ),
    _LoadLike(),
    _PartLoad(),
)


class _TileLoad(OpRules):
    name = "tile.load"
    flexible = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        _, index_count, fill_count = op.attributes["operandSegmentSizes"]
        view, indices = operands[0], operands[1 : 1 + index_count]
        kind = op.results[0].type
        fill = operands[-1] if fill_count else None
        tile = view.read(first_element(op, shape_of(kind), indices), shape_of(kind), fill, op)
        return [tile.view(dtype_of(kind))]

    def access(self, op: ir.OpView) -> AccessShape | None:
        _, count, _ = op.attributes["operandSegmentSizes"]
        indices = tuple(op.operands)[1 : 1 + count]
        unit = ir.StringAttr(op.attributes["unit"]).value
        return AccessShape(
            op.results[0], op.operands[0], indices, shape_of(op.results[0].type), unit
        )

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        access = self.access(op)
        assert access is not None
        _, _, fill_count = op.attributes["operandSegmentSizes"]
        return claims_of_access(op, access, has_fill=fill_count > 0)

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        access = self.access(op)
        assert access is not None
        return data_of_access(access)

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        access = self.access(op)
        assert access is not None
        return Places((None,) * len(known), (memory_layout(access, bounds_of(op), placing),))

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        access, [layout] = self.access(op), places.results
        assert access is not None and layout is not None
        return cost_of_access(layout, access, bounds_of(op), placing)

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        access = self.access(op)
        assert access is not None
        if wanted == memory_layout(access, bounds_of(op), placing):
            return (None,) * len(op.operands)
        # What is written in this launch is read once, at its place in the program's order.
        is_shared = view_facts(access.view.type).own == "shared"
        if not is_shared or not (
            is_as_wide(wanted, access, bounds_of(op), placing) or is_beside_sums(wanted, access)
        ):
            return None
        return (None,) * len(op.operands)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        here, fill = self._access_of_thread(op, operands, lowering)
        loaded = lower_load(here, fill, is_last="last" in op.attributes)
        held = in_registers(here.view.element)
        registers = [from_memory(v, held) for v in loaded]
        return [pack(registers) if is_tile(op.results[0]) else registers[0]]

    def may_wait(self, op: ir.OpView) -> bool:
        access = self.access(op)
        assert access is not None
        is_shared = view_facts(access.view.type).own == "shared"
        return is_tile(access.tile) and is_shared

    def pending(self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering) -> Lowered:
        here, fill = self._access_of_thread(op, operands, lowering)
        if here.may_be_ragged:  # a group that is cut takes a branch
            return self.lower(op, operands, lowering)[0]
        return load_later(here, fill, is_last="last" in op.attributes)

    def _access_of_thread(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> tuple[Access, ir.Value]:
        """The access, and what elements outside are, as in memory."""
        access = self.access(op)
        assert access is not None
        view, rest = operands[0], operands[1:]
        assert isinstance(view, View)
        count = len(access.indices)
        layout = held_layout(access.tile, lowering.warps)
        here = Access(
            lowering, view, layout, access.shape, rest[:count], access.unit, bounds_of(op)
        )
        return here, to_memory(rest[count]) if len(rest) > count else zero(here.element)


RULES: tuple[OpRules, ...] = (_TileLoad(),)
