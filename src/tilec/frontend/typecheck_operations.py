"""Uses of the language's operations: found by name, checked by the operation itself."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.diagnostics import CompileError
from tilec.frontend import ast, typed
from tilec.frontend.bindings import Constant
from tilec.frontend.checker import Checker
from tilec.frontend.constants import binding_of, evaluate, not_constant, unknown_name
from tilec.frontend.patterns import bind_pattern
from tilec.frontend.refusal import refusal
from tilec.frontend.typecheck_unknown import unknown_maker, unknown_method
from tilec.ops import operations
from tilec.ops.call import Argument, Call, Form, GenericValue, Receiver
from tilec.source import Span
from tilec.types import Dim, Element, Own, PartType, TensorType, TileType, TupleType, Type


@dataclass(frozen=True)
class Use:
    """How an operation is written: its name and places, its form, its turbofish."""

    name: str
    span: Span
    name_span: Span
    form: Form
    receiver: Receiver | None = None
    generics: tuple[GenericValue, ...] | None = None
    generic_spans: tuple[Span, ...] = ()


def receiver_of(type_: Type) -> Receiver | None:
    """What kind of receiver a value is; None if nothing can be called on it."""
    match type_:
        case TileType():
            return Receiver.TILE
        case TensorType():
            return Receiver.TENSOR
        case PartType():
            return Receiver.PART
        case TupleType():
            return Receiver.TUPLE
    return None


def operate(
    checker: Checker,
    use: Use,
    arguments: tuple[typed.Expression, ...],
    combiner: ast.Closure | None = None,
) -> typed.Expression:
    """One checked use of an operation. Raises CompileError: E0103, E0201, E02xx, E03xx."""
    generics = _written_or_empty(use, arguments)
    operation = operations.lookup(use.name, use.form, use.receiver, generics is not None)
    if operation is None:
        raise _unknown(checker, use, arguments)
    expect_no_memory(checker, arguments)
    typed_closure = _ClosureTyping(checker, combiner) if combiner else None
    call = Call(
        use.name,
        use.span,
        use.name_span,
        tuple(_as_argument(checker, argument) for argument in arguments),
        checker.inference,
        generics,
        use.generic_spans,
        typed_closure,
        checker.in_unsafe,
        operation.signature,
    )
    result = operation.result_type(call)
    return typed.Operate(
        use.span,
        result,
        operation,
        use.name,
        arguments,
        generics,
        typed_closure.result if typed_closure else None,
        checker.in_unsafe,
    )


def _written_or_empty(
    use: Use, arguments: tuple[typed.Expression, ...]
) -> tuple[GenericValue, ...] | None:
    """The turbofish; of a tensor without axes, whose tiles have no extents to write, an empty one.

    Methods of atomic tensors have none.
    """
    if use.generics is not None or use.receiver is not Receiver.TENSOR:
        return use.generics
    match arguments[0].type:
        case TensorType(extents=(), own=own) if own is not Own.ATOMIC:
            return ()
    return None


def expect_no_memory(checker: Checker, arguments: tuple[typed.Expression, ...]) -> None:
    """E0102 for a tensor or part in a combiner, which runs any number of times in any order."""
    if checker.closure_depth is None:
        return
    for argument in arguments:
        if isinstance(argument.type, (TensorType, PartType)):
            raise refusal(
                "E0102",
                "a combiner uses no tensors",
                argument.span,
                f"this is `{argument.type}`",
                help="read what it needs before: `let t = …`",
            )


def _as_argument(checker: Checker, value: typed.Expression) -> Argument:
    known = value.value if isinstance(value, typed.Literal) else None
    return Argument(checker.inference.resolve_type(value.type), value.span, known)


class _ClosureTyping:
    """Types the body of a combiner, when the operation says what it is given."""

    def __init__(self, checker: Checker, node: ast.Closure) -> None:
        self._checker = checker
        self._node = node
        self.result: typed.Closure | None = None

    def __call__(self, types: tuple[Type, ...]) -> Type:
        node, checker = self._node, self._checker
        if len(node.parameters) != len(types):
            raise refusal(
                "E0203",
                f"expected a closure of {len(types)} parameters",
                node.span,
                f"this has {len(node.parameters)}",
            )
        outer, state = checker.closure_depth, checker.scope.snapshot()
        with checker.scope.block(), checker.conditional():
            checker.closure_depth = checker.scope.depth
            try:
                patterns = tuple(
                    bind_pattern(checker, pattern, type_)
                    for pattern, type_ in zip(node.parameters, types, strict=True)
                )
                body = checker.expression(node.body)
            finally:
                checker.closure_depth = outer
        checker.scope.restore(state)
        self.result = typed.Closure(node.span, patterns, types, body)
        return checker.inference.resolve_type(body.type)


def generic_values(
    checker: Checker, nodes: tuple[ast.GenericArgument, ...] | None
) -> tuple[tuple[GenericValue, ...] | None, tuple[Span, ...]]:
    """The turbofish evaluated: element types and constants. Raises CompileError E0201, E0203."""
    if nodes is None:
        return None, ()
    return tuple(_generic(checker, n) for n in nodes), tuple(n.span for n in nodes)


def _generic(checker: Checker, node: ast.GenericArgument) -> GenericValue:
    match node:
        case ast.ConstArgument(value=written):
            return evaluate(written, checker.environment).value
        case ast.PathType(name=name, arguments=()):
            found = binding_of(name, checker.environment)
            match found:
                case Element():
                    return found
                case Constant(value=value):
                    return value
                case Dim():
                    raise not_constant(node.span, f"`{found}` is known only at launch")
            if checker.scope.has(name.text):
                raise not_constant(node.span)
            known = {*checker.environment.generics, *checker.module.names()}
            raise unknown_name(name, known)
    raise refusal("E0203", "expected an element type or a constant", node.span)


def _unknown(checker: Checker, use: Use, arguments: tuple[typed.Expression, ...]) -> CompileError:
    """E0203 (E0201 for a function of tiles): no operation of this form has the name."""
    name = ast.Name(use.name_span, use.name)
    if use.form is not Form.METHOD:
        return unknown_maker(name)
    spans = [argument.span for argument in arguments[1:]]
    return unknown_method(checker, name, use.span, arguments[0], spans, use.generics)
