"""`requires!`, `assert!`, `static_assert!`; the other macros are no part of the language."""

from __future__ import annotations

from tilec.diagnostics import CompileError
from tilec.frontend import ast, typed
from tilec.frontend.checker import Checker, expression_rule, statement_rule
from tilec.frontend.constants import evaluate, with_way
from tilec.frontend.host import is_host
from tilec.frontend.names_elsewhere import MACROS
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.frontend.typecheck_operators import condition
from tilec.frontend.ways import Use
from tilec.types import BOOL, UNIT

_MACROS = ("requires", "assert", "static_assert")


@statement_rule(ast.MacroCall)
def macro(checker: Checker, node: ast.MacroCall) -> typed.Statement:
    name = node.name.text
    if name == "println":
        message, help = "`println!` is not in this version of tilec", Use(()).text(MACROS[name])
        raise refusal("E0103", message, node.span, "used here", help=help)
    if name not in _MACROS:
        raise refusal(
            "E0102",
            f"`{name}!` is not in the language",
            node.name.span,
            help=did_you_mean(name, _MACROS),
        )
    tested = condition_of(node)
    if name == "static_assert":
        return _static_assert(checker, node, tested)
    if name == "requires":
        _expect_top_level(checker, node)
    value = condition(checker, tested)
    if name == "requires" and not is_host(value):
        raise refusal(
            "E0203",
            "`requires!` is over extents and scalar parameters",
            tested.span,
            "a launcher cannot know this",
            help="use `assert!` for what is known only when the kernel runs",
        )
    return typed.Require(node.span, value, text_of_condition(checker, tested), name == "requires")


@expression_rule(ast.MacroCall)
def macro_value(checker: Checker, node: ast.MacroCall) -> typed.Expression:
    return typed.Block(node.span, UNIT, (checker.statement(node),), None)


def condition_of(node: ast.MacroCall) -> ast.Expression:
    match node.arguments:
        case (tested,) | (tested, ast.StringLiteral()):
            return tested
    raise refusal(
        "E0203",
        f"`{node.name.text}!` takes a condition, and a message if wanted",
        node.span,
        f"got {len(node.arguments)} arguments",
    )


def _expect_top_level(checker: Checker, node: ast.MacroCall) -> None:
    if checker.is_kernel and checker.conditional_depth == 0:
        return
    where = "in a branch or loop" if checker.is_kernel else "in a helper"
    raise refusal(
        "E0102", "`requires!` stands at the top level of a kernel", node.span, f"this is {where}"
    )


def _static_assert(
    checker: Checker, node: ast.MacroCall, tested: ast.Expression
) -> typed.Statement:
    try:
        holds = evaluate(tested, checker.environment, BOOL).value
    except CompileError as error:
        help = "what extents and scalar parameters must be is for `requires!`"
        raise with_way(error, help) from None
    if not holds:
        match node.arguments:
            case (_, ast.StringLiteral(value=message)):
                text = message
            case _:
                text = "this is false"
        given = ", ".join(
            f"{name} = {value}"
            for name, value in checker.environment.generics.items()
            if str(value) != name
        )
        notes = (f"with {given}",) if given else ()
        raise refusal("E0703", "`static_assert!` does not hold", tested.span, text, notes=notes)
    return typed.Evaluate(node.span, typed.Block(node.span, UNIT, (), None))


def text_of_condition(checker: Checker, node: ast.Expression) -> str:
    """The condition as it is written, on one line."""
    source = checker.kernel.program.sources[node.span.file]
    return " ".join(source.text[node.span.start : node.span.end].split())
