"""The order in which the operations of a function run, as far as it is structured control flow."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.registry import rules


def is_repeated(op: ir.Operation) -> bool:
    """Whether its regions may run several times, as a combiner's do; else it runs one of them."""
    rule = rules().get(op.name)
    return rule is None or rule.loop or not rule.control


def is_end(op: ir.OpView) -> bool:
    """Whether it ends a block and hands its operands on."""
    name = op.operation.name
    return name in rules() and rules()[name].terminator


class Flow:
    """One function: its operations in program order, and what is around each."""

    def __init__(self, function: ir.OpView) -> None:
        self.ops = list(operations(function))
        self._position = {op.operation: i for i, op in enumerate(self.ops)}
        # One step out at a time, with the region that it is in.
        self._outer: dict[ir.Operation, tuple[ir.Operation, int]] = {}
        for op in self.ops:
            for number, region in enumerate(op.regions):
                for block in region.blocks:
                    for inner in block.operations:
                        self._outer[inner.operation] = op.operation, number
        self._repeated: set[ir.Operation] = set()
        for op in self.ops:
            outer = self._outer.get(op.operation)
            if outer and (is_repeated(outer[0]) or outer[0] in self._repeated):
                self._repeated.add(op.operation)

    def position(self, op: ir.OpView) -> int:
        return self._position[op.operation]

    def is_in_loop(self, op: ir.OpView) -> bool:
        return op.operation in self._repeated

    def may_follow(self, later: ir.OpView, op: ir.OpView, since: ir.OpView) -> bool:
        """Whether `later` may run after `op`, with no run of `since` in between."""
        if later.operation == op.operation:
            return False
        around_since = {a for a, _ in self._around(since)}
        regions = dict(self._around(op))
        shared = [(a, i, regions[a]) for a, i in self._around(later) if a in regions]
        if any(is_repeated(a) and a not in around_since for a, _, _ in shared):
            return True
        if any(not is_repeated(a) and i != j for a, i, j in shared):
            return False
        return self.position(later) > self.position(op)

    def _around(self, op: ir.OpView) -> Iterator[tuple[ir.Operation, int]]:
        """The operations around one, with the number of the region of each that it is in."""
        outer = self._outer.get(op.operation)
        while outer is not None:
            yield outer
            outer = self._outer.get(outer[0])
