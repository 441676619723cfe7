"""Put the body of each helper where it is called.

Before:   kernels and private functions, no recursion
After:    kernels only

MLIR's inliner leaves our operations alone, since an IRDL dialect cannot say that they may move. A
helper has one block, so its operations move to the call as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlir import ir

from tilec.ir.walk import operations

_CALL = "func.call"


def inline_helpers(module: ir.Module) -> None:
    """Rewrites the module in place; helpers are erased.

    What is put in is looked at once, so that this takes as long as the result is large.
    """
    helpers = {
        ir.StringAttr(op.attributes["sym_name"]).value: op
        for op in module.body.operations
        if "tile.kernel" not in op.attributes
    }
    for kernel in module.body.operations:
        if "tile.kernel" in kernel.attributes:
            calls = _calls_in(operations(kernel))
            while calls:
                calls += _calls_in(_inline(calls.pop(), helpers))
    for helper in helpers.values():
        helper.operation.erase()


def _calls_in(found: Iterable[ir.OpView]) -> list[ir.OpView]:
    return [op for op in found if op.operation.name == _CALL]


def _inline(call: ir.OpView, helpers: dict[str, ir.OpView]) -> Iterator[ir.OpView]:
    """Puts a body in place of a call; gives the operations that are new, those inside of others
    too."""
    helper = helpers[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
    copy = helper.operation.clone(ip=ir.InsertionPoint(call))
    [block] = copy.regions[0].blocks
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, end = list(block.operations)
    for op in body:
        op.operation.move_before(call.operation)
    for result, value in zip(call.results, list(end.operands), strict=True):
        result.replace_all_uses_with(value)
    call.operation.erase()
    copy.erase()
    for op in body:
        yield op
        if len(op.regions):  # as few have: what this is asked of goes by thousands
            yield from operations(op)
