"""Tiles from nothing: `zeros ones full`, `iota`, `splat`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.integers.formula import FALSE, TRUE
from tilec.integers.number import always
from tilec.ir.dialects import arith, llvm
from tilec.ir.types import is_tile, tile_type
from tilec.layout import Layout
from tilec.ops import uses
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.broadcasting import element_in
from tilec.ops.build import constant, make, spread
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.convert import converted
from tilec.ops.encoding import layout_of
from tilec.ops.formats import attribute_number, dtype_of, element_of, rounded, shape_of
from tilec.ops.fragments import pack, splat
from tilec.ops.linear import Linear
from tilec.ops.lowering import Lowered, Lowering, NoGpuCodeError
from tilec.ops.rules import Datum, Facts, HostExpression, Machine, OpRules, Places, Placing
from tilec.ops.uses import Domain
from tilec.types import I32, TF32, Element, TileType, Type


class _Constant(Operation):
    """`Tile::<T, …>::zeros()` and `ones()`."""

    form = Form.TILE

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.signature = f"Tile::<T, …>::{name}()"
        self.summary = f"A tile of {'zeros (`false`)' if number == 0 else 'ones (`true`)'}."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 0, None)
        return _tile(call)

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        return constant(element_in(emission.result), self.number, emission.result.shape)


def _tile(call: Call) -> TileType:
    """The type that `Tile::<T, …>` names."""
    if not call.generics:
        message = "`Tile` needs an element type and extents"
        raise uses.refuse(
            "E0203", message, Label(call.span), help=f"`Tile::<f32, 128>::{call.name}(…)`"
        )
    element = uses.element(call)
    if element == TF32:
        message = "`tf32` is made by `.to::<tf32>()` only"
        raise uses.refuse("E0203", message, Label(call.generic_spans[0]))
    return TileType(element, uses.extents(call, 1))


class _Full(Operation):
    name = "full"
    form = Form.TILE
    signature = "Tile::<T, …>::full(v)"
    summary = "A tile of one value."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, None)
        tile = _tile(call)
        uses.expect_scalar(call, 0)
        assert isinstance(tile.element, Element)
        uses.unify_with(call, 0, tile.element, call.generic_spans[0])
        return tile

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        return spread(emission.operands[0], element_in(emission.result), emission.result.shape)


class _Splat(Operation):
    """As a method of scalars and as a function."""

    name = "splat"

    def __init__(self, form: Form, signature: str) -> None:
        self.form = form
        self.receiver = Receiver.TILE if form is Form.METHOD else None
        self.signature = signature
        self.summary = "A tile of one value, of these extents."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, None)
        value = uses.expect_scalar(call, 0)
        return TileType(value.element, uses.extents(call))

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        return spread(emission.operands[0], element_in(emission.result), emission.result.shape)


class _Iota(Operation):
    name = "iota"
    form = Form.FUNCTION
    signature = "iota::<T, N>()"
    summary = "The tile 0, 1, 2, …, N - 1; it wraps in a type that is too narrow."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 0, 2)
        element = uses.element(call)
        if not uses.in_domain(element, Domain.NUMBER):
            message = f"`iota` makes integers and floats, got `{element}`"
            raise uses.refuse("E0203", message, Label(call.generic_spans[0]))
        return TileType(element, uses.extents(call, 1))

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        [length] = emission.result.shape
        return counted(element_in(emission.result), length)


def counted(element: Element, length: int) -> ir.Value:
    """The tile 0, 1, 2, … of numbers of an element type."""
    if element.is_float:
        return converted(counted(I32, length), I32, element)
    return make("tile.iota", tile_type(TileType(element, (length,))))


OPERATIONS: tuple[Operation, ...] = (
    _Constant("zeros", 0),
    _Constant("ones", 1),
    _Full(),
    _Splat(Form.FUNCTION, "splat::<…>(v)"),
    _Splat(Form.METHOD, "v.splat::<…>()"),
    _Iota(),
)


class _Source(OpRules):
    """Makes a tile from nothing but scalars, in whatever layout is asked for."""

    flexible = True

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        return Places((None,) * len(known), (None,) * len(op.results))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        return (None,) * len(op.operands)


class _ArithConstant(_Source):
    name = "arith.constant"
    constant = True

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        result = op.results[0].type
        value = op.attributes["value"]
        if not isinstance(value, ir.DenseElementsAttr):
            return [_number(value, result)]
        if value.is_splat:
            return [np.broadcast_to(_number(value.get_splat_value(), result), shape_of(result))]
        return [np.array(value).astype(dtype_of(result)).reshape(shape_of(result))]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        value = op.attributes["value"]
        if str(op.results[0].type) == "i1":
            return [TRUE if attribute_number(value) else FALSE]
        if isinstance(value, ir.IntegerAttr):
            return [always(int(value.value))]
        return reasoning.opaque(op)

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        value = attribute_number(op.attributes["value"])
        if isinstance(value, float) and not isfinite(value):
            return None  # JSON, and so a manifest, has no such number
        return bool(value) if str(op.results[0].type) == "i1" else value

    def divisor(self, op: ir.OpView, facts: Facts) -> int:
        value = op.attributes["value"]
        if isinstance(value, ir.DenseElementsAttr):
            if not value.is_splat:
                return 1
            value = value.get_splat_value()
        return abs(int(attribute_number(value)))

    def bits(self, op: ir.OpView, facts: Facts) -> int | None:
        number = int(attribute_number(op.attributes["value"]))
        return number.bit_length() if number >= 0 else None

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        value = op.attributes["value"]
        if isinstance(value, ir.DenseElementsAttr):
            value = value.get_splat_value() if value.is_splat else None
        if not isinstance(value, ir.IntegerAttr):
            return None
        number = int(attribute_number(value))
        return Linear(low=number, high=number)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [result] = op.results
        kind = lowering.type_of(result.type)
        value = op.attributes["value"]
        if not isinstance(result.type, ir.RankedTensorType):
            return [_held_constant(value, kind)]
        if not value.is_splat:
            raise NoGpuCodeError(op, "a tile of different constants")
        return [splat(_held_constant(value.get_splat_value(), kind.element_type), kind.shape[0])]

    def may_wait(self, op: ir.OpView) -> bool:
        return is_tile(op.results[0])


def _held_constant(attribute: ir.Attribute, held: ir.Type) -> ir.Value:
    """A number as threads hold it: f8 by its bits."""
    if isinstance(attribute, ir.FloatAttr) and isinstance(held, ir.IntegerType):
        bits = rounded(np.float64(attribute.value), attribute.type).view(np.int8)
        return arith.constant(held, int(bits))
    return arith.constant(held, attribute)


def _number(attribute: ir.Attribute, kind: ir.Type) -> np.ndarray:
    number = attribute_number(attribute)
    if isinstance(number, float):
        return rounded(np.float64(number), element_of(kind))
    return np.asarray(number, np.int64).astype(dtype_of(kind))


class _TensorSplat(_Source):
    name = "tensor.splat"

    def divisor(self, op: ir.OpView, facts: Facts) -> int:
        return facts.divisor(op.operands[0])

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        return operands[0]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.broadcast_to(operands[0], shape_of(op.results[0].type))]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [count] = ir.VectorType(lowering.type_of(op.results[0].type)).shape
        return [splat(operands[0], count)]

    def may_wait(self, op: ir.OpView) -> bool:
        return True


_COORDINATE_BITS = 32


class _TileIota(_Source):
    name = "tile.iota"

    def counts(self, op: ir.OpView) -> bool:
        return True

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        return Linear(high=shape_of(op.results[0].type)[0] - 1)

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        kind = op.results[0].type
        return [np.arange(shape_of(kind)[0], dtype=np.int64).astype(dtype_of(kind))]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        layout = layout_of(op.results[0].type)
        numbers = pack([c for [c] in lowering.coordinates(layout)])
        target = lowering.type_of(op.results[0].type)
        element = ir.VectorType(target).element_type
        if isinstance(element, ir.IndexType):
            return [arith.index_cast(target, numbers)]
        width = ir.IntegerType(element).width
        if width == _COORDINATE_BITS:
            return [numbers]
        convert = arith.trunci if width < _COORDINATE_BITS else arith.extui
        return [convert(target, numbers)]


class _Empty(_Source):
    """`tensor.empty`: numbers that nobody reads; zeros, so that runs repeat."""

    name = "tensor.empty"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        kind = op.results[0].type
        return [np.broadcast_to(np.zeros((), dtype_of(kind)), shape_of(kind))]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [llvm.mlir_poison(lowering.type_of(op.results[0].type))]


class _Poison(_Source):
    """`ub.poison`, which folding leaves where nothing depends on it."""

    name = "ub.poison"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        kind = op.results[0].type
        return [np.zeros(shape_of(kind), dtype_of(kind))]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [llvm.mlir_poison(lowering.type_of(op.results[0].type))]


RULES: tuple[OpRules, ...] = (
    _ArithConstant(),
    _TensorSplat(),
    _TileIota(),
    _Empty(),
    _Poison(),
)
