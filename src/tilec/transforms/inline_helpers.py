"""Put the body of each helper where it is called.

Before:   kernels and private functions, no recursion
After:    kernels only

MLIR's inliner leaves our operations alone, since an IRDL dialect cannot say that they may move. A
helper has one block, so its operations move to the call as they are. Its constants are put at the
start of the kernel, each once: a helper that is called thousands of times brings the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.registry import rules

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
            constants = _Constants(kernel)
            calls = _calls_in(operations(kernel))
            while calls:
                calls += _calls_in(_inline(calls.pop(), helpers, constants))
    for helper in helpers.values():
        helper.operation.erase()


def _calls_in(found: Iterable[ir.OpView]) -> list[ir.OpView]:
    return [op for op in found if op.operation.name == _CALL]


class _Constants:
    """Those of helpers, at the start of a kernel."""

    def __init__(self, kernel: ir.OpView) -> None:
        [self._block] = kernel.regions[0].blocks
        self._known: dict[tuple[str, ir.Attribute, ir.Type], ir.Value] = {}

    def takes(self, op: ir.OpView) -> bool:
        """Whether it was a constant, which is here now."""
        operation = op.operation
        if not rules()[operation.name].constant or len(operation.attributes) != 1:
            return False
        [result], [named] = operation.results, operation.attributes
        key = (operation.name, operation.attributes[named], result.type)
        if key in self._known:
            result.replace_all_uses_with(self._known[key])
            operation.erase()
        else:
            operation.move_before(self._block.operations[0])
            self._known[key] = result
        return True


def _inline(
    call: ir.OpView, helpers: dict[str, ir.OpView], constants: _Constants
) -> Iterator[ir.OpView]:
    """Puts a body in place of a call; gives the operations that are new, those inside of others
    too."""
    helper = helpers[ir.FlatSymbolRefAttr(call.attributes["callee"]).value]
    copy = helper.operation.clone(ip=ir.InsertionPoint(call))
    [block] = copy.regions[0].blocks
    for argument, operand in zip(block.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, end = list(block.operations)
    body = [op for op in body if not constants.takes(op)]
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
