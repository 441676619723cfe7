"""Whether the blocks of a cluster take what they share alike, and leave each other in peace.

They go through the same slots of a channel that they share, for how often that is done is the same
in every program, and they do equal numbers of programs. So what is proved of one block's roles
(`agreement`) holds for all of them: of those who wait, one is the furthest behind, and nobody is
behind that one. And each copies its part of the same tile, whose place is the same in neighbours.

Before the first of it, the barriers of all blocks are there (`warp.meet`); a block stays until the
others have arrived at its barriers for the last time (`warp.close`). What is not its own program,
it does not write.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from tilec.ir.dialect import declarations
from tilec.ir.walk import operations
from tilec.layout.neighbours import Cluster, Sharers
from tilec.ops.lowering import PERSISTENT, SHARED, cluster_of
from tilec.ops.program_axes import ProgramAxes, around
from tilec.warp.problem import Problem
from tilec.warp.reading import CHANNEL, IS_PROGRAM, ROLES, number_of

MEET, CLOSE = "warp.meet", "warp.close"


def strangers(function: ir.OpView) -> Iterator[Problem]:
    """All that is wrong between the blocks of a cluster, in a function with one `warp.roles`."""
    cluster = cluster_of(function)
    [block] = function.regions[0].blocks
    ops = list(block.operations)
    [roles] = [op for op in ops if op.operation.name == ROLES][:1]
    loader, math = (region.blocks[0] for region in roles.regions)
    channels = [op.results[0] for op in ops if op.operation.name == CHANNEL]
    shared = {one for one in channels if _is_shared(one)}
    if cluster is None:
        for op in (*ops, *operations(function)):
            if op.operation.name in (MEET, CLOSE, IS_PROGRAM) or SHARED in op.attributes:
                yield Problem("there is no cluster for it", op)
        return
    if PERSISTENT not in function.attributes:
        yield Problem("blocks of a cluster do programs by steps", roles)
    yield from _meeting(ops, roles)
    yield from _closing(loader, shared, roles)
    yield from _differing(roles.regions[0], shared, cluster)
    yield from _unguarded(math)


def _is_shared(channel: ir.Value) -> bool:
    return SHARED in channel.owner.opview.attributes


def _meeting(ops: list[ir.OpView], roles: ir.OpView) -> Iterator[Problem]:
    names = [op.operation.name for op in ops]
    places = [place for place, name in enumerate(names) if name == MEET]
    made = [place for place, name in enumerate(names) if name == CHANNEL]
    if len(places) != 1 or not max(made, default=-1) < places[0] < names.index(ROLES):
        yield Problem(f"expected one `{MEET}` between channels and roles", roles)


def _closing(loader: ir.Block, shared: set[ir.Value], roles: ir.OpView) -> Iterator[Problem]:
    """Each shared channel is closed once, at the end of the loader."""
    closed: set[ir.Value] = set()
    for op in loader.operations:
        if op.operation.name == CLOSE:
            if op.operands[0] in closed or op.operands[0] not in shared:
                yield Problem("it is closed already, or not shared", op)
            closed.add(op.operands[0])
            continue
        for inner in (op, *operations(op)):
            if inner.operation.name == CLOSE:
                yield Problem("it may be done several times, or not at all", inner)
            elif inner.operation.name == "warp.acquire" and inner.operands[0] in closed:
                yield Problem("the channel was closed", inner)
    for channel in shared - closed:
        yield Problem("others may arrive after the end", roles, channel.owner.opview)


def _differing(loader: ir.Region, shared: set[ir.Value], cluster: Cluster) -> Iterator[Problem]:
    """What is taken or copied otherwise in another block."""
    axes = ProgramAxes()
    for block in loader.blocks:
        for op in (inner for one in block.operations for inner in (one, *operations(one))):
            name = op.operation.name
            takes = name == "warp.acquire" and op.operands[0] in shared
            copies = name == "warp.fill" and _is_of_shared(op)
            if takes and axes.of_all(around(op)):
                yield Problem("how often it is done depends on the program", op)
            if copies and axes.of_all(list(op.operands)[2:]) & _shared_along(op, cluster):
                yield Problem("what is copied is another tile in other blocks", op)


def _is_of_shared(fill: ir.OpView) -> bool:
    return _is_shared(fill.operands[0])


def _shared_along(fill: ir.OpView, cluster: Cluster) -> frozenset[int]:
    """The axes of the grid along which blocks share what is copied."""
    bits = ir.DenseI64ArrayAttr(fill.operands[0].owner.opview.attributes[SHARED])
    return frozenset(Sharers.of_bits(cluster, bits[number_of(fill, "tile")]).axes)


def _unguarded(math: ir.Block) -> Iterator[Problem]:
    """What writes, although the program may be another block's."""
    for op in (inner for one in math.operations for inner in (one, *operations(one))):
        declared = declarations().get(op.operation.name)
        if declared is None or not (declared.writes or declared.updates):
            continue
        if not _is_guarded(op):
            yield Problem("what is another block's program is written too", op)


def _is_guarded(op: ir.OpView) -> bool:
    here = op.operation
    while here.parent is not None and here.parent.name != ROLES:
        branch = here.parent.opview
        if branch.operation.name == "scf.if" and here.block == branch.regions[0].blocks[0]:
            condition = branch.operands[0].owner
            if not isinstance(condition, ir.Block) and condition.name == IS_PROGRAM:
                return True
        here = here.parent
    return False
