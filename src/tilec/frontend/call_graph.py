"""E0102: no function calls itself, not through others either."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.diagnostics import Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.modules import Module, Program

_Home = tuple[Module, ast.Function]
_Calls = Iterator[tuple[ast.Call, _Home]]


def check_recursion(program: Program) -> Iterator[Diagnostic]:
    """Yields E0102 at each call that closes a circle, and notes in `program` whom it calls."""
    seen: set[int] = set()
    for module in program.modules.values():
        for item in module.items.values():
            if isinstance(item, ast.Function) and id(item) not in seen:
                yield from _circles(program, (module, item), seen)


def _circles(program: Program, home: _Home, seen: set[int]) -> Iterator[Diagnostic]:
    # A stack, not a recursion: chains of calls may be of any length.
    chain: list[tuple[int, _Calls]] = []
    active: set[int] = set()

    def enter(home: _Home) -> None:
        function = id(home[1])
        seen.add(function)
        active.add(function)
        chain.append((function, _calls(*home)))

    enter(home)
    while chain:
        function, calls = chain[-1]
        found = next(calls, None)
        if found is None:
            active.discard(function)
            chain.pop()
            continue
        call, callee = found
        if id(callee[1]) in active:
            program.recursive.add(id(callee[1]))
            yield _closing(call, callee[1])
        elif id(callee[1]) not in seen:
            enter(callee)


def _closing(call: ast.Call, function: ast.Function) -> Diagnostic:
    name = function.name
    labels = (
        Label(call.span, f"`{name.text}` is being called already"),
        Label(name.span, "defined here"),
    )
    return Diagnostic("E0102", "recursion is not in the language", labels)


def _calls(module: Module, function: ast.Function) -> _Calls:
    for node in ast.below(function.body, ast.Call):
        if len(node.function.segments) == 1:
            found = module.find(node.function.segments[0].name.text)
            if found is not None and _is_called(found[1]):
                assert isinstance(found[1], ast.Function), "what is called is a function"
                yield node, (found[0], found[1])


def _is_called(item: ast.Function | ast.Const) -> bool:
    """Whether an item can be called; a kernel is launched, and calls no pipeline."""
    if not isinstance(item, ast.Function):
        return False
    return not any(a.name.text == "kernel" for a in item.attributes)
