"""`& | ^ !` on integers and `bool`, `<< >>` with the count masked to the width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from tilec.integers.formula import Formula, both, either, negated
from tilec.integers.number import Number, always, combined
from tilec.ops import uses
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.bits_as_numbers import bits_of_both
from tilec.ops.broadcasting import Builder, element_in, operator
from tilec.ops.build import constant_like, known_integer, make, spread
from tilec.ops.call import Call, Emission, Form, Operation
from tilec.ops.convert import converted
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.meaning import Elementwise, Unsigned, abstract_by
from tilec.ops.packed_words import may_shift_words, shifted_right
from tilec.ops.rules import DivisorsWhere, OpRules
from tilec.ops.uses import Domain
from tilec.types import BOOL, Element, TileType, Type


def _binary(name: str) -> Builder:
    return lambda element, a, b: make(name, a.type, a, b)


def inverted(element: Element, a: ir.Value) -> ir.Value:
    ones = constant_like(a, element, True if element == BOOL else -1)
    return make("arith.xori", a.type, a, ones)


class _Shift(Operation):
    """The count may have its own integer type: only its low bits matter."""

    form = Form.OPERATOR
    receiver = None

    def __init__(self, name: str, summary: str, op_for: Callable[[Element], str]) -> None:
        self.name, self.summary, self.op_for = name, summary, op_for
        self.signature = f"a {name} n"

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2)
        for index in (0, 1):
            uses.expect_domain(call, index, Domain.INTEGER)
        return TileType(uses.expect_tile(call, 0).element, uses.broadcast(call, (0, 1)))

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        value, count = emission.operands
        element, other = map(element_in, emission.types)
        count = converted(count, other, element)
        value, count = (spread(x, element, emission.result.shape) for x in (value, count))
        mask = constant_like(count, element, element.bits - 1)
        masked = make("arith.andi", count.type, count, mask)
        return make(self.op_for(element), value.type, value, masked)


OPERATIONS: tuple[Operation, ...] = (
    operator("&", 2, Domain.BITS, _binary("arith.andi"), "a & b", "Bits in both; `bool`: and."),
    operator("|", 2, Domain.BITS, _binary("arith.ori"), "a | b", "Bits in either; `bool`: or."),
    operator(
        "^", 2, Domain.BITS, _binary("arith.xori"), "a ^ b", "Bits in one of them; `bool`: differ."
    ),
    operator("!", 1, Domain.BITS, inverted, "!a", "Every bit turned; `bool`: not."),
    _Shift("<<", "Shift to the left by the low bits of `n`.", lambda element: "arith.shli"),
    _Shift(
        ">>",
        "Shift to the right by the low bits of `n`; arithmetic on signed types.",
        lambda element: "arith.shrsi" if element.is_signed else "arith.shrui",
    ),
)


class _And(Elementwise):
    def divisors_where(
        self, op: ir.OpView, number: int, divisors_where: DivisorsWhere
    ) -> Sequence[tuple[ir.Value, int]]:
        if number == 0 or str(op.results[0].type) != "i1":
            return ()
        return [found for operand in op.operands for found in divisors_where(operand, 1)]


def _and(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number:
    found = bits_of_both(reasoning, op, a, b)
    return found if found is not None else _not_followed(reasoning, op)


def _or(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number:
    """`a + b`, but for bits of both, which count once."""
    shared = bits_of_both(reasoning, op, a, b)
    if shared is None:
        return _not_followed(reasoning, op)
    return combined(lambda a, b, shared: a + b - shared, a, b, shared)


def _xor(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number:
    """`a + b`, but for bits of both, which do not count."""
    shared = bits_of_both(reasoning, op, a, b)
    if shared is None:
        return _not_followed(reasoning, op)
    return combined(lambda a, b, shared: a + b - shared.scaled(2), a, b, shared)


def _shifted_left(reasoning: Reasoning, op: ir.OpView, a: Number, count: Number) -> Number:
    power = _power(reasoning, op, count)
    if power is None:
        return _not_followed(reasoning, op)
    return reasoning.wrapped(combined(lambda x, y: x * y, a, power), op.results[0].type, op)


def _shifted_right(reasoning: Reasoning, op: ir.OpView, a: Number, count: Number) -> Number:
    power = _power(reasoning, op, count)
    if power is None:
        return _not_followed(reasoning, op)
    return reasoning.quotient(a, power, "floor", op)


def _power(reasoning: Reasoning, op: ir.OpView, count: Number) -> Number | None:
    count = reasoning.few_values(count)
    if count.known is not None:
        return always(1 << _low_bits(op, count))
    return reasoning.two_to(count, op)


class _ShiftLeft(Unsigned):
    """On bits, so without a sign; to proofs a product, which has one."""

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        return abstract_by(_shifted_left, None, op, operands, reasoning)


class _ShiftRight(Unsigned):
    """By a count that is known, all of a word at once."""

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        value, _ = operands
        assert isinstance(value, ir.Value), "a number is shifted"
        count = known_integer(op.operands[1])
        if count is None or not may_shift_words(value.type, count):
            return super().lower(op, operands, lowering)
        return [shifted_right(value, count)]


def _low_bits(op: ir.OpView, count: Number) -> int:
    assert count.known is not None
    width = 64 if str(op.results[0].type) == "index" else int(op.results[0].type.width)
    return count.known & (width - 1)


def _not_followed(reasoning: Reasoning, op: ir.OpView) -> Number:
    [found] = reasoning.opaque(op)
    assert isinstance(found, Number), "an integer is a number"
    return found


def _differ(a: Formula, b: Formula) -> Formula:
    return either(both(a, negated(b)), both(negated(a), b))


RULES: tuple[OpRules, ...] = (
    _And(
        "arith.andi",
        np.bitwise_and,
        launcher="bitand",
        numbers=_and,
        truths=both,
        decided_by=False,
    ),
    Elementwise(
        "arith.ori",
        np.bitwise_or,
        launcher="bitor",
        numbers=_or,
        truths=either,
        decided_by=True,
    ),
    Elementwise("arith.xori", np.bitwise_xor, launcher="bitxor", numbers=_xor, truths=_differ),
    _ShiftLeft("arith.shli", np.left_shift, "shl"),
    _ShiftRight("arith.shrui", np.right_shift, "shr", _shifted_right),
    Elementwise("arith.shrsi", np.right_shift, launcher="shr", numbers=_shifted_right),
)
