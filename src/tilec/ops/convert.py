"""`.to::<U>()`, `as` and `.bits::<U>()`.

Float to integer truncates toward zero and saturates, NaN gives 0; integer to integer keeps the low
bits; to float, and between floats, rounds once to nearest even; to f8 saturates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.integers.formula import FORMULAS, equal
from tilec.integers.number import Number, always, combined, compared
from tilec.integers.number import chosen as chosen_number
from tilec.ir.dialects import arith
from tilec.ops import uses
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.broadcasting import element_in
from tilec.ops.build import integer, like, make
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.conversions import not_zero
from tilec.ops.formats import (
    Array,
    dtype_of,
    element_of,
    from_integers,
    rounded,
    saturated_f8,
    signed,
    unsigned,
    wide,
)
from tilec.ops.fragments import in_memory, with_element
from tilec.ops.host_expression import as_unsigned
from tilec.ops.linear import Linear, signed_range
from tilec.ops.lower_bytes import are_bytes_to_bf16, bytes_to_bf16
from tilec.ops.lower_f8 import from_f8, to_f8
from tilec.ops.lower_tf32 import to_tf32
from tilec.ops.lower_to_integers import saturated
from tilec.ops.lowering import Lowered, Lowering, lower_elementwise
from tilec.ops.packed_words import (
    are_bf16_to_singles,
    are_bytes_to_halves,
    as_singles,
    widened,
)
from tilec.ops.rules import Datum, ElementwiseRules, Facts, HostExpression, Machine, OpRules
from tilec.types import (
    BF16,
    BOOL,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    I64,
    TF32,
    USIZE,
    Element,
    TileType,
    Type,
)

_F8 = (F8E4M3, F8E5M2)


def converted(value: ir.Value, source: Element, target: Element) -> ir.Value:
    """A tile or scalar as another element type."""
    if source == target:
        return value
    if target == USIZE and source.is_float:
        return converted(converted(value, source, I64), I64, USIZE)
    if source == USIZE and target.is_float:
        return converted(converted(value, USIZE, I64), I64, target)
    if source.is_float:
        return _from_float(value, source, target)
    return _from_integer(value, source, target)


def _from_float(value: ir.Value, source: Element, target: Element) -> ir.Value:
    result = like(value, target)
    if not target.is_float:
        return _saturating(value, target, is_signed=target.is_signed)
    if source in _F8 and target in _F8:
        return converted(converted(value, source, F32), F32, target)
    if target in _F8:
        return _saturating(value, target, is_signed=True)
    if {source, target} == {F16, BF16}:
        return converted(converted(value, source, F32), F32, target)
    wider = _significant_bits(source) < _significant_bits(target)
    return make("arith.extf" if wider else "arith.truncf", result, value)


def _significant_bits(element: Element) -> int:
    return {"f8e5m2": 3, "f8e4m3": 4, "bf16": 8, "f16": 11, "tf32": 11, "f32": 24, "f64": 53}[
        element.name
    ]


def _saturating(value: ir.Value, target: Element, *, is_signed: bool) -> ir.Value:
    return make("tile.saturating_cast", like(value, target), value, signed=integer(is_signed))


def _from_integer(value: ir.Value, source: Element, target: Element) -> ir.Value:
    result = like(value, target)
    if target in _F8:
        # Every integer that f32 does not hold is beyond the largest f8: nothing rounds twice.
        return converted(converted(value, source, F32), F32, target)
    if target.is_float:
        return make("arith.sitofp" if source.is_signed else "arith.uitofp", result, value)
    if USIZE in (source, target):
        return _index_cast(value, source, target)
    own, wanted = _stored_bits(source), _stored_bits(target)
    if own == wanted:
        return value
    if own > wanted:
        return make("arith.trunci", result, value)
    return make("arith.extsi" if source.is_signed else "arith.extui", result, value)


def _index_cast(value: ir.Value, source: Element, target: Element) -> ir.Value:
    is_signed = source.is_signed
    return make(
        "arith.index_cast" if is_signed else "arith.index_castui", like(value, target), value
    )


def _stored_bits(element: Element) -> int:
    return 1 if element == BOOL else element.bits


@dataclass(frozen=True)
class _To(Operation):
    """The conversion, as a method of tiles and scalars or as `as`, which is for scalars."""

    name: str
    form: Form
    signature: str
    summary: str
    receiver: Receiver | None = None

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, 1)
        tile = uses.expect_tile(call, 0)
        target = uses.element(call)
        if self.form is Form.OPERATOR and not tile.is_scalar:
            raise uses.refuse(
                "E0203",
                f"`as` converts scalars, got `{tile}`",
                Label(call.arguments[0].span),
                help=f"tiles are converted by a method: `.to::<{target}>()`",
            )
        if why := _no_conversion(tile, target):
            message = f"`{tile.element}` cannot become `{target}`"
            raise uses.refuse("E0203", message, Label(call.span), help=why)
        return TileType(target, tile.shape)

    def emit(self, emission: Emission) -> ir.Value:
        [value] = emission.operands
        return converted(value, element_in(emission.types[0]), element_in(emission.result))


def _no_conversion(tile: TileType, target: Element) -> str | None:
    """What to write instead of a conversion that there is not."""
    source = tile.element
    if target == BOOL and source != BOOL:
        return f"compare instead: {not_zero(source)}"
    if target == TF32 and source not in (F32, TF32):
        return "convert to `f32` first: `.to::<f32>().to::<tf32>()`"
    if source == TF32 and target not in (F32, TF32):
        return "convert to `f32` first: `.to::<f32>()`"
    return None


class _Bits(Operation):
    name = "bits"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "x.bits::<U>()"
    summary = "The same bits as another element type of the same width."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, 1)
        tile = uses.expect_tile(call, 0)
        target = uses.element(call)
        if {tile.element, target} & {BOOL, TF32}:
            message = f"`bits` works on numbers in memory, got `{tile.element}` and `{target}`"
            raise uses.refuse("E0203", message, Label(call.span))
        if not isinstance(tile.element, Element):
            message = f"`bits` expected a known element type, got `{tile.element}`"
            help = "write the literal with a suffix: `1u32`"
            raise uses.refuse("E0203", message, Label(call.arguments[0].span), help=help)
        if tile.element.bits != target.bits:
            message = f"`{tile.element}` and `{target}` differ in width"
            raise uses.refuse("E0203", message, Label(call.span))
        return TileType(target, tile.shape)

    def emit(self, emission: Emission) -> ir.Value:
        [value] = emission.operands
        source, target = element_in(emission.types[0]), element_in(emission.result)
        if not (source.is_float or target.is_float):
            return converted(value, source, target)
        if source == USIZE:
            value = converted(value, USIZE, I64)
        if target == USIZE:
            return converted(make("arith.bitcast", like(value, I64), value), I64, USIZE)
        if source == target:
            return value
        return make("arith.bitcast", like(value, target), value)


OPERATIONS: tuple[Operation, ...] = (
    _To(
        "to",
        Form.METHOD,
        "x.to::<U>()",
        "Conversion: to nearest even; to integers toward zero, saturating, NaN gives 0; to f8"
        " saturating; between integers the low bits.",
        Receiver.TILE,
    ),
    _To("as", Form.OPERATOR, "x as U", "`x.to::<U>()`, on scalars only."),
    _Bits(),
)


def _is_f8(element: ir.Type) -> bool:
    return str(element).startswith("f8")


class _FloatToFloat(ElementwiseRules):
    """`arith.extf` and `arith.truncf`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [rounded(wide(operands[0]), op.results[0].type)]

    def rounded(self, op: ir.OpView) -> ir.Type | None:
        # Measured (H100): maps of TFLOAT32 round to nearest even, and keep subnormal numbers.
        source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
        is_of_copies = isinstance(source, ir.F32Type) and isinstance(target, ir.FloatTF32Type)
        return target if is_of_copies else None

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
        if _is_f8(source):
            return [from_f8(operands[0], source, target)]
        if str(target) == "tf32":
            assert isinstance(operands[0], ir.Value), "a number is converted"
            return [to_tf32(operands[0])]
        if str(source) == "tf32":
            return [operands[0]]
        [value], wide = operands, lowering.type_of(op.results[0].type)
        if isinstance(value, ir.Value) and are_bf16_to_singles(value.type, wide):
            return [as_singles(value, wide)]
        return lower_elementwise(op, operands, lowering)


class _IntegerToFloat(ElementwiseRules):
    def __init__(self, name: str, *, is_signed: bool) -> None:
        self.name, self.is_signed = name, is_signed

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        [values] = operands
        values = signed(values) if self.is_signed else unsigned(values)
        return [from_integers(values, op.results[0].type)]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [value] = operands
        assert isinstance(value, ir.Value)
        if are_bytes_to_bf16(value.type, lowering.type_of(op.results[0].type)):
            return [bytes_to_bf16(value, is_signed=self.is_signed)]
        return lower_elementwise(op, [value], lowering)


class _IntegerToInteger(ElementwiseRules):
    """Low bits kept, or more bits put before them: the sign's or zeros."""

    def __init__(self, name: str, *, is_signed: bool = True) -> None:
        self.name, self.is_signed = name, is_signed

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        [values] = operands
        target = dtype_of(op.results[0].type)
        if target == np.dtype(np.bool_):
            return [(values & values.dtype.type(1)).astype(target)]
        if values.dtype == np.dtype(np.bool_):
            ones = values.astype(target)
            return [-ones if self.is_signed else ones]
        return [(values if self.is_signed else unsigned(values)).astype(target)]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [value] = operands
        assert isinstance(value, ir.Value), "a number is converted"
        target = lowering.type_of(op.results[0].type)
        if are_bytes_to_halves(value.type, target):
            return [widened(value, target, is_signed=self.is_signed)]
        return lower_elementwise(op, [value], lowering)

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [value], source, target = operands, op.operands[0].type, op.results[0].type
        if isinstance(value, FORMULAS):
            value = chosen_number(value, always(-1 if self.is_signed else 1), always(0))
        if not isinstance(value, Number):
            return reasoning.opaque(op)
        if str(target) == "i1":
            rest = reasoning.quotient(value, always(2), "floor", op)
            odd = combined(lambda x, half: x - half.scaled(2), value, rest)
            return [compared(equal, odd, always(1))]
        if not self.is_signed and str(source) != "i1":
            value = reasoning.unsigned(value, source)
        return [reasoning.wrapped(value, target, op)]

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        [value] = op.operands
        old, new = (64 if str(t) == "index" else t.width for t in (value.type, op.results[0].type))
        # Equal widths keep the bits: `usize` is signed where it is made of a `u64`, too.
        if self.is_signed or old == new:
            found = host_of(value)
        else:
            found = as_unsigned(value.type, host_of(value))
        if old <= new:
            return found
        kind = op.results[0].type
        return found if isinstance(found, bool) else (str(kind), found)

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        [form] = operands
        source, target = (signed_range(element_of(v.type)) for v in (*op.operands, *op.results))
        if form is None or target[1] <= source[1]:  # narrower types keep the low bits
            return form
        low = source[0] if self.is_signed else 0
        is_exact = not form.terms and low <= form.low and form.high <= source[1]
        return form if is_exact else None

    def divisor(self, op: ir.OpView, facts: Facts) -> int:
        found = facts.divisor(op.operands[0])
        return found & -found

    def bits(self, op: ir.OpView, facts: Facts) -> int | None:
        # Only what is at least as wide as the number keeps it as it is.
        return facts.bits(op.operands[0]) if str(op.results[0].type) == "index" else None


class _SaturatingCast(ElementwiseRules):
    name = "tile.saturating_cast"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        result = op.results[0].type
        target = dtype_of(result)
        if _is_f8(element_of(result)):
            return [saturated_f8(wide(operands[0]), result)]
        is_signed = bool(ir.IntegerAttr(op.attributes["signed"]).value)
        return [_saturated(wide(operands[0]), target.itemsize * 8, is_signed).astype(target)]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        source, result = element_of(op.operands[0].type), op.results[0].type
        [value] = operands
        assert isinstance(value, ir.Value)
        if _is_f8(element_of(result)):
            return [to_f8(value, source, element_of(result))]
        if _is_f8(source):
            value = from_f8(value, source, ir.F32Type.get())
        is_signed = bool(ir.IntegerAttr(op.attributes["signed"]).value)
        target = lowering.type_of(result)
        held = with_element(target, in_memory(element_of(result)))
        done = saturated(value, held, is_signed=is_signed)
        if held == target:
            return [done]
        return [arith.index_cast(target, done)]


def _saturated(values: Array, bits: int, is_signed: bool) -> Array:
    """float64 to 64-bit integers within the range of `bits`, as bits of int64."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    truncated = np.trunc(np.where(np.isnan(values), 0.0, values))
    # `high` of 64 bits is no float64: what reaches 2^bits is set apart.
    inside = (truncated > low) & (truncated < float(high))
    kind = np.int64 if is_signed else np.uint64
    whole = np.where(inside, truncated, 0.0).astype(kind)
    edge = np.where(truncated < float(high), kind(low), kind(high))
    return np.where(inside, whole, edge).astype(kind).view(np.int64)


class _Bitcast(ElementwiseRules):
    name = "arith.bitcast"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [operands[0].view(dtype_of(op.results[0].type))]


RULES: tuple[OpRules, ...] = (
    _FloatToFloat("arith.extf"),
    _FloatToFloat("arith.truncf"),
    _IntegerToFloat("arith.sitofp", is_signed=True),
    _IntegerToFloat("arith.uitofp", is_signed=False),
    _IntegerToInteger("arith.extsi"),
    _IntegerToInteger("arith.extui", is_signed=False),
    _IntegerToInteger("arith.trunci"),
    _IntegerToInteger("arith.index_cast"),
    _IntegerToInteger("arith.index_castui", is_signed=False),
    _SaturatingCast(),
    _Bitcast(),
)
