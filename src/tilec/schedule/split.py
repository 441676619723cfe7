"""Whether the blocks of a cluster may share out the turns of a loop, and add up their sums.

With few programs of many turns, most multiprocessors have nothing to do. Of a loop that only adds
to sums, each of several blocks can do some turns: what the others add is added to its own sums
afterwards. Nothing of the kernel matters, but for these conditions:

- the loop is where every launch comes once, and has all products that are scheduled;
- it carries nothing but sums: tiles of 32-bit elements that products or additions go on with, one
  after the other, and that nothing else in a turn sees. So what is added in a turn depends on the
  turn alone, and the sums on where they start by nothing but an addition;
- it writes nothing, and nothing is written before it: other blocks do that too.

Sums of floats are those of another association.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.hints import Hints
from tilec.ir.dialect import declarations
from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.ops.lower_control import terminator_of
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules
from tilec.schedule.products import Product
from tilec.schedule.reason import Reason

_ADDITIONS = ("arith.addf", "arith.addi")
_WORDS = ("f32", "i32")


@dataclass(frozen=True)
class Split:
    """So many blocks do the turns of a loop of the function."""

    blocks: int
    loop: ir.OpView


def split_for(
    function: ir.OpView, products: Sequence[Product], hints: Hints
) -> tuple[Split | None, tuple[Reason, ...]]:
    """What is asked for, if it can be, and why."""
    if hints.split == 1 or not products:
        return None, ()
    found = _loop_of(function, products)
    if isinstance(found, str):
        return None, (Reason("each block does all turns", found),)
    why = "asked for by `split`: each does some turns, and one of them adds up the sums"
    return Split(hints.split, found), (Reason(f"{hints.split} blocks a program", why),)


def _loop_of(function: ir.OpView, products: Sequence[Product]) -> ir.OpView | str:
    [entry] = function.regions[0].blocks
    bodies = list(dict.fromkeys(one.op.operation.block for one in products))
    loop = bodies[0].owner.opview
    if len(bodies) > 1 or loop.operation.name != "scf.for" or loop.operation.block != entry:
        return "not all products are in one loop, which every program comes to"
    if any(str(bound.type) != "index" for bound in list(loop.operands)[:3]):
        return "its turns are counted by data"
    [body] = loop.regions[0].blocks
    if not all(is_sum(body, place) for place in range(len(loop.results))):
        return "its loop carries something else than sums that are only added to"
    ops = list(entry.operations)
    place = ops.index(loop)
    for op in [inner for one in ops[: place + 1] for inner in (one, *operations(one))]:
        if _writes(op):
            return "something is written before the sums are there"
    if any(_says_grid(op) for op in ops[place:]):
        return "the grid is known after the loop only"
    return loop


def is_sum(body: ir.Block, place: int) -> bool:
    """Whether a turn only adds to the tile that is carried there."""
    carried, given = body.arguments[1 + place], terminator_of(body).operands[place]
    if not is_tile(carried):
        return False
    if str(ir.RankedTensorType(carried.type).element_type) not in _WORDS:
        return False
    while given != carried:
        if len(list(given.uses)) != 1 or isinstance(given.owner, ir.Block):
            return False
        added = list(_added_to(given.owner.opview))
        depending = [value for value in added if _depends(value, carried, body)]
        if given.owner.operation.block != body or len(depending) != 1:
            return False
        [given] = depending
    return len(list(carried.uses)) == 1


def is_zero(start: ir.Value) -> bool:
    """Whether it is a tile of zeros."""
    if isinstance(start.owner, ir.Block) or start.owner.name != "arith.constant":
        return False
    value = start.owner.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return False
    splat = value.get_splat_value()
    return not (ir.FloatAttr(splat).value if isinstance(splat, ir.FloatAttr) else splat.value)


def _added_to(op: ir.OpView) -> Iterator[ir.Value]:
    """The operands to which an operation adds something, as it is without them."""
    if op.operation.name in _ADDITIONS:
        yield from op.operands
    elif op.operation.name == "warp.dot" or rules()[op.operation.name].multiplied(op) is not None:
        yield op.operands[2]


def _depends(value: ir.Value, carried: ir.Value, body: ir.Block) -> bool:
    """Whether a value is made of what is carried."""
    seen: set[ir.Value] = set()
    left = [value]
    while left:
        one = left.pop()
        if one == carried:
            return True
        if one in seen or isinstance(one.owner, ir.Block):
            continue
        seen.add(one)
        if one.owner.operation.block != body:
            continue
        owner = one.owner.opview
        for op in (owner, *operations(owner)) if len(owner.regions) else (owner,):
            left += op.operands
    return False


def _writes(op: ir.OpView) -> bool:
    declared = declarations().get(op.operation.name)
    return declared is not None and bool(declared.writes or declared.updates)


def _says_grid(op: ir.OpView) -> bool:
    return type(rules()[op.operation.name]).host_grid is not OpRules.host_grid
