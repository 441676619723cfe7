"""E0102: no function calls itself, not through others either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.modules import Module, Program

_Home = tuple[Module, ast.Function]


def check_recursion(program: Program) -> Iterator[Diagnostic]:
    """Yields E0102 at each call that closes a circle."""
    done: set[int] = set()
    for module in program.modules.values():
        for item in module.items.values():
            if isinstance(item, ast.Function):
                yield from _circles((module, item), [], done)


def _circles(home: _Home, active: list[ast.Function], done: set[int]) -> Iterator[Diagnostic]:
    module, function = home
    if id(function) in done:
        return
    active.append(function)
    for call, callee in _calls(module, function):
        if any(callee[1] is one for one in active):
            name = callee[1].name
            labels = (
                Label(call.span, f"`{name.text}` is being called already"),
                Label(name.span, "defined here"),
            )
            yield Diagnostic("E0102", "recursion is not in the language", labels)
        else:
            yield from _circles(callee, active, done)
    active.pop()
    done.add(id(function))


def _calls(module: Module, function: ast.Function) -> Iterator[tuple[ast.Call, _Home]]:
    waiting: list[ast.Node] = [function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and len(node.function.segments) == 1:
            found = module.find(node.function.segments[0].name.text)
            if found is not None and _is_called(found[1]):
                assert isinstance(found[1], ast.Function), "what is called is a function"
                yield node, (found[0], found[1])
        for entry in fields(node):
            value = getattr(node, entry.name)
            parts = value if isinstance(value, tuple) else (value,)
            waiting += reversed([part for part in parts if isinstance(part, ast.Node)])


def _is_called(item: ast.Function | ast.Const) -> bool:
    """Whether an item can be called; a kernel is launched, and calls no pipeline."""
    if not isinstance(item, ast.Function):
        return False
    return not any(a.name.text == "kernel" for a in item.attributes)
