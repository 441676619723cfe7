"""Math warps that do programs by turns: the branch around a program, and the turn to get slots.

    for p { if mine { turn = await; for k { s = get … }; pass turn; … } else { for k { skip } } }

The turn is passed as soon as the last slot of the program was got, with its last products under
way: in the last turn of a loop, before that waits for the products of the turn before. Behind the
loop, where they are still under way, the assembler would let products run one by one (ptxas,
C7514).
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import scf
from tilec.ir.walk import operations
from tilec.ops.lower_control import terminator_of
from tilec.roles.loader_role import Loader
from tilec.roles.of_roles import made
from tilec.schedule.plan import Schedule

_GET, _DRAIN = "warp.get", "warp.drain"


class _Skipper(Loader):
    """The control flow of the loader, which goes past slots instead of filling them."""

    def _copy_tile(self, number: int, fill: int, place: int) -> None:
        if place == 0:
            ir.Operation.create("warp.skip", operands=[self.channels[number]])


def by_turns(
    ops: Sequence[ir.OpView],
    math: ir.Block,
    schedule: Schedule,
    channels: Sequence[ir.Value],
    needed: set[ir.Value],
) -> ir.Block:
    """Where the operations for a program go that is this team's. The other way is done."""
    with ir.InsertionPoint(math):
        branch = scf.IfOp(made("warp.mine", [], "i1"), has_else=True)
    _Skipper(schedule, channels, needed).emit(ops, branch.else_block)
    with ir.InsertionPoint(branch.else_block):
        scf.yield_([])
    mine: ir.Block = branch.then_block
    return mine


def place_turn(block: ir.Block) -> None:
    """The turn is waited for before the first slot is got, and passed after the last one was."""
    ops = [op for op in block.operations if _gets(op)]
    with ops[0].location, ir.InsertionPoint(ops[0]):
        turn = made("warp.await_turn", [], "!warp.turn")
    _pass_after(ops[-1], turn)


def _pass_after(op: ir.OpView, turn: ir.Value) -> None:
    """Pass the turn behind the last slot that is got in an operation, on each way through it."""
    if _ends_program(op):
        [body] = op.regions[0].blocks
        _, end, step, *_ = op.operands
        with op.location, ir.InsertionPoint(_behind_products(body)):
            loop = [body.arguments[0], end, step]
            ir.Operation.create("warp.pass_turn", operands=[turn, *loop])
        return
    if op.operation.name != "scf.if":
        with op.location, ir.InsertionPoint.after(op.operation):
            ir.Operation.create("warp.pass_turn", operands=[turn])
        return
    for region in op.regions:
        block = region.blocks[0] if len(region.blocks) else region.blocks.append()
        gets = [inner for inner in block.operations if _gets(inner)]
        if gets:
            _pass_after(gets[-1], turn)
            continue
        first = ir.InsertionPoint.at_block_begin(block)
        with op.location, first:
            ir.Operation.create("warp.pass_turn", operands=[turn])
        if len(block.operations) == 1:
            with op.location, ir.InsertionPoint(block):
                scf.yield_([])


def _behind_products(body: ir.Block) -> ir.OpView:
    """What the turn is passed before: the wait for older products, or the end of the loop.

    Those of this turn are under way then. So the other team has the time of two turns to begin.
    """
    ops = list(body.operations)
    last = max(i for i, op in enumerate(ops) if _gets(op))
    waits = (op for op in ops[last + 1 :] if op.operation.name == _DRAIN)
    return next(waits, terminator_of(body))


def _ends_program(op: ir.OpView) -> bool:
    """Whether it is a loop that gets slots, in a branch that asks whether it turns."""
    around = op.operation.parent.opview
    if op.operation.name != "scf.for" or around.operation.name != "scf.if":
        return False
    asked = around.operands[0].owner
    if isinstance(asked, ir.Block) or list(asked.operands) != list(op.operands)[:2]:
        return False
    [body] = op.regions[0].blocks
    return any(inner.operation.name == _GET for inner in body.operations)


def _gets(op: ir.OpView) -> bool:
    return any(inner.operation.name == _GET for inner in (op, *operations(op)))
