"""What the loader does: copies, and the scalars and control flow that they depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.ir.dialects import scf
from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.ops.build import integer
from tilec.ops.lowering import SLOT
from tilec.ops.registry import rules
from tilec.roles.of_roles import is_scalar, made, mark_of
from tilec.schedule.plan import Schedule


class NotLoadableError(Exception):
    """What the loader would do depends on tiles."""


def needed_to_load(schedule: Schedule) -> set[ir.Value]:
    """All that the copies depend on.

    Raises:   NotLoadableError if some of it is made of tiles
    """
    left = [
        value
        for channel in schedule.channels
        for loads in channel.fills
        for copied in loads
        for value in (copied.tensor, *copied.indices, *_around(copied.load))
    ]
    seen: set[ir.Value] = set()
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            left += _entering(value)
            continue
        op = value.owner.opview
        if rules()[op.operation.name].control:
            raise NotLoadableError("a number that a loop or branch gives")
        if not is_scalar(op):
            raise NotLoadableError(f"a number that `{op.operation.name}` gives")
        left += op.operands
    return seen


def _around(op: ir.OpView) -> Iterator[ir.Value]:
    """What the control flow around an operation depends on."""
    around = op.operation.parent.opview
    while around.operation.name != "func.func":
        if around.operation.name not in ("scf.for", "scf.if"):
            raise NotLoadableError("how often a `while` turns")
        yield from (value for value in list(around.operands)[:3] if not is_tile(value))
        around = around.operation.parent.opview


def _entering(argument: ir.Value) -> list[ir.Value]:
    """What a block argument may be; a loop's own number comes from its bounds."""
    around = argument.owner.owner.opview
    if around.operation.name == "func.func" or argument.arg_number == 0:
        return []
    raise NotLoadableError("a number that a loop carries")


@dataclass
class Loader:
    """What the loader does: copies, and the scalars and control flow that they depend on."""

    schedule: Schedule
    channels: Sequence[ir.Value]
    needed: set[ir.Value]
    renamed: dict[ir.Value, ir.Value] = field(default_factory=dict)
    slots: dict[int, ir.Value] = field(default_factory=dict)

    def emit(self, ops: Sequence[ir.OpView], target: ir.Block) -> None:
        """Emit what is needed of these operations, at the end of a block."""
        for op in ops:
            with op.location, ir.InsertionPoint(target):
                self._emit(op)

    def _emit(self, op: ir.OpView) -> None:
        mark = mark_of(op)
        if mark is not None:
            self._copy_tile(*mark)
        elif any(mark_of(inner) for inner in operations(op)):
            self._emit_control(op)
        elif not self.needed.isdisjoint(op.results):
            self._emit_scalar(op)

    def _emit_scalar(self, op: ir.OpView) -> None:
        copy = op.operation.clone().opview
        for number, value in enumerate(copy.operands):
            copy.operands[number] = self.renamed.get(value, value)
        self.renamed.update(zip(op.results, copy.results, strict=True))

    def _emit_control(self, op: ir.OpView) -> None:
        operands = [self.renamed.get(value, value) for value in list(op.operands)[:3]]
        if op.operation.name == "scf.for":
            loop = scf.ForOp(*operands)
            [body] = op.regions[0].blocks
            self.renamed[body.arguments[0]] = loop.induction_variable
            self.emit(list(body.operations), loop.body)
            with ir.InsertionPoint(loop.body):
                scf.yield_([])
            return
        ways = [region.blocks[0] for region in op.regions if len(region.blocks)]
        branch = scf.IfOp(operands[0], has_else=len(ways) > 1)
        blocks = [branch.then_block, branch.else_block] if len(ways) > 1 else [branch.then_block]
        for way, block in zip(ways, blocks, strict=True):
            self.emit(list(way.operations), block)
            with ir.InsertionPoint(block):
                scf.yield_([])

    def _copy_tile(self, number: int, fill: int, place: int) -> None:
        channel, loads = self.channels[number], self.schedule.channels[number].fills[fill]
        if place == 0:
            self.slots[number] = made("warp.acquire", [channel], SLOT)
        slot, copied = self.slots[number], loads[place]
        indices = [self.renamed.get(index, index) for index in copied.indices]
        ir.Operation.create(
            "warp.fill",
            operands=[channel, slot, self.renamed.get(copied.tensor, copied.tensor), *indices],
            attributes={"tile": integer(place), "unit": ir.StringAttr.get(copied.unit)},
        )
        if place == len(loads) - 1:
            ir.Operation.create("warp.publish", operands=[channel, slot])
