"""The state of type checking, and the one entry to the rules: a rule for each kind of syntax.

The rules stand in `typecheck_*.py` and register themselves here by the class of node they take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tilec.diagnostics import CompileError, Diagnostic
from tilec.frontend import ast, typed
from tilec.frontend.bindings import Environment
from tilec.frontend.constants import literal_value
from tilec.frontend.inference import ElementInference, element_variables
from tilec.frontend.modules import Module, Program
from tilec.frontend.scope import Scope
from tilec.source import Span
from tilec.types import BOOL, ELEMENTS, Dim, ElementVariable, Own, TileType, Type

# Checks a helper: the kernel's state, where its names are looked up, the types of its parameters
# and how they are lent, its `Dim`s and its symbol.
CheckHelper = Callable[
    [
        "KernelState",
        Environment,
        ast.Function,
        "tuple[tuple[Type, Own | None], ...]",
        "tuple[Dim, ...]",
        str,
    ],
    typed.FunctionInstance,
]


@dataclass(eq=False)
class KernelState:
    """What the functions of one kernel instance share while they are checked.

    A helper is known by its function, its generics and the types of its parameters. The body of one
    whose type is written is `waiting` until its caller is checked, so that helpers may call each
    other in chains of any length; without `waiting` each is checked where it is called.
    """

    program: Program
    symbol: str
    has_parts: bool
    check_helper: CheckHelper
    diagnostics: list[Diagnostic] = field(default_factory=list)
    helpers: dict[object, typed.FunctionInstance] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)  # of helpers
    waiting: deque[Callable[[], None]] | None = None
    has_too_many_instances: bool = False
    nested: int = 0  # how many helpers are being checked inside of each other
    reached: list[ast.Function] = field(default_factory=list)


@dataclass(eq=False)
class Checker:
    """The state of checking one function with its generics known."""

    kernel: KernelState
    function: ast.Function
    environment: Environment
    is_kernel: bool
    scope: Scope = field(default_factory=Scope)
    inference: ElementInference = field(default_factory=ElementInference)
    in_unsafe: bool = False
    conditional_depth: int = 0  # how many branches and loops are around
    closure_depth: int | None = None  # the scope depth of the closure being checked, if any
    has_refused_return: bool = False
    literals: list[typed.Literal] = field(default_factory=list)
    doubted: list[Type] = field(default_factory=list)  # of what stood in refused statements

    def __post_init__(self) -> None:
        self.environment = replace(self.environment, is_local=self.scope.has)

    @property
    def module(self) -> Module:
        return self.environment.module

    def text(self, span: Span) -> str:
        """What is written at a place."""
        return self.kernel.program.sources[span.file].text[span.start : span.end]

    def report(self, error: CompileError) -> None:
        """Note what was found and go on."""
        self.kernel.diagnostics += error.diagnostics

    def expression(self, node: ast.Expression) -> typed.Expression:
        """The typed form of an expression. Raises CompileError."""
        rule = _EXPRESSIONS.get(type(node))
        assert rule, f"no rule for {type(node).__name__}"
        return rule(self, node)

    def statement(
        self, node: ast.Statement | ast.For | ast.While | ast.MacroCall
    ) -> typed.Statement:
        """The typed form of a statement. Raises CompileError."""
        rule = _STATEMENTS.get(type(node))
        assert rule, f"no rule for {type(node).__name__}"
        return rule(self, node)

    def number(self, node: ast.Node, value: int | float, suffix: str | None) -> typed.Literal:
        """A literal; without a suffix it takes its element type from its uses."""
        element = ELEMENTS[suffix] if suffix else None
        if element and element.is_float:
            value = float(value)
        known = element or ElementVariable(isinstance(value, float))
        made = typed.Literal(node.span, TileType(known), value)
        self.literals.append(made)
        return made

    @contextmanager
    def conditional(self) -> Iterator[None]:
        """Inside of a branch or loop."""
        self.conditional_depth += 1
        try:
            yield
        finally:
            self.conditional_depth -= 1

    def finish(self) -> None:
        """Once everything was seen: each literal must fit the type that it got.

        Nothing is said of one that nothing gave a type, if what would have was refused.
        """
        types = [self.inference.resolve_type(type_) for type_ in self.doubted]
        doubted = {v for type_ in types for v in element_variables(type_)}
        for literal in self.literals:
            assert isinstance(literal.type, TileType), "a literal is a scalar"
            if self.inference.resolve(literal.type.element) in doubted:
                continue
            element = self.inference.known(literal.type.element)
            try:
                literal_value(literal.value, element, literal.span)
            except CompileError as error:
                self.report(error)

    def is_bool(self, type_: object) -> bool:
        return (
            isinstance(type_, TileType)
            and type_.is_scalar
            and self.inference.resolve(type_.element) == BOOL
        )


E = TypeVar("E", bound=ast.Node)
ExpressionRule = Callable[[Checker, E], typed.Expression]
StatementRule = Callable[[Checker, E], typed.Statement]
_EXPRESSIONS: dict[type[ast.Node], ExpressionRule[ast.Node]] = {}
_STATEMENTS: dict[type[ast.Node], StatementRule[ast.Node]] = {}


def expression_rule(kind: type[E]) -> Callable[[ExpressionRule[E]], ExpressionRule[E]]:
    """Makes a function the rule for one class of expressions."""

    def register(rule: ExpressionRule[E]) -> ExpressionRule[E]:
        assert kind not in _EXPRESSIONS, f"two rules for {kind.__name__}"
        _EXPRESSIONS[kind] = rule  # type: ignore[assignment]
        return rule

    return register


def statement_rule(kind: type[E]) -> Callable[[StatementRule[E]], StatementRule[E]]:
    """Makes a function the rule for one class of statements."""

    def register(rule: StatementRule[E]) -> StatementRule[E]:
        assert kind not in _STATEMENTS, f"two rules for {kind.__name__}"
        _STATEMENTS[kind] = rule  # type: ignore[assignment]
        return rule

    return register
