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
from tilec.ir.dialects import arith
from tilec.ir.types import is_tile
from tilec.ops import uses
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.broadcasting import Broadcasting, Builder
from tilec.ops.build import compared, known_integer, make
from tilec.ops.call import Call, Form, Operation, Receiver
from tilec.ops.facts import do_count
from tilec.ops.formats import Array, element_of, signed, unsigned
from tilec.ops.host_expression import as_unsigned
from tilec.ops.linear import Linear, signed_range
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import (
    GRANULARITY,
    Datum,
    DivisorsWhere,
    ElementwiseRules,
    Facts,
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


# i < n and i >= n, and the same the other way round: where n is a multiple of 2^k, as i >> k and
# n >> k compare.
_COUNTED_FIRST, _COUNTED_SECOND = ("lt", "ge"), ("gt", "le")
_MOST_NEIGHBOURS = 8  # that a thread holds side by side


class _CompareIntegers(ElementwiseRules):
    name = "arith.cmpi"

    def granularity(self, op: ir.OpView, facts: Facts) -> int:
        wanted = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value][1:]
        first, second = op.operands
        if wanted in _COUNTED_SECOND:
            first, second = second, first
        elif wanted not in _COUNTED_FIRST:
            return 1
        if not is_tile(first) or not do_count(first):
            return 1
        divisor = facts.divisor(second)
        return min(divisor & -divisor, _MOST_NEIGHBOURS) or _MOST_NEIGHBOURS

    def true_where(
        self, op: ir.OpView, operands: Sequence[Linear | None]
    ) -> Sequence[Linear] | None:
        first, second = operands
        predicate = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
        # What is equal in one iteration is not in the next.
        if first is None or second is None or predicate in ("eq", "ne"):
            return None
        low, high = signed_range(element_of(op.operands[0].type))
        if predicate[0] == "u":
            low, high = 0, high - low
        fit = [Linear(low=-low, high=-low).plus(one) for one in (first, second)]
        fit += [Linear(low=high, high=high).minus(one) for one in (first, second)]
        if predicate[-2] == "l":
            first, second = second, first
        strict = int(predicate[-1] == "t")
        return [first.minus(second).plus(Linear(low=-strict, high=-strict)), *fit]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        # Neighbours whose last bits alone differ are compared once.
        if GRANULARITY in op.attributes:
            bits = ir.IntegerAttr(op.attributes[GRANULARITY]).value.bit_length() - 1
            wanted = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value]
            shift = arith.shrsi if wanted[0] == "s" else arith.shrui
            operands = [shift(one, _all(one, bits)) for one in operands]
        result = lowering.type_of(op.results[0].type)
        told = {"predicate": op.attributes["predicate"]}
        return [make("arith.cmpi", result, *operands, **told)]

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


def _all(like: ir.Value, number: int) -> ir.Value:
    """The number as a scalar or fragment of a type."""
    kind = like.type
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, number)
    one = ir.IntegerAttr.get(kind.element_type, number)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, one))


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
