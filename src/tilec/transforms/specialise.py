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
   those depend on tiles, there is no loader (`_NotLoadableError`).
2. For the math warps, everything is copied; then each block, from the inside out:
   - loads of a channel become tiles of a slot, which is got before the first of them;
   - products become `warp.dot`; where sums are only added to, by the next product or in the next
     turn, they are not waited for;
   - a slot is released after the last wait that covers its products. Where these go on into the
     next turn, that one releases it, when it has begun its own.

Sound: `warp.verify` says so again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.passmanager import PassManager

from tilec.ir.dialect import declarations
from tilec.ir.dialects import arith, scf
from tilec.ir.walk import operations
from tilec.ops.build import integer, integer_list
from tilec.ops.lower_control import terminator_of
from tilec.ops.lowering import PERSISTENT, ROWS_TOGETHER, SLOT
from tilec.ops.registry import rules
from tilec.ops.rules import OpRules, is_tile
from tilec.schedule.plan import Channel, NoSchedule, Reason, Schedule
from tilec.schedule.products import Copied, Factor
from tilec.transforms.remove_dead import remove_dead

_SHARED_SPACE = 3


class _NotLoadableError(Exception):
    """What the loader would do depends on tiles."""


# What a copy or a product of the schedule is called in the copies of its block.
_LOAD, _PRODUCT = "warp.load", "warp.product"


def specialise(function: ir.OpView, schedule: Schedule) -> Schedule | NoSchedule:
    """Rewrites the function in place, and gives what it did; or why it left it as it was.

    Needs a current context and location.
    """
    [block] = function.regions[0].blocks
    try:
        needed = _needed_to_load(schedule)
    except _NotLoadableError as error:
        return NoSchedule((Reason("no loader", f"where copies begin depends on {error}"),))
    _mark(schedule)
    own = _of_roles(block, with_program=schedule.is_persistent)
    end = terminator_of(block)
    with ir.InsertionPoint(end), function.location:
        channels = [_create(channel) for channel in schedule.channels]
        programs = _programs() if schedule.is_persistent else None
        roles = _create_roles(schedule)
    outer = [region.blocks.append() for region in roles.regions]
    with function.location:
        loader, math = (_of_each(programs, role) for role in outer)
        _Loader(schedule, channels, needed).emit(own, loader)
        _copy(own, math)
        for inner, role in zip((loader, math), outer, strict=True):
            _end(inner, role)
    for op in reversed(own):
        if not _says_grid(op):
            op.operation.erase()
    left = _Math(schedule, channels).rewrite(math)
    assert not left, "what is begun is waited for"
    _drop_unused(function)
    function.attributes[ROWS_TOGETHER] = integer(schedule.rows_together)
    if schedule.is_persistent:
        function.attributes[PERSISTENT] = ir.UnitAttr.get()
    return schedule


# ---- programs ------------------------------------------------------------------------------------


def _programs() -> tuple[ir.Value, ir.Value, ir.Value]:
    """The numbers of the programs that this block does: from, to, and in which steps."""
    names = ("warp.first_program", "warp.program_count", "warp.program_step")
    first, count, step = (_made(name, [], "index") for name in names)
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
        is_alone = not len(op.regions) and _is_scalar(op)
        if is_of_all and is_alone and all(v in made for v in op.operands):
            made.update(op.results)
        else:
            own.append(op)
    return own


def _is_scalar(op: ir.OpView) -> bool:
    """Whether it only computes numbers and views, or says what the launcher is to know."""
    if any(is_tile(value) for value in (*op.operands, *op.results)):
        return False
    declared = declarations().get(op.operation.name)
    return declared is None or not (declared.reads or declared.writes or declared.updates)


def _needed_to_load(schedule: Schedule) -> set[ir.Value]:
    """All that the copies depend on.

    Raises:   _NotLoadableError if some of it is made of tiles
    """
    left = [
        value
        for channel in schedule.channels
        for copied in channel.loads
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
            raise _NotLoadableError("a number that a loop or branch gives")
        if not _is_scalar(op):
            raise _NotLoadableError(f"a number that `{op.operation.name}` gives")
        left += op.operands
    return seen


def _around(op: ir.OpView) -> Iterator[ir.Value]:
    """What the control flow around an operation depends on."""
    around = op.operation.parent.opview
    while around.operation.name != "func.func":
        if around.operation.name not in ("scf.for", "scf.if"):
            raise _NotLoadableError("how often a `while` turns")
        yield from (value for value in list(around.operands)[:3] if not is_tile(value))
        around = around.operation.parent.opview


def _entering(argument: ir.Value) -> list[ir.Value]:
    """What a block argument may be; a loop's own number comes from its bounds."""
    around = argument.owner.owner.opview
    if around.operation.name == "func.func" or argument.arg_number == 0:
        return []
    raise _NotLoadableError("a number that a loop carries")


# ---- marks ---------------------------------------------------------------------------------------


def _mark(schedule: Schedule) -> None:
    for number, channel in enumerate(schedule.channels):
        for place, copied in enumerate(channel.loads):
            copied.load.attributes[_LOAD] = integer_list((number, place))
    for number, product in enumerate(schedule.products):
        product.op.attributes[_PRODUCT] = integer(number)


def _mark_of(op: ir.OpView) -> tuple[int, int] | None:
    if _LOAD not in op.attributes:
        return None
    channel, place = (ir.IntegerAttr(n).value for n in ir.ArrayAttr(op.attributes[_LOAD]))
    return channel, place


def _create(channel: Channel) -> ir.Value:
    """`warp.channel`, for the tiles of a channel."""
    tiles = [ir.TypeAttr.get(_memory_of(load)) for load in channel.loads]
    op = ir.Operation.create(
        "warp.channel",
        results=[ir.Type.parse("!warp.ring")],
        attributes={
            "depth": integer(channel.depth),
            "tiles": ir.ArrayAttr.get(tiles),
            "params": ir.ArrayAttr.get([ir.StringAttr.get(x.param) for x in channel.loads]),
        },
    )
    return op.results[0]


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


# ---- copies of operations ------------------------------------------------------------------------


def _copy(ops: Sequence[ir.OpView], target: ir.Block) -> None:
    """Copies operations to the end of a block, where they use each other's copies."""
    renamed: dict[ir.Value, ir.Value] = {}
    with ir.InsertionPoint(target):
        for op in ops:
            copy = op.operation.clone(ip=ir.InsertionPoint(target)).opview
            for inner in (copy, *operations(copy)):
                for number, value in enumerate(inner.operands):
                    if value in renamed:
                        inner.operands[number] = renamed[value]
            renamed.update(zip(op.results, copy.results, strict=True))


@dataclass
class _Loader:
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
        mark = _mark_of(op)
        if mark is not None:
            self._copy_tile(*mark)
        elif any(_mark_of(inner) for inner in operations(op)):
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

    def _copy_tile(self, number: int, place: int) -> None:
        channel, loads = self.channels[number], self.schedule.channels[number].loads
        if place == 0:
            self.slots[number] = _made("warp.acquire", [channel], SLOT)
        slot, copied = self.slots[number], loads[place]
        indices = [self.renamed.get(index, index) for index in copied.indices]
        ir.Operation.create(
            "warp.fill",
            operands=[channel, slot, self.renamed.get(copied.tensor, copied.tensor), *indices],
            attributes={"tile": integer(place), "unit": ir.StringAttr.get(copied.unit)},
        )
        if place == len(loads) - 1:
            ir.Operation.create("warp.publish", operands=[channel, slot])


def _made(name: str, operands: Sequence[ir.Value], kind: str) -> ir.Value:
    op = ir.Operation.create(name, results=[ir.Type.parse(kind)], operands=list(operands))
    return op.results[0]


# ---- the math warps ------------------------------------------------------------------------------


class _Math:
    """What the math warps do, made from a copy of everything."""

    def __init__(self, schedule: Schedule, channels: Sequence[ir.Value]) -> None:
        self.schedule = schedule
        self.channels = channels
        self.tiles: dict[tuple[int, int], ir.Value] = {}  # by channel and place
        self.slots: dict[int, ir.Value] = {}
        self.begun: set[ir.Value] = set()  # sums that are under way

    def rewrite(self, block: ir.Block) -> list[int]:
        """Rewrites a block and what is in it; the channels whose slots products go on reading."""
        got: list[int] = []
        for op in list(block.operations):
            mark = _mark_of(op)
            if mark is not None:
                self._take_tile(op, *mark)
                got += [mark[0]] if mark[1] == 0 else []
            elif _PRODUCT in op.attributes:
                self._begin(op)
            elif op.operation.name == "scf.for":
                self._rewrite_loop(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        left = self.rewrite(inner)
                        assert not left, "only the next turn of a loop goes on"
        self._wait_in(block)
        return [number for number in got if not self._is_released(block, number)]

    # ---- loads and products ------------------------------------------------------------------

    def _take_tile(self, op: ir.OpView, number: int, place: int) -> None:
        """A load becomes a tile of the channel's slot, which the first of them gets."""
        channel, load = self.channels[number], self.schedule.channels[number].loads[place]
        with op.location, ir.InsertionPoint(op):
            if place == 0:
                self.slots[number] = _made("warp.get", [channel], SLOT)
            tile = ir.Operation.create(
                "warp.tile",
                results=[_memory_of(load)],
                operands=[channel, self.slots[number]],
                attributes={"tile": integer(place)},
            )
        self.tiles[number, place] = tile.results[0]

    def _begin(self, op: ir.OpView) -> None:
        product = self.schedule.products[ir.IntegerAttr(op.attributes[_PRODUCT]).value]
        factors = [self._tile_of(factor) for factor in (product.a, product.b)]
        chosen = product.instruction
        names = [ir.StringAttr.get(name) for name in (chosen.a, chosen.b, chosen.total)]
        with op.location, ir.InsertionPoint(op):
            begun = ir.Operation.create(
                "warp.dot",
                results=[op.results[0].type],
                operands=[*factors, op.operands[2]],
                attributes={
                    "a_k": integer(product.a.k_axis),
                    "b_k": integer(product.b.k_axis),
                    "elements": ir.ArrayAttr.get(names),
                },
            )
        op.results[0].replace_all_uses_with(begun.results[0])
        op.operation.erase()
        self.begun.add(begun.results[0])

    def _tile_of(self, factor: Factor) -> ir.Value:
        for number, channel in enumerate(self.schedule.channels):
            if factor.copied in channel.loads:
                return self.tiles[number, channel.loads.index(factor.copied)]
        raise AssertionError("a factor is copied by some channel")

    # ---- waits -------------------------------------------------------------------------------

    def _wait_in(self, block: ir.Block) -> None:
        """Waits for the sums that begin in a block before anything but a product uses them."""
        for op in list(block.operations):
            for result in op.results:
                if result in self.begun and not self._goes_on(result, block):
                    self._wait_before_use(result, block)

    def _goes_on(self, begun: ir.Value, block: ir.Block) -> bool:
        """Whether only products use sums, in this turn of a loop or the next."""
        # Two that add to the same sums would need them twice, and copies would be of what changes.
        if len(list(begun.uses)) > 1:
            return False
        for use in begun.uses:
            user = use.owner.opview
            if _is_added_to(use, block):
                continue
            loop = block.owner.opview
            hands_on = user.operation.block == block and rules()[user.operation.name].terminator
            if not hands_on or loop.operation.name != "scf.for":
                return False
            uses = list(block.arguments[1 + use.operand_number].uses)
            # Sums that the next turn forgets would be written while it has others there.
            if len(uses) != 1 or not all(_is_added_to(use, block) for use in uses):
                return False
        return True

    def _wait_before_use(self, begun: ir.Value, block: ir.Block) -> None:
        users = [use.owner for use in begun.uses]
        first = next(op for op in block.operations if any(_is_in(user, op) for user in users))
        with first.location, ir.InsertionPoint(first):
            self._wait(begun)

    def _wait(self, begun: ir.Value) -> None:
        done = ir.Operation.create("warp.wait", results=[begun.type], operands=[begun])
        begun.replace_all_uses_except(done.results[0], done)
        self.begun.discard(begun)

    # ---- slots -------------------------------------------------------------------------------

    def _is_released(self, block: ir.Block, number: int) -> bool:
        """Releases the slot that a block got, once all products that read it are over.

        Those that began in control flow are, where that ends. False if some go on into the next
        turn.
        """
        slot = self.slots[number]
        readers = {
            reader.owner
            for use in slot.uses
            if use.owner.name == "warp.tile"
            for reader in use.owner.results[0].uses
        }
        ops = list(block.operations)
        last = max(i for i, op in enumerate(ops) if any(_is_in(one, op) for one in readers))
        # Loops and branches leave no product under way.
        is_over = ops[last].operation.name != "warp.dot"
        waits = (op for op in ops[last + 1 :] if op.operation.name == "warp.wait")
        after = ops[last] if is_over else next(waits, None)
        if after is None:
            return False
        with after.location, ir.InsertionPoint.after(after.operation):
            self._release(number, slot)
        return True

    def _release(self, number: int, slot: ir.Value) -> None:
        ir.Operation.create("warp.release", operands=[self.channels[number], slot])

    def _rewrite_loop(self, loop: ir.OpView) -> None:
        """Rewrites a loop. It hands slots that are still read on to its next turn, which releases
        them when it has begun its own products; after it, the last ones are."""
        [body] = loop.regions[0].blocks
        left = self.rewrite(body)
        if left:
            loop = self._handing_on(loop, left)
            [body] = loop.regions[0].blocks
        end = terminator_of(body)
        # What is begun before the loop is waited for before it.
        is_begun = [v in self.begun and v.owner.operation.block == body for v in end.operands]
        if not any(is_begun):
            assert not left, "slots go on for what is begun"
            return
        with loop.location, ir.InsertionPoint.after(loop.operation):
            for begun, result in zip(is_begun, loop.results, strict=True):
                if begun:
                    self._wait(result)
            handed = list(loop.results)[len(loop.results) - len(left) :]
            for number, slot in zip(left, handed, strict=True):
                self._release(number, slot)
        _guard(loop, len(loop.results) - len(left))

    def _handing_on(self, loop: ir.OpView, left: Sequence[int]) -> ir.OpView:
        """The loop with one more variable for each of these channels: the slot of the turn
        before."""
        [body] = loop.regions[0].blocks
        with loop.location, ir.InsertionPoint(loop):
            nothing = [_made("warp.no_slot", [], SLOT) for _ in left]
            lower, upper, step, *carried = loop.operands
            wider = scf.ForOp(lower, upper, step, [*carried, *nothing])
        with ir.InsertionPoint(wider.body):
            end = scf.yield_([])  # what is moved stands before it
        for old, new in zip(body.arguments, wider.body.arguments, strict=False):
            old.replace_all_uses_with(new)
        for op in list(body.operations):
            op.operation.move_before(end)
        old_end = wider.body.operations[len(wider.body.operations) - 2]
        yielded = [*old_end.operands, *(self.slots[number] for number in left)]
        for op in (end, old_end):
            op.operation.erase()
        with loop.location, ir.InsertionPoint(wider.body):
            scf.yield_(yielded)
        before = list(wider.body.arguments)[len(wider.body.arguments) - len(left) :]
        begun = [op for op in wider.body.operations if op.operation.name == "warp.dot"]
        with loop.location, ir.InsertionPoint.after(begun[-1].operation):
            ir.Operation.create("warp.drain", attributes={"pending": integer(len(begun))})
            for number, slot in zip(left, before, strict=True):
                self._release(number, slot)
        for old, new in zip(loop.results, wider.results, strict=False):
            old.replace_all_uses_with(new)
        loop.operation.erase()
        return wider


def _guard(loop: ir.OpView, count: int) -> None:
    """A branch around a loop and the waits and releases that follow it, taken if the loop turns.

    Sums that no product has been added to would meet those under way where they are waited for,
    and then the assembler lets products run one by one (ptxas, C7515).

    Shapes:   the first `count` results of the loop are used beyond
    """
    lower, upper, _, *carried = loop.operands
    block = loop.operation.block
    after = list(block.operations)
    after = after[after.index(loop) :]
    tail = [op for op in after[1:] if op.operation.name in ("warp.wait", "warp.release")]
    waited = {op.operands[0]: op.results[0] for op in tail if op.operation.name == "warp.wait"}
    results = [waited.get(result, result) for result in list(loop.results)[:count]]
    with loop.location, ir.InsertionPoint(loop):
        turns = arith.cmpi(arith.CmpIPredicate.slt, lower, upper)
        branch = scf.IfOp(turns, [result.type for result in results], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            end = scf.yield_(results)
        with ir.InsertionPoint(branch.else_block):
            scf.yield_(carried[:count])
    for op in (loop, *tail):
        op.operation.move_before(end)
    for result, new in zip(results, branch.results, strict=True):
        result.replace_all_uses_except(new, [op.operation for op in (end, *tail)])


def _memory_of(load: Copied) -> ir.Type:
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SHARED_SPACE)
    return ir.MemRefType.get(load.tile.shape, load.element, memory_space=space)


def _is_added_to(use: ir.OpOperand, block: ir.Block) -> bool:
    """Whether a product of this block adds to the value: once a turn."""
    is_sums = use.owner.name == "warp.dot" and use.operand_number == 2
    return bool(is_sums and use.owner.operation.block == block)


def _is_in(op: ir.Operation, around: ir.OpView) -> bool:
    """Whether an operation is another one, or inside of it."""
    here: ir.Operation | None = op.operation
    while here is not None:
        if here == around.operation:
            return True
        here = here.parent
    return False


def _drop_unused(function: ir.OpView) -> None:
    """What only loads and products used that now are others'."""
    upstream = PassManager.parse("func.func(canonicalize,cse)")
    changed = True
    while changed:
        upstream.run(function.operation)
        changed = remove_dead(function)
