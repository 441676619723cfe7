"""Whether blocks that do programs together do each turn once, and one of them has all of the sums.

Both roles have one loop that turns as `warp.share` says, in which all slots are taken that a loop
takes; the shares of all blocks are all turns, each once (`ops/split.py`). What that loop carries it
only adds to, and it starts from zero in all blocks but the one that leads. So the sums of all
blocks, added, are those of all turns.

All threads come to what orders that: sums are offered, all blocks join, maybe each adds up a part
and they join again, the leading one has the total, and all join again, one after the other in the
role itself. The sums of one block are seen by nothing else, and what follows is done where the
block leads.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.effects import computes_numbers
from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.ops.lowering import PERSISTENT, SPLIT, cluster_of, split_of, teams_of
from tilec.schedule.split import is_sum, is_zero
from tilec.warp.problem import Problem
from tilec.warp.reading import ADD, JOIN, LEADS, OF_SPLIT, OFFER, SHARE, START, TOTAL

_EXCHANGE = (OFFER, JOIN, TOTAL, JOIN)
_BY_PARTS = (OFFER, JOIN, ADD, JOIN, TOTAL, JOIN)
# Threads may hand tiles to each other anywhere: what is offered stays where it is.
_LAYOUT = "tile.layout"
_TAKES = ("warp.acquire", "warp.get", "warp.dot")


def not_together(function: ir.OpView, roles: ir.OpView) -> Iterator[Problem]:
    """All that keeps blocks from doing a program together, in a function with these roles."""
    everything = list(operations(function))
    found = {name: [op for op in everything if op.operation.name == name] for name in OF_SPLIT}
    if SPLIT not in function.attributes:
        alone = (op for ops in found.values() for op in ops)
        yield from (Problem("no other block does this program", op) for op in alone)
        return
    blocks = split_of(function)
    if blocks not in (2, 4, 8) or PERSISTENT in function.attributes or teams_of(function) > 1:
        yield Problem("so many blocks do no program together", roles)
    if cluster_of(function) is not None:
        yield Problem("the blocks of a cluster do one program, or several", roles)
    for name, count in ((SHARE, 1), (OFFER, 1), (TOTAL, 1)):
        if len(found[name]) != count:
            yield Problem(f"expected {count} `{name}`, got {len(found[name])}", roles)
            return
    [share] = found[SHARE]
    if share.operation.block != roles.operation.block:
        yield Problem("the roles have different shares", share)
    loader, math = (region.blocks[0] for region in roles.regions)
    yield from (
        Problem("only those who compute do this", op)
        for op in _inside(loader)
        if op.operation.name in OF_SPLIT
    )
    for role in (loader, math):
        yield from _not_shared(role, share)
    yield from _not_exchanged(math, found)
    yield from _not_led(math)


def _inside(block: ir.Block) -> Iterator[ir.OpView]:
    for op in block.operations:
        yield op
        yield from operations(op)


def _not_shared(role: ir.Block, share: ir.OpView) -> Iterator[Problem]:
    """Turns of a role that are not those of the block's share."""
    asked = [*share.results, share.operands[2]]
    loops = [op for op in _inside(role) if op.operation.name == "scf.for"]
    mine = [op for op in loops if list(op.operands)[:3] == asked]
    if len(mine) != 1:
        yield Problem(f"expected one loop of the block's turns, got {len(mine)}", role.owner.opview)
        return
    own = set(_inside(mine[0].regions[0].blocks[0]))
    for loop in loops:
        for op in operations(loop):
            if op.operation.name in _TAKES and op not in own:
                yield Problem("all blocks would do these turns", op, loop)
    for value in share.results:
        for use in value.uses:
            user = use.owner.opview
            if user.operation.name not in ("scf.for", "arith.cmpi"):
                yield Problem("where a block's turns are, only its loops may know", user)


def _not_exchanged(math: ir.Block, found: dict[str, list[ir.OpView]]) -> Iterator[Problem]:
    """Sums that are offered, added up or ordered otherwise than they should be."""
    [offer], [total] = found[OFFER], found[TOTAL]
    order = [op for op in math.operations if op.operation.name in _BY_PARTS]
    expected = _BY_PARTS if "of_parts" in total.attributes else _EXCHANGE
    everywhere = sum(len(found[name]) for name in (OFFER, JOIN, ADD, TOTAL))
    if [op.operation.name for op in order] != list(expected) or everywhere != len(expected):
        yield Problem("expected all threads to offer, join, add up and join", offer)
        return
    for op in order[1:]:
        if op.operands[0] != offer.results[0]:
            yield Problem("it is of what others offered", op, offer)
    if list(total.operands)[1:] != list(offer.operands):
        yield Problem("what is added up is not what was offered", total, offer)
    loops = [op for op in _inside(math) if op.operation.name == "scf.for" and _takes(op)]
    if len(loops) != 1:
        yield Problem("expected one loop that adds to sums", offer)
        return
    [loop] = loops
    [body] = loop.regions[0].blocks
    sums: list[ir.Value] = []
    for place, result in enumerate(loop.results):
        if not is_tile(result):
            continue  # a slot
        if not is_sum(body, place):
            yield Problem("a turn does more than to add", loop)
        if not _starts_once(loop.operands[3 + place]):
            yield Problem("each block would start from it", loop)
        sums.append(result)
    partial = _followed(sums)
    if not partial.issuperset(offer.operands) or len(offer.operands) != len(sums):
        yield Problem("what is offered is not what the turns added up", offer, loop)
    for value in partial:
        for use in value.uses:
            user = use.owner.opview
            if user.operation.name not in ("warp.wait", "scf.yield", OFFER, TOTAL):
                yield Problem("the sums of one block are used as if they were all", user)


def _takes(loop: ir.OpView) -> bool:
    return any(op.operation.name == "warp.dot" for op in operations(loop))


def _starts_once(start: ir.Value) -> bool:
    if isinstance(start.owner, ir.Block):
        return False
    if start.owner.name == START:
        return True
    return is_zero(start)


def _followed(sums: list[ir.Value]) -> set[ir.Value]:
    """These, and what waits and branches around the loop make of them."""
    seen: set[ir.Value] = set()
    left = list(sums)
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.owner.opview
            if user.operation.name == "warp.wait":
                left += user.results
            elif user.operation.name == "scf.yield":
                around = user.operation.parent.opview
                if around.operation.name == "scf.if":
                    left.append(around.results[use.operand_number])
    return seen


def _not_led(math: ir.Block) -> Iterator[Problem]:
    """What blocks do that do not lead, beside their turns."""
    is_after = False
    for op in math.operations:
        is_after |= op.operation.name == OFFER
        led = _is_led(op)
        inner = [op] if led else [op, *operations(op)]
        for one in inner:
            declared = declarations().get(one.operation.name)
            if declared is not None and (declared.writes or declared.updates):
                yield Problem("what follows the sums is done by each block", one)
        is_own = op.operation.name in (*_BY_PARTS, LEADS, _LAYOUT) or computes_numbers(op)
        if is_after and not led and not is_own:
            yield Problem("what follows the sums is done by each block", op)


def _is_led(op: ir.OpView) -> bool:
    if op.operation.name != "scf.if" or len(op.results) or len(op.regions[1].blocks):
        return False
    asked = op.operands[0].owner
    return not isinstance(asked, ir.Block) and asked.name == LEADS
