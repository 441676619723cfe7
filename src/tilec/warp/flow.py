"""What a role holds where, followed along every path of it.

Control flow is structured, so a path is followed through blocks as they stand. A loop is followed
again, from what its turns and its start have in common, until that is all: counts only fall to
zero, or rise to the depth of a channel. What it leaves is kept, by what it was come to with: a loop
in a loop is not followed anew for each turn of all loops around it.

Products end in the order in which they began. So all but the last n of them are done after
`drain n`, and what reads a slot is done if n have begun since (`Slot.since`); `wait` ends all. Each
warp follows one path: what holds on all paths holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mlir import ir

from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.ops.channel import is_copied_as
from tilec.warp.held import AllHeld, DoNotMeetError, Held, Lent, Nothing, Slot, Sums, Turn, merged
from tilec.warp.problem import Problem
from tilec.warp.reading import (
    IS_PROGRAM,
    MINE,
    OF_SPLIT,
    PROGRAM,
    SKIP,
    certainly_turns,
    depth_of,
    is_last_of,
    is_read_by_warp,
    number_of,
    tiles_of,
    written_type,
)
from tilec.warp.written import SHOWN, WRITTEN, Place, Places

# What a role does with slots and products, by name; each gets what is held.
_LOADS = ("warp.acquire", "warp.fill", "warp.publish", "warp.close")
_COMPUTES = (
    "warp.get", "warp.no_slot", "warp.tile", "warp.read", "warp.release", "warp.dot", "warp.drain",
    "warp.wait", "warp.await_turn", "warp.pass_turn", "warp.write", "warp.show", "warp.join_warps",
)  # fmt: skip
# What concerns nothing that is held (`programs`, `teams` and `split` say where it may stand).
_ELSEWHERE = (PROGRAM, IS_PROGRAM, MINE, SKIP, *OF_SPLIT)

# Of each slot that is got: the age of the oldest one that is held then, by channel.
Oldest = dict[ir.OpView, dict[ir.Value, int]]


class _Step(Protocol):
    def __call__(self, op: ir.OpView, held: AllHeld) -> None: ...


class _Follow(Protocol):
    """Follows a loop, from what is held and carried before it; gives the same behind it."""

    def __call__(
        self, op: ir.OpView, held: AllHeld, first: Sequence[Held | None]
    ) -> tuple[AllHeld, Sequence[Held | None]]: ...


# A loop, and what is held and carried where it is come to.
_Come = tuple[ir.OpView, frozenset[tuple[ir.Value, Held]], tuple[Held | None, ...]]


@dataclass(frozen=True)
class Followed:
    """What was found of one role. `visits` counts the operations that were followed: the work."""

    problems: tuple[Problem, ...]
    oldest: Oldest
    visits: int


def follow(
    role: ir.Block, *, is_loader: bool, by_turns: bool = False, buffers: Sequence[ir.Value] = ()
) -> Followed:
    """Follow all paths of a role, of which several teams get slots by turns, or one does; it writes
    to these buffers."""
    flow = _Flow(is_loader, by_turns)
    held: AllHeld = {one: Places.of(one.owner.opview, depth_of(one)) for one in buffers}
    flow.block(role, held)
    return Followed(tuple(flow.problems.values()), flow.oldest, flow.visits)


class _Flow:
    def __init__(self, is_loader: bool, by_turns: bool) -> None:
        self.problems: dict[tuple[str, ir.OpView], Problem] = {}
        self.oldest: Oldest = {}
        self._is_loader = is_loader
        self._by_turns = by_turns
        names = _LOADS if is_loader else _COMPUTES
        self._steps: dict[str, _Step] = {
            name: getattr(self, f"_{name.partition('.')[2]}") for name in names
        }
        self._steps |= {"scf.if": self._if, "scf.for": self._loop, "scf.while": self._loop}
        self._follow: dict[str, _Follow] = {"scf.for": self._for, "scf.while": self._while}
        self._left: dict[_Come, tuple[AllHeld, Sequence[Held | None]]] = {}
        self.visits = 0
        self._linear: set[ir.Value] = set()  # all that were held at any time
        self._tiles: dict[ir.Value, ir.Value] = {}  # the slot that a tile is of
        self._written: dict[ir.Value, ir.Value] = {}  # the buffer that a tile was written to

    def block(
        self, block: ir.Block, held: AllHeld, entering: Sequence[Held | None] = ()
    ) -> list[Held | None]:
        """Follow a block, of which the last arguments are `entering`; what it hands to the
        operation around it, operand by operand."""
        before = set(held)
        if entering:
            self._enter(list(block.arguments)[-len(entering) :], entering, held)
        *ops, end = block.operations
        self.visits += len(ops)
        for op in ops:
            step = self._steps.get(op.operation.name)
            if step is not None:
                step(op, held)
            elif op.operation.name.startswith("warp.") and op.operation.name not in _ELSEWHERE:
                role = "loader" if self._is_loader else "math warps"
                self._wrong(f"the {role} may not do this", op)
            else:
                self._plain(op, held)
        handed = [self._taken(value, held, end) for value in end.operands]
        for value in set(held) - before:
            left = held[value]
            if isinstance(left, Lent):
                continue
            del held[value]
            if not isinstance(left, Nothing):
                self._wrong("what is held is not given up on a way to here", end, left.made)
        return handed

    def _wrong(self, what: str, op: ir.OpView, cause: ir.OpView | None = None) -> None:
        self.problems.setdefault((what, op), Problem(what, op, cause))

    # ---- values ----------------------------------------------------------------------------------

    def _define(self, value: ir.Value, what: Held | None, held: AllHeld) -> None:
        if isinstance(held.get(value), Lent):
            self._wrong("a product may still read the registers that are written", _maker(value))
            del held[value]
        if what is None:
            self._linear.discard(value)  # it may have been, when it was come by before
        else:
            self._linear.add(value)
            held[value] = what

    def _taken(self, value: ir.Value, held: AllHeld, op: ir.OpView) -> Held | None:
        """What a value is, which is given up by that; nothing special, where it is not linear."""
        if value in self._tiles or value in self._written:
            self._wrong("only a product may read a tile", op)
            return None
        if value not in self._linear:
            return None
        found = held.get(value)
        if found is None:
            self._wrong("what is used was given up on a way to here", op, _maker(value))
            return Nothing() if _is_slot(value) else None
        if not isinstance(found, Nothing):
            del held[value]
        return found

    def _slot(self, op: ir.OpView, held: AllHeld) -> Slot | None:
        """The slot that an operation uses, if it is one of its channel and held."""
        channel, value = list(op.operands)[:2]
        found = held.get(value)
        if not isinstance(found, Slot):
            what = "is none" if isinstance(found, Nothing) else "was given up on a way to here"
            self._wrong(f"the slot {what}", op, _maker(value))
            return None
        if found.channel != channel:
            self._wrong("the slot is of another channel", op, found.made)
        return found

    def _given_up(self, op: ir.OpView, held: AllHeld) -> Slot | None:
        """The slot that an operation gives up, if there is one."""
        value = op.operands[1]
        if isinstance(held.get(value), Nothing):
            return None
        slot = self._slot(op, held)
        held.pop(value, None)
        return slot

    def _plain(self, op: ir.OpView, held: AllHeld) -> None:
        """Any other operation: it uses nothing of what roles hold."""
        self._uses(op, held)
        for result in op.results:
            self._define(result, None, held)

    def _uses(self, op: ir.OpView, held: AllHeld) -> None:
        for one in (op, *operations(op)) if len(op.regions) else (op,):
            for value in one.operands:
                what = held.get(value)
                if value in self._tiles or value in self._written:
                    self._wrong("only a product may read a tile", op)
                elif isinstance(what, Sums):
                    self._wrong("the sums that are used may be under way", op, what.made)
                elif value in self._linear:
                    self._wrong("what is used is a slot, or was given up", op, _maker(value))

    # ---- the loader ------------------------------------------------------------------------------

    def _acquire(self, op: ir.OpView, held: AllHeld) -> None:
        self._define(op.results[0], Slot(op.operands[0], op), held)

    def _fill(self, op: ir.OpView, held: AllHeld) -> None:
        slot = self._slot(op, held)
        if slot is None:
            return
        tile, view = number_of(op, "tile"), ir.MemRefType(op.operands[2].type)
        kinds = tiles_of(slot.channel)
        if tile in slot.filled:
            self._wrong("the tile is filled already", op)
        if not 0 <= tile < len(kinds):
            self._wrong("the slot has no such tile", op)
            return
        kind = ir.MemRefType(kinds[tile])
        is_copied = is_copied_as(view.element_type, kind.element_type)
        if not is_copied or view.rank != kind.rank:
            self._wrong("the tile is of another type", op)
        if len(op.operands) != 3 + kind.rank:
            self._wrong("expected an index for each axis", op)
        held[op.operands[1]] = replace(slot, filled=slot.filled | {tile})

    def _publish(self, op: ir.OpView, held: AllHeld) -> None:
        slot = self._given_up(op, held)
        if slot is not None and len(slot.filled) != len(tiles_of(slot.channel)):
            self._wrong("not every tile of the slot is filled", op, slot.made)

    def _close(self, op: ir.OpView, held: AllHeld) -> None:
        for slot in held.values():
            if isinstance(slot, Slot) and slot.channel == op.operands[0]:
                self._wrong("a slot is held that is waited for", op, slot.made)

    # ---- slots of the math warps -----------------------------------------------------------------

    def _get(self, op: ir.OpView, held: AllHeld) -> None:
        channel = op.operands[0]
        if self._by_turns and Turn(op) not in held.values():
            self._wrong("it is not this team's turn to get a slot", op)
        ages = self.oldest.setdefault(op, {})
        for value, slot in held.items():
            if not isinstance(slot, Slot):
                continue
            ages[slot.channel] = max(slot.age, ages.get(slot.channel, -1))
            if slot.channel == channel:
                # More than the depth is wrong anyway, and then loops end.
                held[value] = replace(slot, age=min(slot.age + 1, depth_of(channel)))
        self._define(op.results[0], Slot(channel, op), held)

    def _no_slot(self, op: ir.OpView, held: AllHeld) -> None:
        self._define(op.results[0], Nothing(), held)

    def _tile(self, op: ir.OpView, held: AllHeld) -> None:
        slot = self._slot(op, held)
        self._tiles[op.results[0]] = op.operands[1]
        if slot is None:
            return
        number, kinds = number_of(op, "tile"), tiles_of(slot.channel)
        if not slot.is_certain:
            self._wrong("there may be no slot", op, slot.made)
        if not 0 <= number < len(kinds) or kinds[number] != op.results[0].type:
            self._wrong("the slot has no such tile", op)

    def _read(self, op: ir.OpView, held: AllHeld) -> None:
        """Threads read the tile here and now."""
        slot = self._tiles.get(op.operands[0])
        if slot is None:
            self._wrong("what is read is no tile of a slot", op)
        elif not isinstance(held.get(slot), Slot):
            self._wrong("the slot of a tile was given up on a way to here", op, _maker(slot))
        elif not is_read_by_warp(op.operands[0].owner.operands[0]):
            self._wrong("the channel does not wait for each warp that reads", op)
        self._define(op.results[0], None, held)

    def _release(self, op: ir.OpView, held: AllHeld) -> None:
        slot = self._given_up(op, held)
        if slot is not None and slot.since is not None:
            self._wrong("a product may still read the slot", op, slot.made)

    # ---- what threads write for products ---------------------------------------------------------

    def _write(self, op: ir.OpView, held: AllHeld) -> None:
        buffer, value = op.operands
        places = held.get(buffer)
        if isinstance(held.get(value), Sums):
            self._wrong("the sums that are used may be under way", op, _maker(value))
        elif value in self._linear:
            self._wrong("what is used is a slot, or was given up", op, _maker(value))
        if self._by_turns:
            self._wrong("several teams would write to one buffer", op)
        if not isinstance(places, Places):
            self._wrong("what is written to is no buffer", op)
            return
        if written_type(buffer) != op.results[0].type:
            self._wrong("the buffer has no such tile", op, places.made)
        if not places.oldest.is_free:
            self._wrong(
                "a product may still read what is overwritten",
                op,
                next(iter(places.oldest.by), None),
            )
        held[buffer] = places.after_write(op)
        self._written[op.results[0]] = buffer

    def _show(self, op: ir.OpView, held: AllHeld) -> None:
        for value, what in held.items():
            if isinstance(what, Places):
                held[value] = what.after_show()

    def _join_warps(self, op: ir.OpView, held: AllHeld) -> None:
        for value, what in held.items():
            if isinstance(what, Places):
                held[value] = what.after_meeting()

    def _read_place(self, op: ir.OpView, factor: ir.Value, held: AllHeld) -> Place | None:
        """The place that a product reads."""
        places, by = held[self._written[factor]], factor.owner.opview
        assert isinstance(places, Places)
        place = places.latest_by(by)
        if place is None:
            self._wrong("the factor was overwritten on a way to here", op, by)
        elif place.stage == WRITTEN:
            self._wrong("a product may not see what was written: it was not shown", op, by)
        elif place.stage == SHOWN:
            self._wrong("a factor may not have been written by all warps", op, by)
        return place

    # ---- turns -----------------------------------------------------------------------------------

    def _await_turn(self, op: ir.OpView, held: AllHeld) -> None:
        self._define(op.results[0], Turn(op), held)

    def _pass_turn(self, op: ir.OpView, held: AllHeld) -> None:
        value, *last = op.operands
        turn = self._taken(value, held, op)
        if not isinstance(turn, Turn) or turn.last_of:
            self._wrong("there may be no turn to pass", op)
        elif last:
            loop = op.operation.parent.opview
            if not is_last_of(loop, last):
                self._wrong("expected the number, end and step of the loop around it", op)
            held[value] = replace(turn, last_of=(loop,))

    def _going_on(self, loop: ir.OpView, held: AllHeld) -> AllHeld:
        """What is held where a loop turns again: a turn that is passed in the last one is not."""
        return {value: _not_passed(what, loop) for value, what in held.items()}

    # ---- products --------------------------------------------------------------------------------

    def _dot(self, op: ir.OpView, held: AllHeld) -> None:
        *factors, sums = op.operands
        read: set[ir.Value] = set()
        lent = factors.pop(0) if is_tile(factors[0]) else None
        places: list[Place] = []
        for factor in factors:
            slot = self._tiles.get(factor)
            if factor in self._written:
                place = self._read_place(op, factor, held)
                places += [] if place is None else [place]
            elif slot is None:
                self._wrong("a factor is no tile of a slot", op)
            elif not isinstance(held.get(slot), Slot):
                self._wrong("the slot of a factor was given up on a way to here", op, _maker(slot))
            else:
                read.add(slot)
        self._taken(sums, held, op)
        for value, what in held.items():
            if isinstance(what, Slot):
                held[value] = what.after_product(reads=value in read)
            elif isinstance(what, Lent):
                held[value] = replace(what, since=what.since + 1)
            elif isinstance(what, Sums):
                held[value] = what.after_product()
            elif isinstance(what, Places):
                held[value] = what.after_product(places)
        if lent is not None:
            self._lend(op, lent, held)
        self._define(op.results[0], Sums(op), held)

    def _lend(self, op: ir.OpView, tile: ir.Value, held: AllHeld) -> None:
        """A product takes a tile from registers, copies of which are its own."""
        before = held.get(tile)
        if isinstance(before, Sums) or (tile in self._linear and before is None):
            self._wrong("a factor is of sums that may be under way", op, _maker(tile))
            return
        by = before.by if isinstance(before, Lent) else frozenset()
        if op.operation in by:
            self._wrong("a product may still read the registers that are written", op)
        held[tile] = Lent(by | {op.operation})

    def _drain(self, op: ir.OpView, held: AllHeld) -> None:
        self._done(number_of(op, "pending"), held)

    def _wait(self, op: ir.OpView, held: AllHeld) -> None:
        sums, pending = self._taken(op.operands[0], held, op), number_of(op, "pending")
        if not isinstance(sums, Sums):
            self._wrong("the sums are not under way", op)
        elif not sums.is_certain:
            self._wrong("the sums may not be under way", op, sums.made)
        elif sums.after_drain(pending).since is not None:
            self._wrong("the product of this accumulator may still be in flight", op, sums.made)
        self._done(pending, held)

    def _done(self, pending: int, held: AllHeld) -> None:
        for value, what in list(held.items()):
            if isinstance(what, Slot | Places | Sums):
                held[value] = what.after_drain(pending)
            elif isinstance(what, Lent) and what.since >= pending:
                del held[value]

    # ---- control flow ----------------------------------------------------------------------------

    def _if(self, op: ir.OpView, held: AllHeld) -> None:
        ways = [region.blocks[0] for region in op.regions if len(region.blocks)]
        then, otherwise = dict(held), dict(held)
        handed = [self.block(*way) for way in zip(ways, (then, otherwise), strict=False)]
        _become(held, self._both(then, otherwise, op))
        for result, one, other in zip(op.results, *handed, strict=True) if op.results else ():
            self._define(result, self._met(one, other, op), held)

    def _loop(self, op: ir.OpView, held: AllHeld) -> None:
        """What was found of it, what is held behind it is the same wherever it is come to alike."""
        first = _first_operands(op)
        entering = tuple(self._taken(value, held, op) for value in first)
        come = op, frozenset(held.items()), entering
        if come not in self._left:
            self._left[come] = self._follow[op.operation.name](op, dict(held), entering)
        after, given = self._left[come]
        _become(held, after)
        self._enter(op.results, given, held)

    def _for(
        self, op: ir.OpView, held: AllHeld, first: Sequence[Held | None]
    ) -> tuple[AllHeld, Sequence[Held | None]]:
        [body] = op.regions[0].blocks
        start, entering = dict(held), list(first)
        while True:
            turn = dict(start)
            handed = self.block(body, turn, entering)
            again = self._both(start, self._going_on(op, turn), op)
            entered = [self._joined(*both, op) for both in zip(entering, handed, strict=True)]
            if (again, entered) == (start, entering):
                break
            start, entering = again, entered
        turn = {value: what for value, what in turn.items() if not _is_passed(what, op)}
        if certainly_turns(op):
            return turn, handed
        given = [self._met(*both, op) for both in zip(first, handed, strict=True)]
        return self._both(held, turn, op), given

    def _while(
        self, op: ir.OpView, held: AllHeld, first: Sequence[Held | None]
    ) -> tuple[AllHeld, Sequence[Held | None]]:
        before, body = (region.blocks[0] for region in op.regions)
        start, entering = dict(held), list(first)
        while True:
            turn = dict(start)
            given = self.block(before, turn, entering)[1:]
            left = dict(turn)
            handed = self.block(body, turn, given)
            again = self._both(start, turn, op)
            entered = [self._joined(*both, op) for both in zip(entering, handed, strict=True)]
            if (again, entered) == (start, entering):
                return left, given
            start, entering = again, entered

    def _enter(
        self, values: Sequence[ir.Value], what: Sequence[Held | None], held: AllHeld
    ) -> None:
        for value, one in zip(values, what, strict=True):
            self._define(value, one, held)

    def _both(self, one: AllHeld, other: AllHeld, op: ir.OpView) -> AllHeld:
        """What is held after either way."""
        found: AllHeld = {}
        for value in dict.fromkeys((*one, *other)):
            if value in one and value in other:
                what = self._joined(one[value], other[value], op)
                assert what is not None, "both ways hold it"
                found[value] = what
            elif isinstance(lent := one.get(value, other.get(value)), Lent):
                found[value] = lent
            else:
                self._wrong("what is held is given up on one way only", op, _maker(value))
        return found

    def _joined(self, one: Held | None, other: Held | None, op: ir.OpView) -> Held | None:
        try:
            return merged(one, other)
        except DoNotMeetError as error:
            self._wrong(str(error), op)
            return one

    def _met(self, one: Held | None, other: Held | None, op: ir.OpView) -> Held | None:
        """Either, where no product adds to sums before they are used.

        The assembler would let products run one by one (ptxas, C7515).
        """
        kinds = [isinstance(way, Sums) and way.is_certain for way in (one, other)]
        found = self._joined(one, other, op)
        if isinstance(found, Sums) and kinds != [True, True]:
            self._wrong("sums under way meet sums that are not", op, found.made)
        return found


def _first_operands(loop: ir.OpView) -> list[ir.Value]:
    """What its variables are before it."""
    operands = list(loop.operands)
    return operands[3:] if loop.operation.name == "scf.for" else operands


def _become(held: AllHeld, after: AllHeld) -> None:
    held.clear()
    held.update(after)


def _is_passed(what: Held, loop: ir.OpView) -> bool:
    """Whether it is a turn that is passed when this loop turns for the last time."""
    return isinstance(what, Turn) and what.last_of == (loop,)


def _not_passed(what: Held, loop: ir.OpView) -> Held:
    return Turn(what.made) if isinstance(what, Turn) and _is_passed(what, loop) else what


def _is_slot(value: ir.Value) -> bool:
    return str(value.type) == "!warp.place"


def _maker(value: ir.Value) -> ir.OpView:
    """The operation that makes a value, or has it as an argument of a block."""
    owner = value.owner
    made: ir.OpView = owner.owner.opview if isinstance(owner, ir.Block) else owner.opview
    return made
