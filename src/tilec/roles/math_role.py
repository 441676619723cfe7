"""What the math warps do: products, waits for them, and the slots that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, scf
from tilec.ir.rewrite import loop_with
from tilec.layout import LANES
from tilec.ops.build import integer, integer_list, number_of
from tilec.ops.lower_control import terminator_of
from tilec.ops.lowering import SLOT
from tilec.ops.registry import rules
from tilec.roles.computed_factors import are_made_apart, compute_late, halved
from tilec.roles.load_early import loads_before_slots
from tilec.roles.of_roles import (
    PRODUCT,
    first_made,
    made,
    mark_of,
    memory_of,
    remade,
    takes_held,
)
from tilec.roles.staged_factors import StagedFactors, drain
from tilec.schedule.plan import Schedule
from tilec.schedule.products import Computed, Copied, Factor, Staged, rounding_of

# Of slots that factors are computed from in turns, for one is held half a turn longer than else:
# with two, weights of 4 bits by 256 rows were at 0.78 of cuBLAS, not 0.85 (H100, 4096³).
_LEAST_DEPTH_IN_TURNS = 3


@dataclass(frozen=True)
class Got:
    """A buffer that was acquired, and the number of its channel."""

    channel: int
    slot: ir.Value


class MathWarps:
    """What the math warps do, made from a copy of everything."""

    def __init__(
        self,
        schedule: Schedule,
        channels: Sequence[ir.Value],
        read: set[tuple[int, int]],
        staged: StagedFactors,
    ) -> None:
        self.schedule = schedule
        self.channels = channels
        self.tiles: dict[tuple[int, int], ir.Value] = {}  # by channel and place
        self.slots: dict[int, ir.Value] = {}
        self.read = read
        self.staged = staged
        self.begun: set[ir.Value] = set()  # sums that are under way

    def rewrite(self, block: ir.Block) -> list[Got]:
        """Rewrites a block and what is in it; the slots that products go on reading."""
        got: list[Got] = []
        for op in list(block.operations):
            mark = mark_of(op)
            if mark is not None:
                self._take_tile(op, *mark)
                got += [Got(mark[0], self.slots[mark[0]])] if mark[2] == 0 else []
            elif PRODUCT in op.attributes:
                self._begin(op)
            elif op.operation.name == "scf.for":
                self._rewrite_loop(op)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        left = self.rewrite(inner)
                        assert not left, "only the next turn of a loop goes on"
        self._wait_in(block)
        return [one for one in got if not self._is_released(block, one)]

    # ---- loads and products ------------------------------------------------------------------

    def _take_tile(self, op: ir.OpView, number: int, fill: int, place: int) -> None:
        """A load becomes a tile of the channel's slot, which the first of them gets."""
        channel, load = self.channels[number], self.schedule.channels[number].fills[fill][place]
        with op.location, ir.InsertionPoint(op):
            if place == 0:
                self.slots[number] = made("warp.get", [channel], SLOT)
            tile = ir.Operation.create(
                "warp.tile",
                results=[memory_of(load)],
                operands=[channel, self.slots[number]],
                attributes={"tile": integer(place)},
            )
            self.tiles[number, place] = tile.results[0]
            if (number, place) in self.read:
                self._read(op, load, tile.results[0])

    def _read(self, op: ir.OpView, load: Copied, tile: ir.Value) -> None:
        """What used the load uses registers that the tile is read into."""
        rounding = rounding_of(op)
        result = op.results[0] if rounding is None else rounding.results[0]
        read = ir.Operation.create(
            "warp.read",
            results=[result.type],
            operands=[tile],
            attributes={"axes": integer_list(load.order)},
        )
        result.replace_all_uses_with(read.results[0])

    def _begin(self, op: ir.OpView) -> None:
        number = ir.IntegerAttr(op.attributes[PRODUCT]).value
        product = self.schedule.products[number]
        # A tile in registers is that of this copy of the program.
        is_held = isinstance(product.a, Computed)
        first = op.operands[0] if is_held else self._tile_of(product.a)
        if isinstance(product.b, Staged):
            second = self.staged.tile_of(product.b, number, op)
        else:
            second = self._tile_of(product.b)
        chosen = product.instruction
        names = [ir.StringAttr.get(name) for name in (chosen.a, chosen.b, chosen.total)]
        with op.location, ir.InsertionPoint(op):
            begun = ir.Operation.create(
                "warp.dot",
                results=[op.results[0].type],
                operands=[first, second, op.operands[2]],
                attributes={
                    "a_k": integer(1 if isinstance(product.a, Computed) else product.a.k_axis),
                    "b_k": integer(product.b.k_axis),
                    "elements": ir.ArrayAttr.get(names),
                },
            )
        op.results[0].replace_all_uses_with(begun.results[0])
        op.operation.erase()
        self.begun.add(begun.results[0])

    def _tile_of(self, factor: Factor) -> ir.Value:
        for number, channel in enumerate(self.schedule.channels):
            for loads in channel.fills:
                if factor.copied in loads:
                    return self.tiles[number, loads.index(factor.copied)]
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
        # Before its operand's registers are overwritten, a product is waited for in any case.
        if len(list(begun.uses)) > 1 or remade(begun.owner.opview) is not None:
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
        users = {use.owner.operation for use in begun.uses}
        maker = remade(begun.owner.opview)
        if maker is not None:
            users.add(maker)
        first = next(op for op in block.operations if any(_is_in(user, op) for user in users))
        with first.location, ir.InsertionPoint(first):
            self._wait(begun, _issued_between(begun.owner.opview, first))

    def _wait(self, begun: ir.Value, pending: int) -> None:
        """Waits; at least `pending` products were issued after that of the accumulator."""
        done = ir.Operation.create(
            "warp.wait",
            results=[begun.type],
            operands=[begun],
            attributes={"pending": integer(pending)},
        )
        begun.replace_all_uses_except(done.results[0], done)
        self.begun.discard(begun)

    # ---- slots -------------------------------------------------------------------------------

    def _is_released(self, block: ir.Block, got: Got) -> bool:
        """Releases the slot that a block got, once all products that read it are over.

        Those that began in a loop are, where that ends. False if some go on into the next turn.
        """
        readers = {
            reader.owner
            for use in got.slot.uses
            if use.owner.name == "warp.tile"
            for reader in use.owner.results[0].uses
        }
        return self._is_released_in(block, got, readers)

    def _is_released_in(self, block: ir.Block, got: Got, readers: set[ir.Operation]) -> bool:
        ops = list(block.operations)
        reading = [i for i, op in enumerate(ops) if any(_is_in(one, op) for one in readers)]
        if not reading:
            with block.owner.location, ir.InsertionPoint.at_block_begin(block):
                self._release(got)
            return True
        after = reading[-1]
        if ops[after].operation.name == "scf.if":
            # As early as possible on each path: the producer may wait for the buffer.
            paths = [self._is_released_in(path, got, readers) for path in _both_paths(ops[after])]
            return all(paths)
        after = _after_waits(ops, after)
        last = next((i for i in reversed(reading) if ops[i].operation.name != "warp.read"), None)
        if last is not None and ops[last].operation.name == "warp.dot":
            waits = (i for i in range(last, len(ops)) if _waits_for(ops[i], ops[last]))
            done = next(waits, None)
            if done is None:
                return False
            after = max(after, done)
        with ops[after].location, ir.InsertionPoint.after(ops[after].operation):
            self._release(got)
        return True

    def _release(self, got: Got) -> None:
        ir.Operation.create("warp.release", operands=[self.channels[got.channel], got.slot])

    def _rewrite_loop(self, loop: ir.OpView) -> None:
        """Rewrites a loop. It hands slots that are still read on to its next turn, which releases
        them when it has begun its own products; after it, the last ones are."""
        [body] = loop.regions[0].blocks
        left = self.rewrite(body)
        self._make_in_turns(body)
        loads_before_slots(body, LANES * self.schedule.team_warps)
        if left:
            loop = self._handing_on(loop, left)
            [body] = loop.regions[0].blocks
        end = terminator_of(body)
        # What is begun before the loop is waited for before it.
        is_begun = [v in self.begun and v.owner.operation.block == body for v in end.operands]
        if not any(is_begun):
            assert not left, "slots go on for what is begun"
            return
        if not left:
            self._drain_before_made(body)
        with loop.location, ir.InsertionPoint.after(loop.operation):
            for begun, result in zip(is_begun, loop.results, strict=True):
                if begun:
                    self._wait(result, 0)
            handed = list(loop.results)[len(loop.results) - len(left) :]
            for one, slot in zip(left, handed, strict=True):
                self._release(Got(one.channel, slot))
        _guard(loop, len(loop.results) - len(left))

    def _make_in_turns(self, body: ir.Block) -> None:
        """One factor that is computed is computed while products of another one are under way."""
        waits = any(op.operation.name == "warp.drain" for op in body.operations)
        if waits or self.schedule.depth < _LEAST_DEPTH_IN_TURNS:
            return
        begun = [op for op in body.operations if op.operation.name == "warp.dot"]
        if len(begun) == 1 and begun[0].results[0] in self.begun:
            self.begun.discard(begun[0].results[0])
            begun = halved(begun[0])
            self.begun.update(op.results[0] for op in begun)
        compute_late(begun)

    def _handing_on(self, loop: ir.OpView, left: Sequence[Got]) -> ir.OpView:
        """The loop with one more variable for each of these channels: the slot of the turn
        before."""
        with loop.location, ir.InsertionPoint(loop):
            nothing = [made("warp.no_slot", [], SLOT) for _ in left]
        wider = loop_with(loop, [*list(loop.operands)[3:], *nothing])
        [body] = wider.regions[0].blocks
        end = terminator_of(body)
        with loop.location, ir.InsertionPoint(end):
            scf.yield_([*end.operands, *(one.slot for one in left)])
        end.operation.erase()
        before = list(body.arguments)[len(body.arguments) - len(left) :]
        waits = self._drain_before_made(body)
        if waits is None:
            begun = [op for op in body.operations if op.operation.name == "warp.dot"]
            with loop.location, ir.InsertionPoint.after(begun[-1].operation):
                waits = drain(len(begun))
        with loop.location, ir.InsertionPoint.after(waits):
            for one, slot in zip(left, before, strict=True):
                self._release(Got(one.channel, slot))
        for old, new in zip(loop.results, wider.results, strict=False):
            old.replace_all_uses_with(new)
        loop.operation.erase()
        return wider

    def _drain_before_made(self, body: ir.Block) -> ir.Operation | None:
        """Waits for products of the turn before, ahead of what makes registers that they read; the
        last wait, when all of them are over.

        None if products of this block take nothing from registers, or are waited for in their turn.
        """
        ops = list(body.operations)
        products = [op for op in ops if op.operation.name == "warp.dot"]
        held = [op for op in products if takes_held(op)]
        if held and any(op.operation.name == "warp.wait" for op in ops[ops.index(held[-1]) :]):
            return None
        before = next((op for op in ops if op.operation.name == "warp.drain"), None)
        first = first_made(held) if held else None
        if before is not None and (first is None or ops.index(before) < ops.index(first)):
            return before.operation  # what threads write to shared memory waits, too
        if first is None:
            return None
        is_in_turns = self.schedule.depth >= _LEAST_DEPTH_IN_TURNS
        if is_in_turns and len(held) == len(products) and are_made_apart(held):
            # Since each began a turn ago, so many others have.
            firsts = [
                first_made([op], behind) for behind, op in zip([None, *held], held, strict=False)
            ]
            drains = [_drain_before(first, len(held) - 1) for first in firsts]
            return drains[-1]
        return _drain_before(first, 0)


def _after_waits(ops: Sequence[ir.OpView], at: int) -> int:
    """The position of the last wait for products that a loop leaves in flight; else `at`."""
    given = set(ops[at].results) if ops[at].operation.name == "scf.for" else set()
    waits = [
        number
        for number, op in enumerate(ops)
        if op.operation.name == "warp.wait" and op.operands[0] in given
    ]
    return max([at, *waits])


def _both_paths(branch: ir.OpView) -> list[ir.Block]:
    """The blocks of a `scf.if`; an empty `else` is added if there is none."""
    for region in branch.regions:
        if not len(region.blocks):
            with branch.location, ir.InsertionPoint(region.blocks.append()):
                scf.yield_([])
    return [region.blocks[0] for region in branch.regions]


def _issued_between(one: ir.OpView, other: ir.OpView) -> int:
    """How many products are issued between two operations of a block, on every path."""
    ops = list(one.operation.block.operations)
    between = ops[ops.index(one) + 1 : ops.index(other)]
    return sum(op.operation.name == "warp.dot" for op in between)


def _waits_for(op: ir.OpView, product: ir.OpView) -> bool:
    """Whether an operation waits until a product of its block is done."""
    if op.operation.name != "warp.wait":
        return False
    return number_of(op, "pending") <= _issued_between(product, op)


def _drain_before(op: ir.OpView, pending: int) -> ir.Operation:
    with op.location, ir.InsertionPoint(op):
        return drain(pending)


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
