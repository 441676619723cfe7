"""`eq ne lt le gt ge` on tiles and scalars, and the operators, which are for scalars only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.integers.formula import FORMULAS, Formula, at_least, both, either, equal, less, negated
from tilec.integers.number import Number
from tilec.integers.number import compared as compared_numbers
from tilec.integers.polynomial import Polynomial
from tilec.ops import uses
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.broadcasting import Broadcasting, Builder
from tilec.ops.build import compared, known_integer
from tilec.ops.call import Call, Form, Operation, Receiver
from tilec.ops.formats import Array, signed, unsigned
from tilec.ops.host_expression import as_unsigned
from tilec.ops.rules import (
    Datum,
    DivisorsWhere,
    ElementwiseRules,
    HostExpression,
    Machine,
    OpRules,
)
from tilec.ops.uses import Domain
from tilec.types import Element, Type

_SYMBOLS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_WORDS = {
    "eq": "equal", "ne": "not equal (also where one is NaN)", "lt": "less", "le": "less or equal",
    "gt": "greater", "ge": "greater or equal",
}  # fmt: skip


def predicate(name: str, element: Element) -> str:
    """MLIR's predicate: NaN is different from everything, itself included."""
    if element.is_float:
        return "une" if name == "ne" else f"o{name}"
    if name in ("eq", "ne"):
        return name
    return f"{'s' if element.is_signed else 'u'}{name}"


def _builder(name: str) -> Builder:
    return lambda element, a, b: compared(predicate(name, element), a, b)


@dataclass(frozen=True)
class _Operator(Broadcasting):
    def result_type(self, call: Call) -> Type:
        for index in (0, 1):
            tile = uses.expect_tile(call, index)
            if not tile.is_scalar:
                word = next(w for w, symbol in _SYMBOLS.items() if symbol == self.name)
                raise uses.refuse(
                    "E0203",
                    f"`{self.name}` compares scalars, got `{tile}`",
                    Label(call.arguments[index].span),
                    help=f"tiles are compared by methods: `a.{word}(b)`",
                )
        return super().result_type(call)


def _operations() -> list[Operation]:
    found: list[Operation] = []
    for name, symbol in _SYMBOLS.items():
        domain = Domain.COMPARABLE if name in ("eq", "ne") else Domain.NUMBER
        summary = f"Where `a` is {_WORDS[name]}, as `bool`."
        found.append(
            Broadcasting(
                name=name,
                form=Form.METHOD,
                receiver=Receiver.TILE,
                count=2,
                domain=domain,
                build=_builder(name),
                signature=f"a.{name}(b)",
                summary=summary,
                to_bool=True,
            )
        )
        found.append(
            _Operator(
                name=symbol,
                form=Form.OPERATOR,
                receiver=None,
                count=2,
                domain=domain,
                build=_builder(name),
                signature=f"a {symbol} b",
                summary=f"`a.{name}(b)`, on scalars only.",
                to_bool=True,
            )
        )
    return found


OPERATIONS: tuple[Operation, ...] = tuple(_operations())

_RELATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
_FORMULAS: dict[str, Callable[[Polynomial, Polynomial], Formula]] = {
    "eq": equal,
    "ne": lambda a, b: negated(equal(a, b)),
    "lt": less,
    "le": lambda a, b: at_least(b, a),
    "gt": lambda a, b: less(b, a),
    "ge": at_least,
}
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule",
    "une", "uno", "true",
)  # fmt: skip


class _CompareIntegers(ElementwiseRules):
    name = "arith.cmpi"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        wanted = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        if wanted in ("eq", "ne"):
            return [_RELATIONS[wanted](*operands)]
        look = signed if wanted[0] == "s" else unsigned
        return [_RELATIONS[wanted[1:]](*map(look, operands))]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        wanted = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        left, right = operands
        if isinstance(left, Number) and isinstance(right, Number):
            if wanted[0] == "u":
                kind = op.operands[0].type
                left, right = (reasoning.unsigned(x, kind) for x in (left, right))
            relation = wanted if wanted in ("eq", "ne") else wanted[1:]
            return [compared_numbers(_FORMULAS[relation], left, right)]
        if wanted in ("eq", "ne") and isinstance(left, FORMULAS) and isinstance(right, FORMULAS):
            same = either(both(left, right), both(negated(left), negated(right)))
            return [same if wanted == "eq" else negated(same)]
        return reasoning.opaque(op)

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        wanted = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        operands = [(v.type, host_of(v)) for v in op.operands]
        if wanted[0] == "u":
            return (wanted[1:], *(as_unsigned(*operand) for operand in operands))
        return (wanted.removeprefix("s"), *(expression for _, expression in operands))

    def divisors_where(
        self, op: ir.OpView, number: int, divisors_where: DivisorsWhere
    ) -> Sequence[tuple[ir.Value, int]]:
        wanted = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        left, right = op.operands
        known = known_integer(right)
        if wanted != "eq" or number != 1 or known is None:
            return ()
        return divisors_where(left, known)


class _CompareFloats(ElementwiseRules):
    name = "arith.cmpf"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        a, b = operands
        wanted = _FLOAT_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        unordered = np.isnan(a) | np.isnan(b)
        if wanted in ("false", "true"):
            return [np.full(a.shape, wanted == "true")]
        if wanted in ("ord", "uno"):
            return [unordered if wanted == "uno" else ~unordered]
        holds = _RELATIONS[wanted[1:]](a, b)
        return [holds | unordered if wanted[0] == "u" else holds & ~unordered]

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        wanted = _FLOAT_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        # Of a NaN, a launcher's comparisons say what these say.
        if wanted not in ("oeq", "ogt", "oge", "olt", "ole", "une"):
            return None
        return (wanted[1:], *map(host_of, op.operands))


RULES: tuple[OpRules, ...] = (_CompareIntegers(), _CompareFloats())
