"""How views, parts and loans of them come from each other."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.walk import functions

# What makes a smaller or a lent view; any other operation gives another name for its operand.
BORROW = "tile.borrow"
SUB = "tile.sub"
LOANS = (BORROW, SUB)
MOVE = "tile.move"
CALL = "func.call"


def is_view(value: ir.Value) -> bool:
    return isinstance(value.type, ir.MemRefType)


class Views:
    """Where the views of a module come from; calls are looked through, to what a helper gives back.

    Assumes:  no recursion
    """

    def __init__(self, module: ir.Module) -> None:
        self._helpers = {
            ir.StringAttr(function.attributes["sym_name"]).value: function
            for function in functions(module)
        }
        self._given_back: dict[str, tuple[int, ...]] = {}

    def parents(self, value: ir.Value) -> Iterator[ir.Value]:
        """The views that a view is another way to, or a piece of."""
        if isinstance(value.owner, ir.Block):
            return
        op = value.owner
        if op.operation.name == CALL:
            yield from (op.operands[number] for number in self._returned(op))
            return
        yield from (operand for operand in op.operands if is_view(operand))

    def ancestors(self, value: ir.Value) -> Iterator[ir.Value]:
        """A view, the views it comes from, and so on to the arguments of the function."""
        waiting = [value]
        seen: set[ir.Value] = set()
        while waiting:
            found = waiting.pop()
            if found in seen:
                continue
            seen.add(found)
            yield found
            waiting += self.parents(found)

    def roots(self, value: ir.Value) -> Iterator[ir.Value]:
        """Where a view comes from in its function: arguments, for the most part one."""
        yield from (found for found in self.ancestors(value) if not any(self.parents(found)))

    def _returned(self, call: ir.OpView) -> tuple[int, ...]:
        """The numbers of the operands that the views in a call's results may come from."""
        name = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
        if name not in self._given_back:
            self._given_back[name] = self._arguments_behind_result(self._helpers[name])
        return self._given_back[name]

    def _arguments_behind_result(self, helper: ir.OpView) -> tuple[int, ...]:
        block = helper.regions[0].blocks[0]
        end = list(block.operations)[-1]
        found = {v for value in end.operands if is_view(value) for v in self.ancestors(value)}
        return tuple(argument.arg_number for argument in block.arguments if argument in found)
