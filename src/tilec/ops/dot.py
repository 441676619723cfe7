"""`dot(a, b, acc)` and `a.dot(b)`: matrix products, batched at rank 3."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import CompileError, Label
from tilec.ir.types import is_tile, tile_type
from tilec.layout import LANES, Layout
from tilec.layout.costs import ARITHMETIC
from tilec.layout.fma import (
    fma_accumulator_layout,
    fma_operand_layouts,
    is_fma_accumulator_layout,
)
from tilec.layout.mma import Mma, accumulator_layout, is_accumulator_layout, operand_layouts
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import constant, make, make_with_body, segments
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.comes_as import comes_as
from tilec.ops.convert import converted
from tilec.ops.encoding import layout_of
from tilec.ops.formats import element_of, rounded, unsigned, wide
from tilec.ops.fragments import bit_width, pack, unpack
from tilec.ops.lower_dot import Factor, lower_fma, lower_mma, mma_for, order_of_neighbours
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.registry import rules
from tilec.ops.rules import Datum, ElementwiseRules, Machine, OpRules, Places, Placing, shape_of
from tilec.ops.staged import StagedFactor
from tilec.types import (
    BF16,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I8,
    I32,
    TF32,
    U8,
    Element,
    ElementLike,
    TileType,
    Type,
)

# What products of an element type may be summed in; the first is what `a.dot(b)` takes.
ACCUMULATORS: dict[Element, tuple[Element, ...]] = {
    F16: (F32, F16), BF16: (F32,), F8E4M3: (F32,), F8E5M2: (F32,), TF32: (F32,), F32: (F32,),
    F64: (F64,), I8: (I32,), U8: (I32,),
}  # fmt: skip


def _operands(call: Call) -> tuple[Element, tuple[int, ...]]:
    """The element type of the two factors and the shape of their product."""
    left, right = uses.expect_tile(call, 0), uses.expect_tile(call, 1)
    element = _factor(call, left.element, right.element)
    if left.rank != right.rank or left.rank not in (2, 3):
        message = f"`{call.name}` takes two tiles of rank 2 or 3, got `{left}` and `{right}`"
        raise uses.refuse("E0301", message, *_both(call, left, right))
    if left.shape[-1] != right.shape[-2] or left.shape[:-2] != right.shape[:-2]:
        raise uses.refuse(
            "E0301",
            f"`{call.name}` takes (M, K) and (K, N), got {uses.shape_text(left.shape)} and"
            f" {uses.shape_text(right.shape)}",
            *_both(call, left, right),
            help=_transposition(left, right),
        )
    shape = (*left.shape[:-1], right.shape[-1])
    uses.expect_size(shape, call.span)
    return element, shape


def _both(call: Call, left: TileType, right: TileType) -> tuple[Label, Label]:
    return (
        Label(call.arguments[1].span, f"this is `{right}`"),
        Label(call.arguments[0].span, f"this is `{left}`"),
    )


def _transposition(left: TileType, right: TileType) -> str | None:
    if left.shape[:-2] == right.shape[:-2] and left.shape[-1] == right.shape[-1]:
        return "transpose the second: `.t()`"
    return None


def _factor(call: Call, left: ElementLike, right: ElementLike) -> Element:
    """The element type of both factors; the two f8 types may meet."""
    f8 = {F8E4M3, F8E5M2}
    if not {left, right} <= f8:
        left = uses.unify(call, (0, 1))
    if not isinstance(left, Element) or left not in ACCUMULATORS:
        names = ", ".join(f"`{element}`" for element in ACCUMULATORS)
        message = f"`{call.name}` multiplies {names}, got `{left}`"
        raise uses.refuse("E0203", message, Label(call.arguments[0].span))
    return left


class _Dot(Operation):
    name = "dot"
    form = Form.FUNCTION
    signature = "dot(a, b, acc)"
    summary = (
        "`acc` plus the matrix product of `a` and `b`: f16, bf16, f8, tf32 and f32 in f32 (f16 also"
        " in f16), f64 in f64, i8 and u8 in i32; batched at rank 3."
    )

    def result_type(self, call: Call) -> Type:
        if len(call.arguments) == 2:
            help = "without an accumulator write `a.dot(b)`, with one `dot(a, b, acc)`"
            message = "`dot` takes 3 arguments, got 2"
            raise uses.refuse("E0203", message, Label(call.span), help=help)
        uses.expect_counts(call, 3)
        element, shape = _operands(call)
        accumulator = uses.expect_tile(call, 2)
        allowed = ACCUMULATORS[element]
        if not any(call.inference.unify(accumulator.element, wanted) for wanted in allowed):
            raise self._wrong_accumulator(call, element, accumulator)
        if accumulator.shape != shape:
            raise uses.refuse(
                "E0301",
                f"the product has shape {uses.shape_text(shape)}, its accumulator"
                f" {uses.shape_text(accumulator.shape)}",
                Label(call.arguments[2].span, f"this is `{accumulator}`"),
                *reversed(_both(call, *(uses.expect_tile(call, i) for i in (0, 1)))),
            )
        return uses.expect_tile(call, 2)

    def _wrong_accumulator(
        self, call: Call, element: Element, accumulator: TileType
    ) -> CompileError:
        wanted = " or ".join(f"`{allowed}`" for allowed in ACCUMULATORS[element])
        return uses.refuse(
            "E0202",
            f"products of `{element}` are summed in {wanted}, got `{accumulator.element}`",
            Label(call.arguments[2].span, f"this is `{accumulator.element}`"),
            Label(call.arguments[0].span, f"this is `{element}`"),
        )

    def emit(self, emission: Emission) -> ir.Value:
        a, b, accumulator = emission.operands
        return _product(emission, a, b, accumulator)


class _DotMethod(Operation):
    name = "dot"
    form = Form.METHOD
    receiver = Receiver.TILE
    signature = "a.dot(b)"
    summary = "`dot(a, b, acc)` from zeros, in the first type that it names."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2)
        element, shape = _operands(call)
        return TileType(ACCUMULATORS[element][0], shape)

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        a, b = emission.operands
        zeros = constant(element_in(emission.result), 0, emission.result.shape)
        return _product(emission, a, b, zeros)


def _product(emission: Emission, a: ir.Value, b: ir.Value, accumulator: ir.Value) -> ir.Value:
    assert isinstance(emission.result, TileType)
    left, right = (element_in(kind) for kind in emission.types[:2])
    total = element_in(emission.result)

    def body(block: ir.Block) -> Sequence[ir.Value]:
        x, y, sofar = block.arguments
        x, y = converted(x, left, total), converted(y, right, total)
        names = ("arith.mulf", "arith.addf") if total.is_float else ("arith.muli", "arith.addi")
        return [make(names[1], sofar.type, sofar, make(names[0], x.type, x, y))]

    elements = [ir.RankedTensorType(v.type).element_type for v in (a, b, accumulator)]
    attributes = {"operandSegmentSizes": segments(2, 1)}
    if left == U8:
        attributes["cast"] = ir.Attribute.parse("#linalg.type_fn<cast_unsigned>")
    return make_with_body(
        "linalg.matmul" if emission.result.rank == 2 else "linalg.batch_matmul",
        [tile_type(emission.result)],
        [a, b, accumulator],
        body,
        elements,
        **attributes,
    ).results[0]


OPERATIONS: tuple[Operation, ...] = (_Dot(), _DotMethod())


class _Matmul(OpRules):
    """In float64, rounded once: closer than any order of sums in the accumulator's type."""

    def __init__(self, name: str) -> None:
        self.name = name

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        a, b, accumulator = operands
        result = op.results[0].type
        if isinstance(element_of(result), ir.IntegerType):
            if _is_unsigned(op):
                a, b = unsigned(a), unsigned(b)
            product = np.matmul(a.astype(np.int64), b.astype(np.int64))
            return [(product + accumulator).astype(accumulator.dtype)]
        return [rounded(np.matmul(wide(a), wide(b)) + wide(accumulator), result)]

    def multiplied(self, op: ir.OpView) -> tuple[str, str, str] | None:
        a, b, sums = (_element_name(v.type) for v in list(op.operands)[:3])
        if _is_unsigned(op):
            a, b = a.replace("i", "u"), b.replace("i", "u")
        return a, b, sums

    def warps(self, op: ir.OpView) -> int | None:
        """Some thousand elements of the product for each; more where registers would not do."""
        *batch, rows, columns = shape_of(op.results[0])
        mma = _mma_of(op)
        if mma is not None:
            rows, columns = max(rows, mma.m), max(columns, mma.n)
        elements = prod(batch) * rows * columns
        words = elements * bit_width(element_of(op.results[0].type)) // 32
        warps = max(1, min(4, elements // 1024), min(8, elements // 2048))
        warps = 1 << warps.bit_length() - 1
        while words // (LANES * warps) > _SUMS_PER_THREAD:
            warps *= 2
        return warps

    def shared_at_once(self, op: ir.OpView) -> Sequence[ir.Value]:
        return tuple(op.operands)[:2]

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        mma = _mma_of(op)
        [sums] = self.place_results(op, known, placing)
        if mma is None:
            factors = (
                layout if _lies_in_shared(value) else _made_or_default(value, placing)
                for value, layout in zip(
                    list(op.operands)[:2],
                    fma_operand_layouts(sums, shape_of(op.operands[0])[-1]),
                    strict=True,
                )
            )
            return Places((*factors, sums), (sums,))
        layouts = _factor_layouts(op, sums, mma, placing)
        wanted = (
            layout
            if _lies_in_shared(value) or _is_held(value, layout, op)
            else _made_or_default(value, placing)
            for value, layout in zip(list(op.operands)[:2], layouts, strict=True)
        )
        return Places((*wanted, sums), (sums,))

    def place_results(
        self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing
    ) -> tuple[Layout]:
        """That of sums does not depend on factors, which may be products, too."""
        mma, shape, sums = _mma_of(op), shape_of(op.results[0]), known[2]
        if mma is None:
            if sums is not None and is_fma_accumulator_layout(sums):
                return (sums,)
            return (fma_accumulator_layout(shape, placing.warps),)
        if sums is not None and is_accumulator_layout(sums, mma):
            return (sums,)
        return (accumulator_layout(shape, placing.warps, mma, rows_first=_is_chained(op)),)

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        """Four partitions of a multiprocessor work at once: an FMA takes a cycle of one of them, an
        `mma` of 16x8x16 some 16."""
        mma, [sums] = _mma_of(op), places.results
        assert sums is not None, "a product has a layout"
        depth = shape_of(op.operands[0])[-1]
        if mma is None:
            return ARITHMETIC * sums.registers * depth
        instructions = ceil(sums.registers * LANES / (mma.m * mma.n)) * ceil(depth / mma.k)
        return ARITHMETIC * _MMA_CYCLES * instructions

    def reads_shared(self, use: ir.OpOperand) -> bool:
        return bool(use.operand_number < 2)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        left, right, held = operands
        assert isinstance(held, ir.Value)
        factors = []
        for value, factor in zip(list(op.operands)[:2], (left, right), strict=True):
            assert isinstance(factor, ir.Value | StagedFactor)
            kind = value.type
            factors.append(Factor(str(element_of(kind)), layout_of(kind), factor, _is_unsigned(op)))
        a, b = factors
        layout, sums = layout_of(op.results[0].type), unpack(held)
        mma = _mma_of(op)
        if mma is None:
            return [pack(lower_fma(a, b, layout, sums, lowering))]
        return [pack(lower_mma(mma, a, b, layout, sums, lowering))]


# Of the 32-bit registers of a thread, what a product may take: factors and addresses need some.
_SUMS_PER_THREAD = 128
_FACTOR_WORDS = 64
_MMA_CYCLES = 16.0
# How far back it is asked how a tile is made.
_MOST_STEPS = 6


def _element_name(tile: ir.Type) -> str:
    """As the language has it; an unsigned integer is as a signed one."""
    return str(element_of(tile)).lower().replace("f8e4m3fn", "f8e4m3")


def _is_unsigned(op: ir.OpView) -> bool:
    return "cast" in op.attributes and "unsigned" in str(op.attributes["cast"])


def _mma_of(op: ir.OpView) -> Mma | None:
    left = op.operands[0]
    return mma_for(str(element_of(left.type)), shape_of(left)[-1])


def _lies_in_shared(factor: ir.Value) -> bool:
    """Whether a factor is read from where it lies: the layout is that of what is read."""
    is_made = not isinstance(factor.owner, ir.Block)
    return is_made and rules()[factor.owner.name].lies_in_shared


def _is_held(factor: ir.Value, layout: Layout, op: ir.OpView) -> bool:
    """Whether a thread has a factor in registers as a whole, before it multiplies.

    Else it is read where it is used, each time. One that is made where it is used is hardly held
    for long; what comes from outside a loop is better kept.
    """
    words = layout.registers * bit_width(element_of(factor.type)) // 32
    is_block = isinstance(factor.owner, ir.Block)
    is_from_here = not is_block and factor.owner.parent == op.operation.parent
    return words <= (_FACTOR_WORDS if is_from_here else 2 * _FACTOR_WORDS)


def _factor_layouts(
    op: ir.OpView, sums: Layout, mma: Mma, placing: Placing
) -> tuple[Layout, Layout]:
    """As instructions take factors; or in another order along k, where threads then load both from
    memory as they are taken, and else would exchange them."""
    factors, depth = list(op.operands)[:2], shape_of(op.operands[0])[-1]
    plain = operand_layouts(sums, mma, depth)
    order = order_of_neighbours(mma, bit_width(element_of(factors[0].type)) // 8, depth)
    if order.neighbours in (None, mma.word):
        return plain
    others = operand_layouts(sums, mma, depth, order)
    for layouts in (plain, others):
        if all(comes_as(*one, placing) for one in zip(factors, layouts, strict=True)):
            return layouts
    return plain


def _made_or_default(value: ir.Value, placing: Placing) -> Layout:
    made = _made_in(value, placing, _MOST_STEPS, {})
    return made or placing.default(shape_of(value))


def _made_in(
    value: ir.Value,
    placing: Placing,
    steps: int,
    known: dict[tuple[ir.Value, int], Layout | None],
) -> Layout | None:
    """The layout that a tile is best made in, as far as those say who make it.

    `known` is what was asked already: of what a tile is made of, much may be the same.
    """
    if steps == 0 or isinstance(value.owner, ir.Block):
        return None
    op = value.owner.opview
    rule = rules()[op.operation.name]
    if rule.control:
        return None
    if (value, steps) not in known:
        operands = [
            _made_in(v, placing, steps - 1, known) if is_tile(v) else None for v in op.operands
        ]
        number: int = ir.OpResult(value).result_number
        known[value, steps] = rule.place_results(op, operands, placing)[number]
    return known[value, steps]


def _is_chained(op: ir.OpView) -> bool:
    """Whether its result becomes the first factor of another product, or its own is one.

    Element by element, that is: then warps that have whole rows pass them on in registers.
    """
    return _reaches_product(op.results[0]) or _is_from_product(op.operands[0])


def _reaches_product(value: ir.Value) -> bool:
    seen: set[ir.Value] = set()
    ahead = [value]
    while ahead:
        value = ahead.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            rule = rules()[use.owner.operation.name]
            if isinstance(rule, _Matmul) and use.operand_number == 0:
                return True
            if isinstance(rule, ElementwiseRules):
                ahead += use.owner.results
    return False


def _is_from_product(value: ir.Value) -> bool:
    seen: set[ir.Value] = set()
    behind = [value]
    while behind:
        value = behind.pop()
        if value in seen or isinstance(value.owner, ir.Block):
            continue
        seen.add(value)
        rule = rules()[value.owner.name]
        if isinstance(rule, _Matmul):
            return True
        if isinstance(rule, ElementwiseRules):
            behind += value.owner.operands
    return False


RULES: tuple[OpRules, ...] = (_Matmul("linalg.matmul"), _Matmul("linalg.batch_matmul"))
