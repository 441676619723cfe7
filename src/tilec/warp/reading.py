"""How the operations of roles are read: what is in the dialect file, as Python values."""

from __future__ import annotations

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ir.effects import computes_numbers
from tilec.ops.build import number_of as number_of
from tilec.ops.channel import BY_WARP
from tilec.ops.staged_factor import written_type as written_type

ROLES, CHANNEL, PROGRAM = "warp.roles", "warp.channel", "warp.program"
BUFFER = "warp.buffer"
IS_PROGRAM = "warp.is_program"
SHARE, LEADS, START = "warp.share", "warp.leads", "warp.start"
OFFER, JOIN, ADD, TOTAL = "warp.offer", "warp.join", "warp.add", "warp.total"
OF_SPLIT = (SHARE, LEADS, START, OFFER, JOIN, ADD, TOTAL)
MINE, SKIP, AWAIT_TURN, PASS_TURN = "warp.mine", "warp.skip", "warp.await_turn", "warp.pass_turn"


def depth_of(channel: ir.Value) -> int:
    """How many slots a channel has."""
    return number_of(channel.owner.opview, "depth")


def is_read_by_warp(channel: ir.Value) -> bool:
    """Whether each warp tells for itself that it has read a slot."""
    return BY_WARP in channel.owner.opview.attributes


def tiles_of(channel: ir.Value) -> list[ir.Type]:
    """The types of the tiles in a slot of a channel."""
    listed = ir.ArrayAttr(channel.owner.opview.attributes["tiles"])
    return [ir.TypeAttr(kind).value for kind in listed]


Pairs = dict[ir.Value, ir.Value]


def is_same(one: ir.Value, other: ir.Value, pairs: Pairs | None = None) -> bool:
    """Whether two numbers are made in one way, of the same values, or of those that are `pairs`."""
    return _is_same(one, other, pairs or {}, {})


def _is_same(
    one: ir.Value, other: ir.Value, pairs: Pairs, known: dict[tuple[ir.Value, ir.Value], bool]
) -> bool:
    """`known` is what was asked already: of what numbers are made of, much may be the same."""
    if one == other or (one in pairs and pairs[one] == other):
        return True
    if isinstance(one.owner, ir.Block) or isinstance(other.owner, ir.Block):
        return False
    if (one, other) not in known:
        known[one, other] = _are_alike(one, other) and all(
            _is_same(mine, its, pairs, known)
            for mine, its in zip(one.owner.operands, other.owner.operands, strict=True)
        )
    return known[one, other]


def _are_alike(one: ir.Value, other: ir.Value) -> bool:
    """Whether two numbers are made by one operation, whatever of."""
    left, right = one.owner.opview, other.owner.opview
    if not computes_numbers(left) or left.operation.name != right.operation.name:
        return False
    if ir.OpResult(one).result_number != ir.OpResult(other).result_number:
        return False
    return _attributes(left) == _attributes(right) and len(left.operands) == len(right.operands)


def _attributes(op: ir.OpView) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


def is_of_teams(op: ir.OpView) -> bool:
    """Whether it is the branch of which one way is a team's own program."""
    if op.operation.name != "scf.if" or isinstance(op.operands[0].owner, ir.Block):
        return False
    return bool(op.operands[0].owner.name == MINE)


def is_last_of(loop: ir.OpView, asked: list[ir.Value]) -> bool:
    """Whether these are the number, the end and the step of a `scf.for`."""
    if loop.operation.name != "scf.for" or len(asked) != 3:
        return False
    [body] = loop.regions[0].blocks
    _, end, step, *_ = loop.operands
    return asked[0] == body.arguments[0] and is_same(asked[1], end) and is_same(asked[2], step)


def turns_if(loop: ir.OpView, condition: ir.Value) -> bool:
    """Whether a `scf.for` turns wherever this holds."""
    if isinstance(condition.owner, ir.Block) or condition.owner.name != "arith.cmpi":
        return False
    left, right = condition.owner.operands
    lower, upper = list(loop.operands)[:2]
    match number_of(condition.owner.opview, "predicate"):
        case arith.CmpIPredicate.slt:
            return is_same(left, lower) and is_same(right, upper)
        case arith.CmpIPredicate.sgt:
            return is_same(left, upper) and is_same(right, lower)
        case _:
            return False


def certainly_turns(loop: ir.OpView) -> bool:
    """Whether a `scf.for` turns at least once where it stands: by its bounds, or what is asked
    around it."""
    lower, upper = (_constant(value) for value in list(loop.operands)[:2])
    if lower is not None and upper is not None:
        return lower < upper
    here = loop.operation
    while here.parent is not None and here.parent.name != ROLES:
        around = here.parent.opview
        if around.operation.name == "scf.if":
            [then] = around.regions[0].blocks
            if here.block == then and turns_if(loop, around.operands[0]):
                return True
        here = around.operation
    return False


def _constant(value: ir.Value) -> int | None:
    if isinstance(value.owner, ir.Block) or value.owner.name != "arith.constant":
        return None
    return number_of(value.owner.opview, "value")
