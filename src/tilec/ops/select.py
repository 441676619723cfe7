"""`select(condition, a, b)`: `a` where the condition holds, else `b`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.integers.formula import FORMULAS, both, either, negated
from tilec.integers.number import Number
from tilec.ops import uses
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.broadcasting import element_in
from tilec.ops.build import chosen, known_integer, shape_of, spread
from tilec.ops.call import Call, Emission, Form, Operation
from tilec.ops.guarded import guarded_division
from tilec.ops.meaning import Elementwise
from tilec.ops.registry import rules
from tilec.ops.rules import DivisorsWhere, HostExpression, OpRules
from tilec.types import BOOL, TileType, Type


class _Select(Operation):
    name = "select"
    form = Form.FUNCTION
    signature = "select(condition, a, b)"
    summary = "`a` where the condition holds, else `b`; both are computed. The three broadcast."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 3)
        condition = uses.expect_tile(call, 0)
        if condition.element != BOOL:
            message = f"`select` expected a condition of `bool`, got `{condition.element}`"
            raise uses.refuse("E0203", message, Label(call.arguments[0].span))
        element = uses.unify(call, (1, 2))
        return TileType(element, uses.broadcast(call, (0, 1, 2)))

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, TileType)
        shape, element = emission.result.shape, element_in(emission.result)
        condition, a, b = emission.operands
        if shape_of(condition):
            condition = spread(condition, BOOL, shape)
        return chosen(condition, spread(a, element, shape), spread(b, element, shape))


OPERATIONS: tuple[Operation, ...] = (_Select(),)


@dataclass(frozen=True)
class _ArithSelect(Elementwise):
    """For launchers, often the guard of a division."""

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        condition, yes, no = operands
        if not isinstance(condition, FORMULAS):
            return reasoning.opaque(op)
        if isinstance(yes, Number) and isinstance(no, Number):
            return [reasoning.choose(condition, yes, no)]
        if isinstance(yes, FORMULAS) and isinstance(no, FORMULAS):
            return [either(both(condition, yes), both(negated(condition), no))]
        return reasoning.opaque(op)

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        guarded = guarded_division(op)
        if guarded is None:
            return ("select", *map(host_of, op.operands))
        # A launcher's division is total by itself, and it wants to know of a divisor that is 0.
        division, divisor = guarded
        safe = division.operands[1]
        return rules()[division.name].host(
            division.opview, 0, lambda value: host_of(divisor if value == safe else value)
        )

    def divisors_where(
        self, op: ir.OpView, number: int, divisors_where: DivisorsWhere
    ) -> Sequence[tuple[ir.Value, int]]:
        # `a && b`, when both are computed.
        condition, then, otherwise = op.operands
        if number != 1 or str(then.type) != "i1" or known_integer(otherwise) != 0:
            return ()
        return [*divisors_where(condition, 1), *divisors_where(then, 1)]


RULES: tuple[OpRules, ...] = (_ArithSelect("arith.select", np.where),)
