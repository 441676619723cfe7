"""The state of emission, and the one entry to the rules: a rule for each class of typed node.

The rules stand in `emit_*.py` and register themselves here. Everything goes to the current
insertion point, at the location of the node that is being emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from mlir import ir

from tilec.frontend import typed
from tilec.frontend.inference import ElementInference
from tilec.ir.places import location_of
from tilec.ir.types import part_type, tensor_type, tile_type
from tilec.ops.call import Value
from tilec.source import SourceFile, Span
from tilec.types import ArrayType, Dim, PartType, TensorType, TileType, TupleType, Type


@dataclass(eq=False)
class Emitter:
    """The emission of one function: the values that its variables and extents have here."""

    inference: ElementInference
    sources: Mapping[str, SourceFile]
    dims: dict[Dim, ir.Value]
    values: dict[typed.Local, Value] = field(default_factory=dict)
    assignments: typed.Assignments = field(default_factory=typed.Assignments)

    def expression(self, node: typed.Expression) -> Value:
        """The value of an expression."""
        rule = _EXPRESSIONS.get(type(node))
        assert rule, f"no rule for {type(node).__name__}"
        with self.at(node.span):
            return rule(self, node)

    def scalar(self, node: typed.Expression) -> ir.Value:
        """The value of an expression that is one value of the IR."""
        value = self.expression(node)
        assert not isinstance(value, tuple), f"{node} is no tuple"
        return value

    def statement(self, node: typed.Statement) -> None:
        rule = _STATEMENTS.get(type(node))
        assert rule, f"no rule for {type(node).__name__}"
        with self.at(node.span):
            rule(self, node)

    def at(self, span: Span) -> ir.Location:
        """The location of a span, to be entered."""
        return location_of(span, self.sources[span.file])

    def type_of(self, node: typed.Expression) -> Type:
        return self.inference.final_type(node.type)

    @contextmanager
    def branch(self, block: ir.Block) -> Iterator[Emitter]:
        """Emission into a region: what is assigned there is not seen outside."""
        inner = replace(self, values=dict(self.values))
        with ir.InsertionPoint(block):
            yield inner

    def carried(self, *nodes: typed.Node | None) -> list[typed.Local]:
        """The variables from outside that these trees assign: they leave a region as results."""
        return [local for local in self.assignments.outside(*nodes) if local in self.values]

    def flat(self, locals: list[typed.Local]) -> list[ir.Value]:
        """The values of these variables, one after another."""
        return [value for local in locals for value in flatten(self.values[local])]

    def rebind(self, locals: list[typed.Local], flat: list[ir.Value]) -> None:
        """Give these variables new values, as `flat` lists them."""
        rest = list(flat)
        for local in locals:
            self.values[local] = reshaped(self.values[local], rest)
        assert not rest, "as many values as variables hold"


def flatten(value: Value) -> list[ir.Value]:
    """The values of the IR in a value, from left to right."""
    if isinstance(value, tuple):
        return [one for item in value for one in flatten(item)]
    return [value]


def reshaped(like: Value, rest: list[ir.Value]) -> Value:
    """The first values of `rest`, which are taken from it, in the shape of another value."""
    if isinstance(like, tuple):
        return tuple(reshaped(item, rest) for item in like)
    return rest.pop(0)


def mlir_types(type_: Type) -> list[ir.Type]:
    """The types of the values that stand for a value of a type, from left to right."""
    match type_:
        case TileType():
            return [tile_type(type_)]
        case TensorType():
            return [tensor_type(type_)]
        case PartType():
            return [part_type(type_)]
        case TupleType():
            return [one for item in type_.items for one in mlir_types(item)]
        case ArrayType():
            return [tile_type(type_.item)] * type_.length


def structured(type_: Type, rest: list[ir.Value]) -> Value:
    """The first values of `rest`, which are taken from it, as a value of a type."""
    match type_:
        case TupleType():
            return tuple(structured(item, rest) for item in type_.items)
        case ArrayType():
            return tuple(rest.pop(0) for _ in range(type_.length))
    return rest.pop(0)


E = TypeVar("E", bound=typed.Node)
ExpressionRule = Callable[[Emitter, E], Value]
StatementRule = Callable[[Emitter, E], None]
_EXPRESSIONS: dict[type[typed.Node], ExpressionRule[typed.Node]] = {}
_STATEMENTS: dict[type[typed.Node], StatementRule[typed.Node]] = {}


def emits_expression(kind: type[E]) -> Callable[[ExpressionRule[E]], ExpressionRule[E]]:
    """Makes a function the rule for one class of expressions."""

    def register(rule: ExpressionRule[E]) -> ExpressionRule[E]:
        assert kind not in _EXPRESSIONS, f"two rules for {kind.__name__}"
        _EXPRESSIONS[kind] = rule  # type: ignore[assignment]
        return rule

    return register


def emits_statement(kind: type[E]) -> Callable[[StatementRule[E]], StatementRule[E]]:
    """Makes a function the rule for one class of statements."""

    def register(rule: StatementRule[E]) -> StatementRule[E]:
        assert kind not in _STATEMENTS, f"two rules for {kind.__name__}"
        _STATEMENTS[kind] = rule  # type: ignore[assignment]
        return rule

    return register
