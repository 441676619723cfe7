"""Along which axes of the grid programs that are neighbours may have other numbers.

What a number is made of is followed back to the program's own coordinates. What is read from
memory, and what loops carry or branches choose, may be another number in every program.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ops.registry import rules

# More than any grid has; all of them.
ANY_AXIS = frozenset(range(8))


class ProgramAxes:
    """Those of the numbers and views of one function, each found once."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, frozenset[int]] = {}

    def of_all(self, values: Iterable[ir.Value]) -> frozenset[int]:
        """Along which axes any of these may differ."""
        return frozenset().union(*(self.of(value) for value in values))

    def of(self, value: ir.Value) -> frozenset[int]:
        """Along which axes neighbours may have another value here."""
        if value not in self._known:
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: ir.Value) -> frozenset[int]:
        owner = value.owner
        if isinstance(owner, ir.Block):
            around = owner.owner.operation
            if around.name == "func.func":
                return frozenset()  # a launch has one of each
            is_turn = around.name == "scf.for" and value == owner.arguments[0]
            return self.of_all(list(around.operands)[:3]) if is_turn else ANY_AXIS
        op = owner.opview
        declared = declarations().get(owner.name)
        if declared is not None and (declared.reads or declared.writes or declared.updates):
            return ANY_AXIS
        found = rules()[owner.name].program_axes(op, self.of_all(op.operands))
        return ANY_AXIS if found is None else found


def around(op: ir.OpView) -> list[ir.Value]:
    """The numbers that say how often an operation is done: bounds of loops, conditions."""
    found: list[ir.Value] = []
    here = op.operation.parent.operation
    while here.name in ("scf.for", "scf.if"):
        found += list(here.operands)[: 3 if here.name == "scf.for" else 1]
        here = here.parent.operation
    return found
