"""The program once for each role, as a schedule says: who copies tiles, and who computes with them.

Before:   a function without roles, facts found; the schedule names loads and products of it
After:    scalars and views; `warp.channel`s; `warp.roles`, in which the loader has what its copies
          depend on, and the math warps have everything else. Products are begun, and waited for
          where their sums are used; slots are released once no product reads them

    for k { a = load; b = load; c = a b + c }; store c

    loader: for k { s = acquire; fill s a; fill s b; publish s }
    math:   for k { s = get; c = begin (a of s) (b of s) + c; drain 1; release last; last = s }
            c = wait c; release last; store c

Algorithm:
1. What the loader needs are the operands of copies, and the loops and branches around them. If
   those depend on tiles, there is no loader (`NotLoadableError`).
2. For the math warps, everything is copied; then each block, from the inside out:
   - loads of a channel become tiles of a slot, which is got before the first of them;
   - products become `warp.dot`; where sums are only added to, by the next product or in the next
     turn, they are not waited for;
   - a slot is released after the last wait that covers its products. Where these go on into the
     next turn, that one releases it, when it has begun its own.

Where warpgroups do programs by turns (`teams`), all of that is in a branch, of which the other way
skips the slots of another one's program.

Sound: `warp.verify` says so again.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import scf
from tilec.ir.rewrite import cloned
from tilec.ops.build import integer
from tilec.ops.channel import BY_WARP
from tilec.ops.lower_control import terminator_of
from tilec.ops.lowering import (
    CLUSTER,
    PERSISTENT,
    ROWS_TOGETHER,
    SHARED,
    SPLIT,
    TEAMS,
    give_longest,
)
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules
from tilec.roles.begin_ahead import begin_loads
from tilec.roles.cluster_roles import close_shared, guard_writes
from tilec.roles.loader_role import Loader, NotLoadableError, needed_to_load
from tilec.roles.math_role import MathWarps
from tilec.roles.of_roles import (
    is_scalar,
    made,
    mark,
    memory_of,
    memory_of_staged,
    reads_of,
)
from tilec.roles.promoted_sums import promote
from tilec.roles.share_turns import split_loop
from tilec.roles.staged_factors import StagedFactors
from tilec.roles.teams import by_turns, place_turn
from tilec.schedule.plan import Channel, NoSchedule, Reason, Schedule
from tilec.schedule.products import Staged
from tilec.transforms.simplify import simplify_function


def specialise(function: ir.OpView, schedule: Schedule) -> Schedule | NoSchedule:
    """Rewrites the function in place, and gives what it did; or why it left it as it was.

    Needs a current context and location.
    """
    [block] = function.regions[0].blocks
    try:
        needed = needed_to_load(schedule)
    except NotLoadableError as error:
        return NoSchedule((Reason("no loader", f"where copies begin depends on {error}"),))
    for product in schedule.products:
        if product.is_promoted:
            promote(product.op)
    begin_loads(schedule.ahead)
    mark(schedule)
    if schedule.split is not None:
        split_loop(block, schedule.split.loop, schedule.split.blocks)
        needed = needed_to_load(schedule)  # the loop has other bounds
        function.attributes[SPLIT] = integer(schedule.split.blocks)
    own = _of_roles(block, with_program=schedule.is_persistent)
    end = terminator_of(block)
    with ir.InsertionPoint(end), function.location:
        read = reads_of(schedule)
        of_threads = {number for number, _ in read}
        channels = [
            _create(channel, by_warp=number in of_threads)
            for number, channel in enumerate(schedule.channels)
        ]
        staged = StagedFactors(_buffers(schedule), schedule.staged_places)
        if schedule.cluster is not None:
            ir.Operation.create("warp.meet")
        programs = _programs() if schedule.is_persistent else None
        roles = _create_roles(schedule)
    outer = [region.blocks.append() for region in roles.regions]
    with function.location:
        loader, math = (_of_each(programs, role) for role in outer)
        Loader(schedule, channels, needed).emit(own, loader)
        mine = by_turns(own, math, schedule, channels, needed) if schedule.teams > 1 else math
        _copy(own, mine)
        if mine != math:
            with ir.InsertionPoint(mine):
                scf.yield_([])
        if schedule.cluster is not None:
            close_shared(schedule, channels, outer[0])
        for inner, role in zip((loader, math), outer, strict=True):
            _end(inner, role)
    for op in reversed(own):
        if not _says_grid(op):
            op.operation.erase()
    left = MathWarps(schedule, channels, read, staged).rewrite(mine)
    assert not left, "what is begun is waited for"
    if schedule.teams > 1:
        place_turn(mine)
        function.attributes[TEAMS] = integer(schedule.teams)
    if schedule.cluster is not None:
        guard_writes(math)
        sides = schedule.cluster.sides
        numbers = [number for side in sides for number in (side.blocks, side.axis)]
        function.attributes[CLUSTER] = ir.DenseI64ArrayAttr.get(numbers)
    simplify_function(function)
    function.attributes[ROWS_TOGETHER] = integer(schedule.rows_together)
    if schedule.longest is not None:
        give_longest(function, schedule.longest)
    if schedule.is_persistent:
        function.attributes[PERSISTENT] = ir.UnitAttr.get()
    return schedule


# ---- programs ------------------------------------------------------------------------------------


def _programs() -> tuple[ir.Value, ir.Value, ir.Value]:
    """The numbers of the programs that this block does: from, to, and in which steps."""
    names = ("warp.first_program", "warp.program_count", "warp.program_step")
    first, count, step = (made(name, [], "index") for name in names)
    return first, count, step


def _of_each(programs: tuple[ir.Value, ir.Value, ir.Value] | None, role: ir.Block) -> ir.Block:
    """Where a role's operations for one program go."""
    if programs is None:
        return role
    with ir.InsertionPoint(role):
        loop = scf.ForOp(*programs)
    with ir.InsertionPoint(loop.body):
        ir.Operation.create("warp.program", operands=[loop.induction_variable])
    return loop.body


def _end(inner: ir.Block, role: ir.Block) -> None:
    if inner != role:
        with ir.InsertionPoint(inner):
            scf.yield_([])
    with ir.InsertionPoint(role):
        ir.Operation.create("gpu.yield")


def _says_grid(op: ir.OpView) -> bool:
    """Whether launchers and the kernel's entry read the grid from it."""
    return type(rules()[op.operation.name]).host_grid is not OpRules.host_grid


# ---- what stays outside of roles -----------------------------------------------------------------


def _of_roles(block: ir.Block, *, with_program: bool) -> list[ir.OpView]:
    """What roles have: all but the scalars and views that depend on no other, which all have.

    `with_program`: those that depend on the program are the roles' too.
    """
    own: list[ir.OpView] = []
    made: set[ir.Value] = set(block.arguments)
    for op in block.operations:
        if rules()[op.operation.name].terminator:
            continue
        is_of_all = not (with_program and rules()[op.operation.name].of_program)
        is_alone = not len(op.regions) and is_scalar(op)
        if is_of_all and is_alone and all(v in made for v in op.operands):
            made.update(op.results)
        else:
            own.append(op)
    return own


# ---- channels, roles, and copies of operations ---------------------------------------------------


def _create(channel: Channel, *, by_warp: bool) -> ir.Value:
    """`warp.channel`, for the tiles of a channel; `by_warp`: threads read some themselves."""
    tiles = [ir.TypeAttr.get(memory_of(load)) for load in channel.loads]
    op = ir.Operation.create(
        "warp.channel",
        results=[ir.Type.parse("!warp.ring")],
        attributes={
            "depth": integer(channel.depth),
            "tiles": ir.ArrayAttr.get(tiles),
            "params": ir.ArrayAttr.get([ir.StringAttr.get(x.param) for x in channel.loads]),
        },
    )
    if channel.shared:
        shared = channel.shared
        bits = [sum(by.bits for one, by in shared if one == load) for load in channel.loads]
        op.attributes[SHARED] = ir.DenseI64ArrayAttr.get(bits)
    if by_warp:
        op.attributes[BY_WARP] = ir.UnitAttr.get()
    return op.results[0]


def _buffers(schedule: Schedule) -> dict[int, ir.Value]:
    """`warp.buffer` of each value that threads write for products, by the products' numbers."""
    made: dict[ir.Value, ir.Value] = {}
    found: dict[int, ir.Value] = {}
    for number, product in enumerate(schedule.products):
        if not isinstance(product.b, Staged):
            continue
        if product.b.value not in made:
            tiles = [ir.TypeAttr.get(memory_of_staged(product.b))]
            made[product.b.value] = ir.Operation.create(
                "warp.buffer",
                results=[ir.Type.parse("!warp.places")],
                attributes={
                    "depth": integer(schedule.staged_places),
                    "tiles": ir.ArrayAttr.get(tiles),
                },
            ).results[0]
        found[number] = made[product.b.value]
    return found


def _create_roles(schedule: Schedule) -> ir.Operation:
    return ir.Operation.create(
        "warp.roles",
        regions=2,
        attributes={
            "math_warps": integer(schedule.math_warps),
            "loader_registers": integer(schedule.loader_registers),
            "math_registers": integer(schedule.math_registers),
        },
    )


def _copy(ops: Sequence[ir.OpView], target: ir.Block) -> None:
    """Copies operations to the end of a block, where they use each other's copies."""
    renamed: dict[ir.Value, ir.Value] = {}
    for op in ops:
        copy = cloned(op, renamed, ir.InsertionPoint(target))
        renamed.update(zip(op.results, copy.results, strict=True))
