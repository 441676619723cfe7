"""The body of a kernel, and the guards in it: `if … { return; }` at its top level."""

from __future__ import annotations

from tilec.diagnostics import CompileError
from tilec.frontend import ast, typed
from tilec.frontend.checker import Checker, expression_rule
from tilec.frontend.patterns import settle
from tilec.frontend.refusal import refusal
from tilec.frontend.typecheck_statements import branches, checked_statements
from tilec.source import Span
from tilec.types import UNIT

MOST_GUARDS = 256


@expression_rule(ast.Return)
def return_(checker: Checker, node: ast.Return) -> typed.Expression:
    if checker.is_kernel:
        text = "not at the top level of the kernel, under an `if`"
        help = "put what would follow into an `if`"
    else:
        text, help = "in a helper", "write the value as the last expression"
    checker.has_refused_return = True
    raise refusal(
        "E0102", "`return` is a guard: `if … { return; }` in a kernel", node.span, text, help=help
    )


def guard(checker: Checker, node: ast.If) -> typed.Guard | None:
    """An `if` at the top level of a kernel with a branch that returns, or None."""
    then = _without_return(node.then)
    otherwise = _without_return(node.otherwise) if isinstance(node.otherwise, ast.Block) else None
    if then is None and otherwise is None:
        return None
    plain = ast.If(node.span, node.condition, then or node.then, otherwise or node.otherwise)
    tested, then_block, otherwise_block = branches(
        checker,
        plain,
        then_returns=then is not None,
        otherwise_returns=otherwise is not None,
    )
    return typed.Guard(
        node.span,
        tested,
        then_block,
        otherwise_block,
        then is not None,
        otherwise is not None,
    )


def _without_return(node: ast.Block) -> ast.Block | None:
    """A block that ends in `return`, without it; None for any other."""
    if node.unsafe_span is not None:
        return None
    if isinstance(node.tail, ast.Return) and node.tail.value is None:
        return ast.Block(node.span, node.statements, None)
    match node.statements:
        case (*before, ast.ExpressionStatement(value=ast.Return(value=None))) if not node.tail:
            return ast.Block(node.span, tuple(before), None)
    return None


def kernel_body(checker: Checker, node: ast.Block) -> typed.Block:
    """The body of a kernel, where guards may stand and nothing is returned."""
    found: list[typed.Statement] = []
    statements = list(node.statements)
    if node.tail is not None:
        statements.append(ast.ExpressionStatement(node.tail.span, node.tail))
    for statement in statements:
        found += _top_level(checker, statement)
    _expect_few_guards(checker, found)
    if node.tail is not None and found:
        _expect_no_value(checker, found[-1], node.tail.span)
    return typed.Block(node.span, UNIT, tuple(found), None)


def _expect_few_guards(checker: Checker, statements: list[typed.Statement]) -> None:
    """E0102 for the first guard that is too many: what follows a guard lies inside of it."""
    guards = [one for one in statements if isinstance(one, typed.Guard)]
    if len(guards) > MOST_GUARDS:
        checker.report(
            refusal(
                "E0102",
                f"a kernel has at most {MOST_GUARDS} guards",
                guards[MOST_GUARDS].span,
                "one too many",
                help="join conditions: `if a || b { return; }`",
            )
        )


def _top_level(checker: Checker, node: ast.Statement) -> tuple[typed.Statement, ...]:
    match node:
        case ast.ExpressionStatement(value=ast.If() as conditional):
            first_literal = len(checker.literals)
            try:
                found = guard(checker, conditional)
            except CompileError as error:
                checker.report(error)
                settle(checker, conditional, first_literal)
                return ()
            if found is not None:
                return (found,)
    return checked_statements(checker, (node,))


def _expect_no_value(checker: Checker, last: typed.Statement, span: Span) -> None:
    match last:
        case typed.Evaluate(value=value) if value.type != UNIT and value.span == span:
            shown = checker.inference.resolve_type(value.type)
            checker.report(
                refusal(
                    "E0203",
                    "a kernel returns nothing",
                    span,
                    f"this is `{shown}`",
                    help="end it with `;`",
                )
            )
