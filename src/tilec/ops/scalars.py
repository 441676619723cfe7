"""What only integer scalars have: `ilog2` and `is_power_of_two`."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from mlir import ir

from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import chosen, compared, constant_like, make
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.convert import converted
from tilec.ops.formats import Array, unsigned
from tilec.ops.meaning import Elementwise
from tilec.ops.rules import OpRules
from tilec.ops.uses import Domain
from tilec.types import BOOL, I64, U32, USIZE, Element, TileType, Type


class _OfInteger(Operation):
    form = Form.METHOD
    receiver = Receiver.TILE
    result: Element

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1)
        uses.expect_scalar(call, 0)
        uses.expect_domain(call, 0, Domain.INTEGER)
        return TileType(self.result)

    def emit(self, emission: Emission) -> ir.Value:
        [x] = emission.operands
        element = element_in(emission.types[0])
        if element == USIZE:
            x, element = converted(x, USIZE, I64), I64
        return self.build(element, x)

    @abstractmethod
    def build(self, element: Element, x: ir.Value) -> ir.Value:
        """The result, from the operand."""


class _Ilog2(_OfInteger):
    name = "ilog2"
    signature = "n.ilog2()"
    summary = "The whole part of the logarithm to base 2, as `u32`; 0 where `n` is not above 0."
    result = U32

    def build(self, element: Element, x: ir.Value) -> ir.Value:
        leading = make("math.ctlz", x.type, x)
        top = constant_like(x, element, element.bits - 1)
        found = make("arith.subi", x.type, top, leading)
        zero = constant_like(x, element, 0)
        none = compared("sle" if element.is_signed else "eq", x, zero)
        return converted(chosen(none, zero, found), element, U32)


class _IsPowerOfTwo(_OfInteger):
    name = "is_power_of_two"
    signature = "n.is_power_of_two()"
    summary = "Whether `n` is a power of two: 1, 2, 4 and so on."
    result = BOOL

    def build(self, element: Element, x: ir.Value) -> ir.Value:
        zero, one = (constant_like(x, element, n) for n in (0, 1))
        rest = make("arith.andi", x.type, x, make("arith.subi", x.type, x, one))
        above = compared("sgt" if element.is_signed else "ne", x, zero)
        single = compared("eq", rest, zero)
        return make("arith.andi", single.type, above, single)


OPERATIONS: tuple[Operation, ...] = (_Ilog2(), _IsPowerOfTwo())


def _leading_zeros(x: Array) -> Array:
    bits = x.dtype.itemsize * 8
    count = np.frompyfunc(lambda n: bits - int(n).bit_length(), 1, 1)
    return np.asarray(count(unsigned(x))).astype(x.dtype)


def _ones(x: Array) -> Array:
    count = np.frompyfunc(lambda n: int(n).bit_count(), 1, 1)
    return np.asarray(count(unsigned(x))).astype(x.dtype)


RULES: tuple[OpRules, ...] = (
    Elementwise("math.ctlz", _leading_zeros),
    Elementwise("math.ctpop", _ones),
)
