"""Puts the bodies of helpers where they are called.

Before:     kernels call private functions, which may call others; none is recursive
After:      only kernels are left, and nothing is called
Algorithm:  callees first: a copy of the callee's operations is moved before the call, arguments and
            results are replaced by the call's; then the helpers are erased
"""

from __future__ import annotations

from mlir import ir

from tilec.transforms.effects import blocks_of

CALL = "func.call"


def inline_helpers(module: ir.Module) -> None:
    """Inline every call; erase every function that is no kernel."""
    functions = {
        ir.StringAttr(function.attributes["sym_name"]).value: function
        for function in module.body.operations
        if function.operation.name == "func.func"
    }
    done: set[str] = set()
    for name in functions:
        _inline_into(name, functions, done)
    for function in functions.values():
        if "tile.kernel" not in function.attributes:
            function.operation.erase()


def _inline_into(name: str, functions: dict[str, ir.OpView], done: set[str]) -> None:
    if name in done:
        return
    done.add(name)
    for call in _calls(functions[name]):
        callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        _inline_into(callee, functions, done)
        _inline(call, functions[callee])


def _calls(op: ir.OpView) -> list[ir.OpView]:
    found: list[ir.OpView] = []
    for block in blocks_of(op):
        for inner in block.operations:
            found += _calls(inner)
            if inner.operation.name == CALL:
                found.append(inner)
    return found


def _inline(call: ir.OpView, callee: ir.OpView) -> None:
    copy = callee.operation.clone(ir.InsertionPoint(callee.operation))
    block = copy.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, terminator = list(block.operations)
    for op in body:
        op.operation.move_before(call.operation)
    for result, value in zip(call.results, terminator.operands, strict=True):
        result.replace_all_uses_with(value)
    call.operation.erase()
    copy.operation.erase()
