"""`/ %`, `rem_euclid`, `div_ceil`: total on integers, truncating toward zero.

`x / 0 = 0`, `x % 0 = x`, `MIN / -1 = MIN`, `MIN % -1 = 0`, so `a == a / b * b + a % b` always.
The divisor is made harmless *before* the division: LLVM takes a division by zero as impossible and
would delete a `select` after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from tilec.integers.number import Number
from tilec.ops.abstract import Reasoning
from tilec.ops.arithmetic import negated
from tilec.ops.broadcasting import method, operator
from tilec.ops.build import chosen, compared, constant_like, known_integer, make
from tilec.ops.call import Operation
from tilec.ops.formats import Array
from tilec.ops.guarded import Guarded
from tilec.ops.meaning import Elementwise, NumberRule, Rounded, Unsigned
from tilec.ops.rules import DivisorsWhere, OpRules
from tilec.ops.uses import Domain
from tilec.types import Element


class _Divisor:
    """A divisor that can be divided by, and where it was 0 or -1 (None: nowhere)."""

    def __init__(self, element: Element, b: ir.Value) -> None:
        known = known_integer(b)
        zero = None if known not in (None, 0) else compared("eq", b, constant_like(b, element, 0))
        minus = None
        if element.is_signed and known in (None, -1):
            minus = compared("eq", b, constant_like(b, element, -1))
        one = constant_like(b, element, 1)
        self.zero, self.minus_one, self.safe = zero, minus, b
        if zero is not None:
            self.safe = chosen(zero, one, self.safe)
        if minus is not None:
            self.safe = chosen(minus, one, self.safe)


def quotient(element: Element, a: ir.Value, b: ir.Value) -> ir.Value:
    if element.is_float:
        return make("arith.divf", a.type, a, b)
    return _guarded("arith.divsi" if element.is_signed else "arith.divui", element, a, b)


def _quotient_up(element: Element, a: ir.Value, b: ir.Value) -> ir.Value:
    return _guarded("arith.ceildivsi" if element.is_signed else "arith.ceildivui", element, a, b)


def _guarded(name: str, element: Element, a: ir.Value, b: ir.Value) -> ir.Value:
    divisor = _Divisor(element, b)
    result = make(name, a.type, a, divisor.safe)
    if divisor.zero is not None:
        result = chosen(divisor.zero, constant_like(a, element, 0), result)
    if divisor.minus_one is not None:
        result = chosen(divisor.minus_one, negated(element, a), result)
    return result


def remainder(element: Element, a: ir.Value, b: ir.Value) -> ir.Value:
    if element.is_float:
        return make("arith.remf", a.type, a, b)
    divisor = _Divisor(element, b)
    # a % 1 is 0, which is also a % -1.
    result = make("arith.remsi" if element.is_signed else "arith.remui", a.type, a, divisor.safe)
    return result if divisor.zero is None else chosen(divisor.zero, a, result)


def _rem_euclid(element: Element, a: ir.Value, b: ir.Value) -> ir.Value:
    rest = remainder(element, a, b)
    if element.is_float:
        below = compared("olt", rest, constant_like(a, element, 0))
        raised = make("arith.addf", a.type, rest, make("math.absf", b.type, b))
        return chosen(below, raised, rest)
    if not element.is_signed:
        return rest
    zero = constant_like(a, element, 0)
    up = make("arith.addi", a.type, rest, b)
    down = make("arith.subi", a.type, rest, b)
    return chosen(compared("slt", rest, zero), chosen(compared("slt", b, zero), down, up), rest)


OPERATIONS: tuple[Operation, ...] = (
    operator(
        "/",
        2,
        Domain.NUMBER,
        quotient,
        "a / b",
        "Quotient; of integers truncated toward zero, with `x / 0 = 0` and `MIN / -1 = MIN`.",
    ),
    operator(
        "%",
        2,
        Domain.NUMBER,
        remainder,
        "a % b",
        "Remainder with the sign of `a`; of integers with `x % 0 = x` and `MIN % -1 = 0`.",
    ),
    method(
        "rem_euclid",
        2,
        Domain.NUMBER,
        _rem_euclid,
        "a.rem_euclid(b)",
        "Remainder that is never negative (`b` not 0); `x.rem_euclid(0) = x` on integers.",
    ),
    method(
        "div_ceil",
        2,
        Domain.INTEGER,
        _quotient_up,
        "a.div_ceil(b)",
        "Quotient of integer scalars, rounded up; `x.div_ceil(0)` is 0.",
        scalars=True,
    ),
)


def _truncated(a: Array, b: Array) -> Array:
    """Quotient toward zero; the emitter never divides by 0, the least number by -1 wraps."""
    floor = np.floor_divide(a, b)
    exact = np.multiply(floor, b) == a
    return np.where(~exact & ((a < 0) != (b < 0)), floor + a.dtype.type(1), floor)


def _ceiling(a: Array, b: Array) -> Array:
    floor = np.floor_divide(a, b)
    return np.where(np.multiply(floor, b) == a, floor, floor + a.dtype.type(1))


def _dividend(op: ir.OpView, number: int) -> Sequence[tuple[ir.Value, int]]:
    """What a remainder of 0 by a constant says."""
    value, divisor = op.operands
    known = known_integer(divisor)
    return [(value, known)] if number == 0 and known is not None and known > 0 else []


def _quotient_rule(rounding: str) -> NumberRule:
    # The emitter has seen to it that the divisor is neither 0 nor, where that wraps, -1.
    def rule(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number:
        found = reasoning.quotient(a, b, rounding, op)
        return reasoning.wrapped(found, op.results[0].type, op)

    return rule


def _remainder_rule(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number:
    return reasoning.wrapped(reasoning.remainder(a, b, op), op.results[0].type, op)


class _Quotient(Guarded, Elementwise):
    pass


class _UnsignedQuotient(Guarded, Unsigned):
    pass


class _Remainder(Guarded, Elementwise):
    def divisors_where(
        self, op: ir.OpView, number: int, divisors_where: DivisorsWhere
    ) -> Sequence[tuple[ir.Value, int]]:
        return _dividend(op, number)


class _UnsignedRemainder(Guarded, Unsigned):
    def divisors_where(
        self, op: ir.OpView, number: int, divisors_where: DivisorsWhere
    ) -> Sequence[tuple[ir.Value, int]]:
        return _dividend(op, number)


RULES: tuple[OpRules, ...] = (
    _Quotient(
        "arith.divsi",
        _truncated,
        extends=lambda b: b[0],
        launcher="div",
        numbers=_quotient_rule("truncated"),
    ),
    _Remainder("arith.remsi", np.fmod, extends=min, launcher="rem", numbers=_remainder_rule),
    Elementwise("arith.floordivsi", np.floor_divide, numbers=_quotient_rule("floor")),
    _Quotient(
        "arith.ceildivsi",
        _ceiling,
        extends=lambda b: b[0],
        launcher="ceildiv",
        numbers=_quotient_rule("ceiling"),
    ),
    _UnsignedQuotient("arith.divui", np.floor_divide, "div", _quotient_rule("truncated")),
    _UnsignedRemainder("arith.remui", np.remainder, "rem", _remainder_rule),
    _UnsignedQuotient("arith.ceildivui", _ceiling, "ceildiv", _quotient_rule("ceiling")),
    Rounded("arith.divf", lambda a, b: a / b, is_approximable=True),
    Rounded("arith.remf", np.fmod),
)
