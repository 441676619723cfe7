"""Rules whose meaning is one function of whole arrays: nearly all of arith and math."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from tilec.integers.formula import FORMULAS, Formula
from tilec.integers.number import Number, combined
from tilec.integers.polynomial import Polynomial
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.formats import Array, rounded, unsigned, wide
from tilec.ops.host_expression import as_signed, as_unsigned
from tilec.ops.linear import Linear
from tilec.ops.rules import Datum, ElementwiseRules, Facts, HostExpression, Machine

# What operations of the launchers' expressions are called on truth values.
_LOGICAL = {"bitand": "and", "bitor": "or", "bitxor": "ne"}

NumberRule = Callable[..., Number]  # (reasoning, op, *numbers)
TruthRule = Callable[..., Formula]  # (*formulas)


def abstract_by(
    numbers: NumberRule | None,
    truths: TruthRule | None,
    op: ir.OpView,
    operands: Sequence[Abstract],
    reasoning: Reasoning,
) -> Sequence[Abstract]:
    """The result by the rule that fits what the operands are; not followed if none does."""
    if numbers is not None and all(isinstance(x, Number) for x in operands):
        return [numbers(reasoning, op, *operands)]
    if truths is not None and all(isinstance(x, FORMULAS) for x in operands):
        return [truths(*operands)]
    return reasoning.opaque(op)


def exact(function: Callable[..., Polynomial]) -> NumberRule:
    """The rule of a function of integers that wraps where the result does not fit its type."""

    def rule(reasoning: Reasoning, op: ir.OpView, *operands: Number) -> Number:
        return reasoning.wrapped(combined(function, *operands), op.results[0].type, op)

    return rule


@dataclass(frozen=True)
class Elementwise(ElementwiseRules):
    """Element by element, by a function of the operands as they are."""

    name: str
    function: Callable[..., Array]
    # How divisors (0 for zero) and bits of integer operands make those of the result.
    divides: Callable[[Sequence[int]], int] | None = None
    extends: Callable[[Sequence[int]], int] | None = None
    # What launchers call it.
    launcher: str | None = None
    # What it is to proofs, given the operands: of integers, and of truth values.
    numbers: NumberRule | None = None
    truths: TruthRule | None = None
    decided_by: bool | None = None
    # How linear functions of scalars make that of the result.
    combines: Callable[[Linear, Linear], Linear | None] | None = None

    def linear(self, op: ir.OpView, operands: Sequence[Linear | None]) -> Linear | None:
        known = [one for one in operands if one is not None]
        if self.combines is None or len(known) < len(operands):
            return None
        return self.combines(*known)

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        return abstract_by(self.numbers, self.truths, op, operands, reasoning)

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [self.function(*operands)]

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        if self.launcher is None:
            return None
        kind, operands = op.results[0].type, [*map(host_of, op.operands)]
        if str(kind) != "i1":
            return as_signed(kind, (self.launcher, *operands))
        if self.launcher == "bitxor" and operands[1] is True:
            return ("not", operands[0])
        return (_LOGICAL[self.launcher], *operands)

    def divisor(self, op: ir.OpView, facts: Facts) -> int:
        if self.divides is None:
            return 1
        found = self.divides([facts.divisor(v) for v in op.operands])
        # What wraps keeps its powers of two only.
        return found & -found

    def bits(self, op: ir.OpView, facts: Facts) -> int | None:
        if self.extends is None or str(op.results[0].type) != "index":
            return None
        known = [facts.bits(v) for v in op.operands]
        widths = [width for width in known if width is not None]
        return self.extends(widths) if len(widths) == len(known) else None


@dataclass(frozen=True)
class Unsigned(ElementwiseRules):
    """Element by element, by a function of the operands as unsigned numbers."""

    name: str
    function: Callable[..., Array]
    launcher: str | None = None
    # What it is to proofs, given the operands without a sign; the result is without one, too.
    numbers: NumberRule | None = None

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        if self.numbers is None or not all(isinstance(x, Number) for x in operands):
            return reasoning.opaque(op)
        kind = op.results[0].type
        read = [reasoning.unsigned(x, kind) for x in operands if isinstance(x, Number)]
        return [reasoning.signed(self.numbers(reasoning, op, *read), kind)]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        result = np.asarray(self.function(*map(unsigned, operands)))
        return [result.view(operands[0].dtype)]

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        if self.launcher is None:
            return None
        operands = [as_unsigned(v.type, host_of(v)) for v in op.operands]
        return as_signed(op.results[0].type, (self.launcher, *operands), unsigned=True)


@dataclass(frozen=True)
class Rounded(ElementwiseRules):
    """Float by float: the function of the numbers in float64, rounded once to the result's type.

    Right to the last bit where `function` is exact or correctly rounded in float64 and the type is
    f32 or narrower; else within the accuracy that the operation states.
    """

    name: str
    function: Callable[..., Array]
    is_approximable: bool = False

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [rounded(self.function(*map(wide, operands)), op.results[0].type)]
