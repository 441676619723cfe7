"""Whether a tile comes from memory in a layout: it is loaded so, or computed of what is."""

from __future__ import annotations

from mlir import ir

from tilec.ir.types import is_tile
from tilec.layout import Layout
from tilec.ops.lower_control import terminator_of
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules, Placing

# How far back is asked.
_MOST_STEPS = 16


def comes_as(value: ir.Value, layout: Layout, placing: Placing) -> bool:
    """Whether threads load a tile such that they have it in a layout, or all that it is made of."""
    return _Asked(placing).comes_as(value, layout, _MOST_STEPS)


class _Asked:
    """What was asked already: a tile may be used on many ways, of which there are more and more."""

    def __init__(self, placing: Placing) -> None:
        self._placing = placing
        self._known: dict[tuple[ir.Value, Layout, int], bool] = {}

    def comes_as(self, value: ir.Value, layout: Layout, steps: int) -> bool:
        key = value, layout, steps
        if key not in self._known:
            self._known[key] = steps > 0 and self._found(value, layout, steps)
        return self._known[key]

    def _found(self, value: ir.Value, layout: Layout, steps: int) -> bool:
        if isinstance(value.owner, ir.Block):
            carried = _carried_into(value)
            return bool(carried) and all(self.comes_as(x, layout, steps - 1) for x in carried)
        op = value.owner.opview
        rule = rules()[op.operation.name]
        if rule.control or rule.lies_in_shared or _is_fixed(op, rule, self._placing):
            return False
        operands = rule.serve(op, layout, self._placing)
        if operands is None:
            return False
        return all(
            wanted is not None and self.comes_as(operand, wanted, steps - 1)
            for operand, wanted in zip(op.operands, operands, strict=True)
            if is_tile(operand)
        )


def _carried_into(value: ir.Value) -> tuple[ir.Value, ...]:
    """What a variable of a loop is before its first turn, and after each; nothing if it is none."""
    block = value.owner
    loop = block.owner
    if loop.name != "scf.for":
        return ()
    number = ir.BlockArgument(value).arg_number - 1
    return loop.operands[3 + number], terminator_of(block).operands[number]


def _is_fixed(op: ir.OpView, rule: OpRules, placing: Placing) -> bool:
    """Whether it wants a layout of its own, and takes no other."""
    if rule.flexible or type(rule).place is OpRules.place:
        return False
    results = rule.place_results(op, [None] * len(op.operands), placing)
    return any(layout is not None for layout in results)
