"""Patterns of `let`, `for`, parameters and closures: the variables they declare."""

from __future__ import annotations

from tilec.frontend import ast, typed
from tilec.frontend.checker import Checker
from tilec.frontend.refusal import refusal
from tilec.ops.call import Value
from tilec.types import ArrayType, TupleType, Type


def bind_pattern(
    checker: Checker, pattern: ast.Pattern, type_: Type, *, host: bool = False
) -> typed.Pattern:
    """Declare the variables of a pattern for a value of a type. Raises CompileError E0203."""
    match pattern:
        case ast.BindingPattern():
            host = host and not pattern.mutable
            local = typed.Local(pattern.name.text, pattern.name.span, type_, pattern.mutable, host)
            checker.scope.declare(local)
            return typed.Bind(pattern.span, local)
        case ast.WildcardPattern():
            return typed.Ignore(pattern.span)
        case ast.TuplePattern() | ast.ArrayPattern():
            return _bind_items(checker, pattern, type_)
        case ast.LiteralPattern():
            raise refusal("E0102", "a pattern here binds every value", pattern.span)


def _bind_items(
    checker: Checker, pattern: ast.TuplePattern | ast.ArrayPattern, type_: Type
) -> typed.Pattern:
    items = _items_of(type_, pattern)
    if items is None or len(items) != len(pattern.items):
        wanted = "a tuple" if isinstance(pattern, ast.TuplePattern) else "an array"
        raise refusal(
            "E0203",
            f"expected {wanted} of {len(pattern.items)} items",
            pattern.span,
            f"the value is `{checker.inference.resolve_type(type_)}`",
        )
    pairs = zip(pattern.items, items, strict=True)
    return typed.Group(pattern.span, tuple(bind_pattern(checker, p, t) for p, t in pairs))


def _items_of(type_: Type, pattern: ast.TuplePattern | ast.ArrayPattern) -> tuple[Type, ...] | None:
    match type_, pattern:
        case TupleType(items=items), ast.TuplePattern():
            return items
        case ArrayType(item=item, length=length), ast.ArrayPattern():
            return (item,) * length
    return None


def poison(checker: Checker, pattern: ast.Pattern) -> None:
    """Declare the variables of a pattern whose value was refused: their uses report nothing."""
    match pattern:
        case ast.BindingPattern():
            name = pattern.name
            checker.scope.declare(typed.Local(name.text, name.span, None, pattern.mutable))
        case ast.TuplePattern() | ast.ArrayPattern():
            for item in pattern.items:
                poison(checker, item)


def settle(checker: Checker, node: ast.Node, first_literal: int) -> None:
    """Keep a refused statement from causing more errors.

    The variables that it assigns have a value from here on. The numbers in it, and those that its
    variables are made of, may have got their type from what was refused; `first_literal` is where
    those of the statement begin.
    """
    checker.doubted += [literal.type for literal in checker.literals[first_literal:]]
    for path in ast.below(node, ast.Path):
        read = checker.scope.find(path.segments[0].name.text)
        if read is not None and read.type is not None:
            checker.doubted.append(read.type)
    for target in (found.target for found in ast.below(node, ast.Assign)):
        while isinstance(target, (ast.Field, ast.Index)):
            target = target.value
        match target:
            case ast.Path(segments=(ast.Segment(name=name),)):
                local = checker.scope.find(name.text)
                if local is not None:
                    checker.scope.assign(local)


def bound_values(pattern: typed.Pattern, value: Value) -> dict[typed.Local, Value]:
    """The variables of a pattern with the values that they get."""
    match pattern:
        case typed.Bind(local=local):
            return {local: value}
        case typed.Group(items=items):
            assert isinstance(value, tuple) and len(value) == len(items), "checked by type"
            found: dict[typed.Local, Value] = {}
            for item, part in zip(items, value, strict=True):
                found |= bound_values(item, part)
            return found
        case typed.Ignore():
            return {}
