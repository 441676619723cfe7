"""Types of operators, conditions and casts."""

from __future__ import annotations

from tilec.diagnostics import CompileError
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.checker import Checker, expression_rule
from tilec.frontend.refusal import refusal
from tilec.frontend.resolve_types import resolve_element
from tilec.frontend.typecheck_operations import Use, operate
from tilec.ops import conversions
from tilec.ops.call import Form, Receiver
from tilec.source import Span
from tilec.types import BOOL, STORAGE_ONLY, Element, ElementLike, ElementVariable, TileType, scalar


@expression_rule(ast.Unary)
def unary(checker: Checker, node: ast.Unary) -> typed.Expression:
    match node.operator, node.operand:
        # Folded with its sign: `-128i8` is in range though `128i8` is not.
        case "-", ast.IntegerLiteral(value=value, suffix=suffix):
            return checker.number(node, -value, suffix)
        case "-", ast.FloatLiteral(text=text, suffix=suffix):
            return checker.number(node, -float(text), suffix)
    operand = checker.expression(node.operand)
    use = Use(node.operator, node.span, _sign_span(node), Form.OPERATOR)
    return operate(checker, use, (operand,))


def _sign_span(node: ast.Unary) -> Span:
    start = node.span.start
    return Span(node.span.file, start, start + len(node.operator))


@expression_rule(ast.Binary)
def binary(checker: Checker, node: ast.Binary) -> typed.Expression:
    if node.operator in ("&&", "||"):
        return _short_circuit(checker, node)
    operands = checker.expression(node.left), checker.expression(node.right)
    use = Use(node.operator, node.span, node.operator_span, Form.OPERATOR)
    return operate(checker, use, operands)


def _short_circuit(checker: Checker, node: ast.Binary) -> typed.Expression:
    masks = f"masks are combined by element: `{node.operator[0]}`"
    left = condition(checker, node.left, masks)
    unset = checker.scope.snapshot()
    with checker.conditional():
        right = condition(checker, node.right, masks)
    checker.scope.restore(unset)
    return typed.ShortCircuit(node.span, scalar(BOOL), node.operator, left, right)


def condition(
    checker: Checker, node: ast.Expression, help: str = "choose by element with `select(…)`"
) -> typed.Expression:
    """A scalar `bool`; `help` is for a tile of them. Raises CompileError E0202, E0203, E0301."""
    value = checker.expression(node)
    if isinstance(value.type, TileType) and not value.type.is_scalar:
        raise refusal(
            "E0301",
            "a condition is a scalar `bool`",
            node.span,
            f"this is `{checker.inference.resolve_type(value.type)}`",
            help=help,
        )
    expect(value.type, scalar(BOOL), checker.inference, node.span)
    return value


@expression_rule(ast.Cast)
def cast(checker: Checker, node: ast.Cast) -> typed.Expression:
    value = checker.expression(node.value)
    target = resolve_element(node.target, checker.environment)
    if not isinstance(value.type, TileType):
        raise refusal("E0203", "a cast is of scalars", node.value.span, f"this is `{value.type}`")
    if not value.type.is_scalar:
        raise refusal(
            "E0203",
            "a cast is of scalars",
            node.value.span,
            f"this is `{value.type}`",
            help=f"convert a tile with `.to::<{target}>()`",
        )
    source = checker.inference.resolve(value.type.element)
    if target in STORAGE_ONLY or (target == BOOL and source != BOOL):
        raise _bad_cast(node, source, target)
    if isinstance(source, ElementVariable) and source.is_integer and target.is_integer:
        # As in Rust: `5000000000 as u64` is a literal of the target's type.
        checker.inference.unify(source, target)
    return convert(checker, value, target, node)


def convert(
    checker: Checker, value: typed.Expression, target: Element, node: ast.Node
) -> typed.Expression:
    """The value in another element type, as `.to` converts."""
    use = Use("to", node.span, node.span, Form.METHOD, Receiver.TILE, (target,), (node.span,))
    return operate(checker, use, (value,))


def _bad_cast(node: ast.Cast, source: ElementLike, target: Element) -> CompileError:
    help = (
        f"compare it: `x != {conversions.zero(source)}`"
        if target == BOOL
        else f"convert with {conversions.converted(source, target)}"
    )
    return refusal("E0203", f"nothing is cast to `{target}`", node.target.span, help=help)
