"""The statements of a pipeline, executed: loops turn, branches are decided, calls are recorded."""

from __future__ import annotations

from tilec.diagnostics import CompileError
from tilec.frontend import ast, typed
from tilec.frontend.bindings import Constant
from tilec.frontend.patterns import poison
from tilec.frontend.pipeline.calls import call
from tilec.frontend.pipeline.decisions import is_taken, turns_of
from tilec.frontend.pipeline.names import assign, let
from tilec.frontend.pipeline.tensors import view_of
from tilec.frontend.pipeline.trace import MAX_TURNS, Required, Scalar
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import refusal
from tilec.frontend.typecheck_macros import condition_of, text_of_condition
from tilec.types import BOOL, ElementVariable, scalar

# The scopes at the top level of a body: of the parameters, and its own.
_BODY_DEPTH = 2
_MACROS = ("requires", "static_assert")


def execute(tracer: Tracer, function: ast.Function) -> None:
    """The body of a pipeline whose parameters are bound."""
    _block(tracer, function.body)


def _block(tracer: Tracer, node: ast.Block) -> None:
    if node.unsafe_span is not None:
        raise refusal("E0804", "nothing in a pipeline is unsafe", node.unsafe_span, help="drop it")
    with tracer.checker.scope.block():
        for statement in node.statements:
            try:
                _statement(tracer, statement)
            except CompileError as error:
                tracer.report(error)
                if isinstance(statement, ast.Let):
                    poison(tracer.checker, statement.pattern)
        if node.tail is not None:
            try:
                _evaluate(tracer, node.tail)
            except CompileError as error:
                tracer.report(error)


def _statement(tracer: Tracer, node: ast.Statement) -> None:
    match node:
        case ast.Let():
            let(tracer, node)
        case ast.Assign():
            assign(tracer, node)
        case ast.ExpressionStatement(value=value):
            _evaluate(tracer, value)


def _evaluate(tracer: Tracer, node: ast.Expression) -> None:
    match node:
        case ast.Call():
            call(tracer, node, execute)
        case ast.For():
            _for(tracer, node)
        case ast.If():
            _if(tracer, node)
        case ast.Block():
            _block(tracer, node)
        case ast.MacroCall():
            _macro(tracer, node)
        case ast.Tuple(items=()):
            return
        case _:
            raise _no_statement(tracer, node)


def _no_statement(tracer: Tracer, node: ast.Expression) -> CompileError:
    words = {
        ast.While: "while", ast.Loop: "loop", ast.Match: "match", ast.Return: "return",
        ast.Break: "break", ast.Continue: "continue",
    }  # fmt: skip
    word = words.get(type(node))
    if word is not None:
        return refusal(
            "E0804",
            f"`{word}` is not for pipelines",
            node.span,
            "used here",
            help="a pipeline has `for` over ranges and `if`, both decided at compile time",
        )
    view_of(tracer, node)  # an access says so itself
    help = "launch a kernel by its name: `kernel(&mut t, x);`"
    return refusal(
        "E0804", "a statement of a pipeline launches something", node.span, "a value", help=help
    )


def _if(tracer: Tracer, node: ast.If) -> None:
    if is_taken(tracer, node):
        _block(tracer, node.then)
    elif node.otherwise is not None:
        _evaluate(tracer, node.otherwise)


def _for(tracer: Tracer, node: ast.For) -> None:
    turns, element = turns_of(tracer, node.iterable)
    if not isinstance(node.pattern, (ast.BindingPattern, ast.WildcardPattern)):
        raise refusal("E0203", "a `for` counts with one variable", node.pattern.span)
    for turn in turns:
        tracer.trace.turns += 1
        if tracer.trace.turns > MAX_TURNS:
            raise refusal(
                "E0803", f"the loops of a pipeline turn at most {MAX_TURNS} times",
                node.iterable.span, "they are unrolled at compile time",
            )  # fmt: skip
        before = len(tracer.trace.diagnostics)
        with tracer.checker.scope.block():
            if isinstance(node.pattern, ast.BindingPattern):
                type_ = scalar(element or ElementVariable(is_float=False))
                literal = typed.Literal(node.pattern.span, type_, turn)
                tracer.checker.literals.append(literal)
                tracer.declare(node.pattern.name, literal, Constant(turn, element))
            _block(tracer, node.body)
        if len(tracer.trace.diagnostics) > before:
            return  # the same again in each turn


# ---- macros --------------------------------------------------------------------------------------


def _macro(tracer: Tracer, node: ast.MacroCall) -> None:
    name = node.name.text
    if name not in _MACROS:
        raise refusal(
            "E0804",
            f"`{name}!` is not for pipelines",
            node.span,
            "used here",
            help="a launcher checks `requires!`, a build `static_assert!`",
        )
    if name == "static_assert":
        tracer.checker.statement(node)
        return
    tested = condition_of(node)
    value = Scalar(tracer.frame, tracer.as_written(tested, BOOL))
    is_outermost = not tracer.calls and tracer.checker.scope.depth == _BODY_DEPTH
    text = text_of_condition(tracer.checker, tested) if is_outermost else None
    tracer.trace.requires.append(Required(value, text, tested.span, tracer.calls))
