"""Types of `for` and `while`; the loops and branches of the language that are not taken yet."""

from __future__ import annotations

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.checker import Checker, expression_rule, statement_rule
from tilec.frontend.patterns import bind_pattern, poison
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.frontend.typecheck_operators import condition
from tilec.types import UNIT, USIZE, ElementLike, TileType, scalar

_ADAPTERS = ("step_by", "rev")


@statement_rule(ast.For)
def for_(checker: Checker, node: ast.For) -> typed.Statement:
    errors: list[CompileError] = []
    bounds: _Bounds | None = None
    try:
        bounds = _bounds(checker, node.iterable)
    except CompileError as error:
        errors.append(error)
    state = checker.scope.snapshot()
    pattern: typed.Pattern | None = None
    body: typed.Expression | None = None
    with checker.scope.block(), checker.conditional():
        # A variable that is assigned once in a loop is assigned many times.
        checker.scope.fresh = frozenset()
        try:
            pattern = _counter(checker, node.pattern, bounds)
            body = checker.expression(node.body)
        except CompileError as error:
            errors.append(error)
    checker.scope.restore(state)
    if errors:
        raise CompileError(*(d for error in errors for d in error.diagnostics))
    assert bounds is not None and isinstance(body, typed.Block), "everything was read"
    assert isinstance(pattern, (typed.Bind, typed.Ignore)), "a counter is one variable"
    _expect_no_value(checker, body)
    start, end, inclusive, adapters = bounds
    assert isinstance(start.type, TileType), "a bound is a scalar"
    element = start.type.element
    return typed.For(node.span, pattern, element, start, end, inclusive, adapters, body)


_Adapters = tuple[tuple[str, "typed.Expression | None"], ...]
_Bounds = tuple[typed.Expression, typed.Expression, bool, _Adapters]


def _counter(checker: Checker, pattern: ast.Pattern, bounds: _Bounds | None) -> typed.Pattern:
    if not isinstance(pattern, (ast.BindingPattern, ast.WildcardPattern)):
        poison(checker, pattern)
        raise refusal("E0203", "a `for` counts with one variable", pattern.span)
    if bounds is None:
        poison(checker, pattern)
        return typed.Ignore(pattern.span)
    return bind_pattern(checker, pattern, bounds[0].type)


def _bounds(checker: Checker, node: ast.Expression) -> _Bounds:
    match node:
        case ast.Range():
            return (*_range(checker, node), ())
        case ast.MethodCall(receiver=receiver, method=method) if not _is_name(receiver):
            start, end, inclusive, adapters = _bounds(checker, receiver)
            if method.text not in _ADAPTERS:
                raise refusal(
                    "E0203",
                    f"a range has no method `{method.text}`",
                    method.span,
                    "not found",
                    help=did_you_mean(method.text, _ADAPTERS),
                )
            return start, end, inclusive, (*adapters, _adapter(checker, node))
    help = f"write `for i in {_range_of(checker, node)}`"
    raise refusal("E0102", "a `for` runs over a range", node.span, help=help)


def _range_of(checker: Checker, node: ast.Expression) -> str:
    """The range that `range(n)` of Python is, or any."""
    match node:
        case ast.Call(arguments=arguments) | ast.MethodCall(arguments=arguments) if arguments:
            pass
        case _:
            return "a..b"
    name = node.method if isinstance(node, ast.MethodCall) else node.function.segments[-1].name
    if name.text not in ("range", "static_range", "arange"):
        return "a..b"
    texts = [checker.text(argument.span) for argument in arguments]
    start, end = ("0", texts[0]) if len(texts) == 1 else texts[:2]
    whole = f"{start}..{end}"
    return f"({whole}).step_by({texts[2]})" if len(texts) > 2 else whole


def _is_name(node: ast.Expression) -> bool:
    return isinstance(node, ast.Path)


def _range(checker: Checker, node: ast.Range) -> tuple[typed.Expression, typed.Expression, bool]:
    start, end = checker.expression(node.start), checker.expression(node.end)
    for bound in (start, end):
        if not isinstance(bound.type, TileType) or not bound.type.is_scalar:
            shown = checker.inference.resolve_type(bound.type)
            raise refusal("E0203", "a range is of integers", bound.span, f"this is `{shown}`")
    label = Label(start.span, f"this is `{checker.inference.resolve_type(start.type)}`")
    expect(end.type, start.type, checker.inference, end.span, label)
    assert isinstance(start.type, TileType), "seen above"
    element: ElementLike = checker.inference.resolve(start.type.element)
    if not element.is_integer:
        raise refusal("E0203", "a range is of integers", node.span, f"this is of `{element}`")
    return start, end, node.inclusive


def _adapter(checker: Checker, node: ast.MethodCall) -> tuple[str, typed.Expression | None]:
    name = node.method.text
    expected = 1 if name == "step_by" else 0
    if node.generics is not None or len(node.arguments) != expected:
        raise refusal(
            "E0203",
            f"`{name}` takes {expected or 'no'} argument{'s' if not expected else ''}",
            node.method.span,
            f"got {len(node.arguments)}",
        )
    if name == "rev":
        return name, None
    step = checker.expression(node.arguments[0])
    expect(step.type, scalar(USIZE), checker.inference, step.span)
    if isinstance(step, typed.Literal) and step.value < 1:
        raise refusal("E0203", "a step is at least 1", step.span, f"this is {step.value}")
    return name, step


@statement_rule(ast.While)
def while_(checker: Checker, node: ast.While) -> typed.Statement:
    errors: list[CompileError] = []
    tested: typed.Expression | None = None
    body: typed.Expression | None = None
    try:
        tested = condition(checker, node.condition)
    except CompileError as error:
        errors.append(error)
    state = checker.scope.snapshot()
    with checker.conditional():
        checker.scope.fresh = frozenset()
        try:
            body = checker.expression(node.body)
        except CompileError as error:
            errors.append(error)
    checker.scope.restore(state)
    if errors:
        raise CompileError(*(d for error in errors for d in error.diagnostics))
    assert tested is not None and isinstance(body, typed.Block), "everything was read"
    _expect_no_value(checker, body)
    return typed.While(node.span, tested, body)


def _expect_no_value(checker: Checker, body: typed.Block) -> None:
    if body.tail is None or body.type == UNIT:
        return
    shown = checker.inference.resolve_type(body.type)
    raise refusal(
        "E0203",
        "the body of a loop has no value",
        body.tail.span,
        f"this is `{shown}`",
        help="end it with `;`",
    )


@expression_rule(ast.For)
def for_value(checker: Checker, node: ast.For) -> typed.Expression:
    """A loop as the last thing in a block: a statement all the same."""
    return typed.Block(node.span, UNIT, (checker.statement(node),), None)


@expression_rule(ast.While)
def while_value(checker: Checker, node: ast.While) -> typed.Expression:
    return typed.Block(node.span, UNIT, (checker.statement(node),), None)


@expression_rule(ast.Loop)
def loop(checker: Checker, node: ast.Loop) -> typed.Expression:
    with checker.conditional():
        try:
            checker.expression(node.body)
        except CompileError as error:
            checker.report(error)
    raise _not_yet("loop", node, "a loop has its condition in its head: `while more { … }`")


@expression_rule(ast.Match)
def match_(checker: Checker, node: ast.Match) -> typed.Expression:
    raise _not_yet("match", node, "write `if n == 0 { … } else if n == 1 { … } else { … }`")


@expression_rule(ast.Break)
def break_(checker: Checker, node: ast.Break) -> typed.Expression:
    help = "let the condition end the loop: `let mut more = true; while more { … more = false; }`"
    raise _not_yet("break", node, help)


@expression_rule(ast.Continue)
def continue_(checker: Checker, node: ast.Continue) -> typed.Expression:
    raise _not_yet("continue", node, "put the rest of the body into an `if`: `if !skipped { … }`")


def _not_yet(word: str, node: ast.Node, help: str) -> CompileError:
    message = f"`{word}` is not in this version of tilec"
    return refusal("E0103", message, node.span, "used here", help=help)
