"""`+ - *`, unary `-`, `mul_hi`: integers wrap, floats are IEEE, nothing is contracted."""

from __future__ import annotations

import operator as operator_
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np
from mlir import ir

from tilec.ops.broadcasting import Builder, method, operator
from tilec.ops.build import constant_like, like, make
from tilec.ops.call import Call, Emission, Form, Operation, Value
from tilec.ops.formats import Array, unsigned
from tilec.ops.linear import Linear, product
from tilec.ops.meaning import Elementwise, Rounded, exact
from tilec.ops.rules import Datum, ElementwiseRules, Machine, OpRules
from tilec.ops.uses import Domain
from tilec.types import I64, USIZE, Element, Type


def _binary(float_op: str, integer_op: str) -> Builder:
    def build(element: Element, a: ir.Value, b: ir.Value) -> ir.Value:
        return make(float_op if element.is_float else integer_op, a.type, a, b)

    return build


def negated(element: Element, a: ir.Value) -> ir.Value:
    if element.is_float:
        return make("arith.negf", a.type, a)
    return make("arith.subi", a.type, constant_like(a, element, 0), a)


def _mul_hi(element: Element, a: ir.Value, b: ir.Value) -> ir.Value:
    if element == USIZE:
        a, b = (make("arith.index_cast", like(x, I64), x) for x in (a, b))
    name = "arith.mulsi_extended" if element.is_signed else "arith.mului_extended"
    op = ir.Operation.create(name, results=[a.type, a.type], operands=[a, b])
    high = op.results[1]
    return make("arith.index_cast", like(high, USIZE), high) if element == USIZE else high


class _Minus(Operation):
    """`a - b` and `-a`: one operator, told apart by its operands."""

    name = "-"
    form = Form.OPERATOR
    signature = "a - b`, `-a"
    summary = "Difference and negation: integers wrap, the negation of a float turns its sign."

    _difference = operator("-", 2, Domain.NUMBER, _binary("arith.subf", "arith.subi"), "", "")
    _negation = operator("-", 1, Domain.SIGNED, negated, "", "")

    def result_type(self, call: Call) -> Type:
        return self._meant(len(call.arguments)).result_type(call)

    def emit(self, emission: Emission) -> Value:
        return self._meant(len(emission.operands)).emit(emission)

    def _meant(self, count: int) -> Operation:
        return self._negation if count == 1 else self._difference


OPERATIONS: tuple[Operation, ...] = (
    operator(
        "+", 2, Domain.NUMBER, _binary("arith.addf", "arith.addi"), "a + b", "Sum; integers wrap."
    ),
    operator(
        "*",
        2,
        Domain.NUMBER,
        _binary("arith.mulf", "arith.muli"),
        "a * b",
        "Product; integers wrap.",
    ),
    _Minus(),
    method(
        "mul_hi",
        2,
        Domain.INTEGER,
        _mul_hi,
        "a.mul_hi(b)",
        "The high half of the product of integers.",
    ),
)


@dataclass(frozen=True)
class _Extended(ElementwiseRules):
    """The product of integers as (low, high) halves."""

    name: str
    is_signed: bool

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        a, b = operands
        numbers = (a, b) if self.is_signed else (unsigned(a), unsigned(b))
        product = numbers[0].astype(object) * numbers[1].astype(object)
        bits = a.dtype.itemsize * 8
        return [np.multiply(a, b), _low(product >> bits, bits).astype(a.dtype)]


def _low(numbers: Array, bits: int) -> Array:
    """Python integers as the signed numbers of their low bits."""
    half = 1 << (bits - 1)
    return np.asarray((numbers + half) % (1 << bits) - half)


RULES: tuple[OpRules, ...] = (
    Elementwise(
        "arith.addi",
        np.add,
        lambda d: gcd(*d),
        lambda b: max(b) + 1,
        "add",
        numbers=exact(operator_.add),
        combines=Linear.plus,
    ),
    Elementwise(
        "arith.subi",
        np.subtract,
        lambda d: gcd(*d),
        launcher="sub",
        numbers=exact(operator_.sub),
        combines=Linear.minus,
    ),
    Elementwise(
        "arith.muli",
        np.multiply,
        prod,
        sum,
        "mul",
        numbers=exact(operator_.mul),
        combines=product,
    ),
    Elementwise("arith.negf", np.negative, launcher="neg"),
    Rounded("arith.addf", lambda a, b: a + b),
    Rounded("arith.subf", lambda a, b: a - b),
    Rounded("arith.mulf", lambda a, b: a * b),
    _Extended("arith.mulsi_extended", is_signed=True),
    _Extended("arith.mului_extended", is_signed=False),
)
