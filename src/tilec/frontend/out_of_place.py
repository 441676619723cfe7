"""What the grammar takes anywhere and the language only at some places (E0102).

Strings stand only in macros and attributes, ranges only in the head of a `for`, closures and
references only as arguments, patterns that can fail only in `match`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.functions_elsewhere import FUNCTIONS


def check_places(file: ast.File) -> Iterator[Diagnostic]:
    """Yields E0102 for each expression at a place where it is no value of the language."""
    # A stack, not a recursion: a tree may be deeper than Python's own stack.
    waiting: list[ast.Node] = [file]
    allowed: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) not in allowed:
            yield from _misplaced(node)
        allowed.update(id(child) for child in _allowed_children(node))
        waiting.extend(ast.children(node))


def _misplaced(node: ast.Node) -> Iterator[Diagnostic]:
    match node:
        case ast.StringLiteral():
            what, help = "strings as values", "a string stands in `println!` or as a message"
        case ast.Range():
            what, help = "ranges as values", "a range stands in the head of a `for`"
        case ast.Closure():
            what = "closures as values"
            help = "a closure combines in `reduce` and `scan`; for anything else write a function"
        case ast.Borrow():
            what, help = "references as values", "`&` stands before an argument of a call"
        case ast.LiteralPattern():
            what, help = "patterns that can fail, outside `match`,", "bind a name and compare it"
        case _:
            return
    yield Diagnostic("E0102", f"{what} are not in the language", (Label(node.span),), help=help)


def _allowed_children(node: ast.Node) -> tuple[ast.Node, ...]:
    """The children that may be here what they may not be elsewhere."""
    match node:
        case ast.Call() if node.function.segments[-1].name.text in FUNCTIONS:
            return node.arguments  # as `printf("%d", n)`, which the type checker refuses
        case ast.Call(arguments=arguments) | ast.MethodCall(arguments=arguments):
            return tuple(a for a in arguments if isinstance(a, ast.Closure | ast.Borrow))
        case ast.MacroCall(arguments=arguments):
            return tuple(a for a in arguments if isinstance(a, ast.StringLiteral))
        case ast.AttributeArgument(value=ast.StringLiteral() as value):
            return (value,)
        case ast.For(iterable=iterable):
            return (_range_under_methods(iterable),)
        case ast.MatchArm(patterns=patterns):
            return patterns
        case ast.LiteralPattern(value=value):
            return (value,)
    return ()


def _range_under_methods(iterable: ast.Expression) -> ast.Expression:
    """The `0..n` of `(0..n).step_by(2).rev()`."""
    while isinstance(iterable, ast.MethodCall):
        iterable = iterable.receiver
    return iterable
