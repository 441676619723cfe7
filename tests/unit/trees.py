"""Syntax trees without places, the nodes of a tree, and trees as text, for the parser's tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tilec.diagnostics import Diagnostic
from tilec.frontend import ast
from tilec.frontend.parse import parse
from tilec.source import SourceFile, Span

NOWHERE = Span("", 0, 0)

# The Rust Reference, "Expression precedence", strongest first; unary operators bind stronger than
# all of these, methods, fields and indices stronger still.
LEVELS = (
    ("as",), ("*", "/", "%"), ("+", "-"), ("<<", ">>"), ("&",), ("^",), ("|",),
    ("==", "!=", "<", ">", "<=", ">="), ("&&",), ("||",),
)  # fmt: skip
STRENGTH = {operator: -i for i, level in enumerate(LEVELS) for operator in level}
UNARY, POSTFIX = 1, 2


def parsed(text: str) -> ast.File:
    """The tree of a text that has nothing wrong with it."""
    file, found = parse(SourceFile("case.tile", text))
    assert found == []
    return file


def refused(text: str) -> list[Diagnostic]:
    """What is wrong with the syntax of a text."""
    return parse(SourceFile("case.tile", text))[1]


def expression(text: str) -> ast.Expression:
    """The tree of an expression."""
    [item] = parsed(f"const X: T = {text};").items
    assert isinstance(item, ast.Const)
    return item.value


def shape(value: object) -> object:
    """A tree as nested tuples, without places."""
    if isinstance(value, Span):
        return "somewhere"
    if isinstance(value, ast.Node):
        kept = (f.name for f in fields(value) if f.name not in ("span", "operator_span"))
        return (type(value).__name__, *(shape(getattr(value, name)) for name in kept))
    return tuple(map(shape, value)) if isinstance(value, tuple) else value


def children(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes right below a node."""
    for field in fields(node):
        value = getattr(node, field.name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, ast.Node):
                yield child


def all_nodes(node: ast.Node) -> Iterator[ast.Node]:
    """A node and everything below it."""
    yield node
    for child in children(node):
        yield from all_nodes(child)


def text_of(node: ast.Expression, weakest: int = -99) -> str:
    """An expression as text, with parentheses only where precedence asks for them."""
    match node:
        case ast.IntegerLiteral(value=value, suffix=suffix):
            return f"{value}{suffix or ''}"
        case ast.FloatLiteral(text=text, suffix=suffix):
            return f"{text}{suffix or ''}"
        case ast.BoolLiteral(value=value):
            return str(value).lower()
        case ast.Path(segments=segments):
            return "::".join(segment.name.text for segment in segments)
        case ast.Unary(operator=operator, operand=operand):
            return _enclosed(operator + text_of(operand, UNARY), weakest > UNARY)
        case ast.Cast(value=value, target=ast.PathType(name=name)):
            own = STRENGTH["as"]
            return _enclosed(f"{text_of(value, own)} as {name.text}", own < weakest)
        case ast.Binary(operator=operator, left=left, right=right):
            own = STRENGTH[operator]
            # Comparisons do not associate; `<` after a cast would start generic arguments.
            before = own + 1 if own == STRENGTH["<"] else own
            first = text_of(left, before)
            if operator in ("<", "<<") and _ends_with_cast(left, before):
                first = f"({first})"
            return _enclosed(f"{first} {operator} {text_of(right, own + 1)}", own < weakest)
        case ast.MethodCall(receiver=receiver, method=method, arguments=arguments):
            return f"{text_of(receiver, POSTFIX)}.{method.text}({_list(arguments)})"
        case ast.Index(value=value, index=index):
            return f"{text_of(value, POSTFIX)}[{text_of(index)}]"
        case ast.Field(value=value, index=index):
            return f"{text_of(value, POSTFIX)}.{index}"
        case ast.Call(function=function, arguments=arguments):
            return f"{text_of(function)}({_list(arguments)})"
        case ast.Tuple(items=items):
            return f"({', '.join(map(text_of, items))}{',' if len(items) == 1 else ''})"
        case ast.Array(items=items):
            return f"[{_list(items)}]"
    raise AssertionError(f"no text for {node}")


def _list(items: tuple[ast.Expression, ...]) -> str:
    return ", ".join(map(text_of, items))


def _enclosed(text: str, is_weak: bool) -> str:
    return f"({text})" if is_weak else text


def _ends_with_cast(node: ast.Expression, weakest: int) -> bool:
    while isinstance(node, ast.Binary) and STRENGTH[node.operator] >= weakest:
        node, weakest = node.right, STRENGTH[node.operator] + 1
    return isinstance(node, ast.Cast) and STRENGTH["as"] >= weakest
