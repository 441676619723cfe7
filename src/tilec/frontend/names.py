"""Names of a function that no instance reaches: unknown ones are E0201 all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tilec.diagnostics import Diagnostic
from tilec.frontend import ast
from tilec.frontend.constants import unknown_name
from tilec.frontend.modules import Module
from tilec.ops import operations
from tilec.ops.call import Form
from tilec.types import ELEMENTS

_TYPES = frozenset({"Tile", "Tensor", "Part", "Atomic", *ELEMENTS})


def check_names(function: ast.Function, module: Module) -> Iterator[Diagnostic]:
    """E0201 for every name in a function that nothing declares."""
    known = {generic.name.text for generic in function.generics}
    scope = _Names(module, known | module.names() | module.missing | _TYPES)
    for parameter in function.parameters:
        yield from scope.walk(parameter.type)
        scope.declare(parameter.pattern)
    if function.result is not None:
        yield from scope.walk(function.result)
    yield from scope.walk(function.body)


class _Names:
    """The names that are visible at one place."""

    def __init__(self, module: Module, known: set[str]) -> None:
        self._module = module
        self._known = known

    def declare(self, pattern: ast.Pattern) -> None:
        match pattern:
            case ast.BindingPattern(name=name):
                self._known.add(name.text)
            case ast.TuplePattern(items=items) | ast.ArrayPattern(items=items):
                for item in items:
                    self.declare(item)

    def walk(self, node: object) -> Iterator[Diagnostic]:
        match node:
            case tuple():
                for item in node:
                    yield from self.walk(item)
            case ast.Call():
                yield from self._call(node)
            case ast.Path(segments=(first, *_)):
                yield from self._use(first.name)
                yield from self.walk(tuple(s.arguments for s in node.segments))
            case ast.PathType():
                yield from self._use(node.name)
                yield from self.walk(node.arguments)
            case ast.Let():
                yield from self.walk((node.type, node.value))
                self.declare(node.pattern)
            case ast.For():
                yield from self.walk(node.iterable)
                yield from self._inside((node.pattern,), node.body)
            case ast.Closure():
                yield from self._inside(node.parameters, node.body)
            case ast.MatchArm():
                yield from self._inside(node.patterns, (node.guard, node.body))
            case ast.Block():
                yield from self._inside((), (*node.statements, node.tail))
            case ast.Node():
                for entry in fields(node):
                    yield from self.walk(getattr(node, entry.name))

    def _inside(self, patterns: tuple[ast.Pattern, ...], body: object) -> Iterator[Diagnostic]:
        inner = _Names(self._module, set(self._known))
        for pattern in patterns:
            inner.declare(pattern)
        yield from inner.walk(body)

    def _call(self, node: ast.Call) -> Iterator[Diagnostic]:
        name = node.function.segments[0].name
        single = len(node.function.segments) == 1
        functions = operations.names(Form.FUNCTION, None)
        if not single or name.text not in functions:
            yield from self._use(name)
        yield from self.walk(tuple(s.arguments for s in node.function.segments))
        yield from self.walk(node.arguments)

    def _use(self, name: ast.Name) -> Iterator[Diagnostic]:
        if name.text in self._known:
            return
        yield from unknown_name(name, self._known).diagnostics
