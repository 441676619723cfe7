"""Loops whose tiles are copied to shared memory some turns ahead, by all threads.

Before:   a function without roles, facts found; the plan names loads of loops
After:    a `stage.ring_of` before each loop that has some, with what the first turns read; in each
          turn, `stage.arrived`, the copies for a later turn, and `stage.commit` at the end. Loads
          are `stage.tile`s, and so is, in the order of its own axes, each factor made of one

    for k { a = load k; c = a b + c }

    begin 0; commit; begin 1; commit                  three slots
    for k { arrived 1; begin k + 2; a = tile; c = a b + c; commit }     and none under way behind it

Algorithm: what a later turn loads is computed by copies of the scalar operations that it depends
on, with another number of the loop. It is present if the loop comes to that turn: the distance to
the end of the loop, as a number without sign, is exact.

Sound: `tilec.shared_memory.verify` says whether copies are waited for, in the code of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, scf
from tilec.ir.types import shared_memory_type
from tilec.ops.build import integer, integer_list
from tilec.ops.lower_control import terminator_of
from tilec.ops.lowering import RINGS, ROWS_TOGETHER, WAITS
from tilec.ops.registry import rules
from tilec.ops.staged import ASYNC
from tilec.schedule.stages import StagedLoad, StagedRing, Stages


def stage_loads(function: ir.OpView, stages: Stages) -> None:
    """Rewrites the function in place; needs a current context and location."""
    if not stages.rings:
        return
    loops: dict[int, ir.OpView] = {}  # what became of each
    for number, ring in enumerate(stages.rings):
        loop = loops.get(id(ring.loop), ring.loop)
        loops[id(ring.loop)] = _Staging(number, ring, loop).rewrite()
    function.attributes[ROWS_TOGETHER] = integer(stages.rows_together)


@dataclass
class _Staging:
    """One ring; `loop` is its loop as it is now."""

    number: int
    ring: StagedRing
    loop: ir.OpView

    def rewrite(self) -> ir.OpView:
        """Gives the loop as it is then."""
        depth = self.ring.depth
        lower, upper, step = list(self.loop.operands)[:3]
        size = _constant_of(step)
        with self.loop.location, ir.InsertionPoint(self.loop):
            ring = self._create()
            turns = arith.cmpi(arith.CmpIPredicate.slt, lower, upper)
            room = arith.subi(upper, lower)
            for turn in range(depth - 1):
                here = arith.andi(turns, _is_below(turn * size, room)) if turn else turns
                place = arith.addi(lower, _index(turn * size)) if turn else lower
                self._begin(ring, _index(turn), here, place, turn)
                _create("stage.commit", [ring])
            first = _index(0)
        loop, slot = _with_variable(self.loop, first, self.number)
        self._rewrite_body(loop, ring, slot, upper, size)
        # With two slots, one that reads ahead has waited for all.
        has_waited = self.ring.rotates and depth == 2
        if self.ring.fill == ASYNC and not has_waited:
            loop.attributes[WAITS] = ir.UnitAttr.get()
        return loop

    def _rewrite_body(
        self, loop: ir.OpView, ring: ir.Value, slot: ir.Value, upper: ir.Value, size: int
    ) -> None:
        depth = self.ring.depth
        [body] = loop.regions[0].blocks
        number = body.arguments[0]
        self.loop = loop
        with loop.location, ir.InsertionPoint.at_block_begin(body):
            _create("stage.arrived", [ring], pending=integer(depth - 2))
            here = _is_below((depth - 1) * size, arith.subi(upper, number))
            later = arith.addi(number, _index((depth - 1) * size))
            free = _around(slot, 0, depth - 1, arith.subi(slot, _index(1)))
            self._begin(ring, free, here, later, depth - 1)
        for place, one in enumerate(self.ring.loads):
            self._take_tile(one, ring, slot, place)
        end = terminator_of(body)
        with loop.location, ir.InsertionPoint(end):
            _create("stage.commit", [ring])
            following = _around(slot, depth - 1, 0, arith.addi(slot, _index(1)))
        [variable] = [n for n, argument in enumerate(body.arguments) if argument == slot]
        end.operands[variable - 1] = following

    def _create(self) -> ir.Value:
        tiles = [
            ir.TypeAttr.get(shared_memory_type(one.tile.shape, one.element))
            for one in self.ring.loads
        ]
        attributes: dict[str, ir.Attribute] = {
            "depth": integer(self.ring.depth),
            "number": integer(self.number),
            "tiles": ir.ArrayAttr.get(tiles),
            "fill": ir.StringAttr.get(self.ring.fill),
        }
        if self.ring.rotates:
            attributes["rotates"] = ir.UnitAttr.get()
        op = ir.Operation.create(
            "stage.ring_of", results=[ir.Type.parse("!stage.ring")], attributes=attributes
        )
        return op.results[0]

    def _begin(
        self, ring: ir.Value, slot: ir.Value, here: ir.Value, number: ir.Value, ahead: int
    ) -> None:
        """Begin what the turn of this number of the loop loads, `ahead` turns from now."""
        [body] = self.loop.regions[0].blocks
        copies = {body.arguments[0]: number}
        for place, one in enumerate(self.ring.loads):
            access = rules()[one.load.operation.name].access(one.load)
            assert access is not None, "a plan names loads"
            with one.load.location:
                view, *indices = (
                    _copied(value, body, copies) for value in (access.view, *access.indices)
                )
                _create(
                    "stage.begin",
                    [ring, slot, here, view, *indices],
                    tile=integer(place),
                    ahead=integer(ahead),
                    unit=ir.StringAttr.get(access.unit),
                    shape=integer_list(access.shape),
                    axes=integer_list(one.axes),
                    bounds=one.load.attributes["bounds"],
                )

    def _take_tile(self, one: StagedLoad, ring: ir.Value, slot: ir.Value, place: int) -> None:
        """The load, and all that only moves its axes, become tiles of the slot."""
        ahead: list[tuple[ir.OpView, tuple[int, ...]]] = [(one.load, one.axes)]
        seen: list[ir.OpView] = []
        while ahead:
            op, axes = ahead.pop()
            seen.append(op)
            value = op.results[0]
            for use in list(value.uses):
                user = use.owner.opview
                moved = rules()[user.operation.name].moved_axes(user)
                if moved is not None and use.operand_number == 0:
                    ahead.append((user, tuple(-1 if m is None else axes[m] for m in moved)))
            with op.location, ir.InsertionPoint(one.load):
                tile = _create(
                    "stage.tile",
                    [ring, slot],
                    [value.type],
                    tile=integer(place),
                    axes=integer_list(axes),
                )
            value.replace_all_uses_with(tile.results[0])
        for op in (*reversed(seen[1:]), *seen[:1]):
            op.operation.erase()


def _create(
    name: str,
    operands: Sequence[ir.Value],
    results: Sequence[ir.Type] = (),
    **attributes: ir.Attribute,
) -> ir.Operation:
    return ir.Operation.create(
        name, results=list(results), operands=list(operands), attributes=dict(attributes)
    )


# ---- numbers -------------------------------------------------------------------------------------


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def _constant_of(value: ir.Value) -> int:
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)


def _is_below(number: int, room: ir.Value) -> ir.Value:
    """Whether (i1) what is above zero, without a sign, is more than a number."""
    return arith.cmpi(arith.CmpIPredicate.ult, _index(number), room)


def _around(slot: ir.Value, last: int, then: int, otherwise: ir.Value) -> ir.Value:
    """The slot beside one, where those of the ring go around."""
    is_last = arith.cmpi(arith.CmpIPredicate.eq, slot, _index(last))
    return arith.select(is_last, _index(then), otherwise)


def _copied(value: ir.Value, body: ir.Block, copies: dict[ir.Value, ir.Value]) -> ir.Value:
    """A scalar or view of a loop's body, made of copies here; anything else as it is."""
    if value in copies:
        return copies[value]
    if isinstance(value.owner, ir.Block) or value.owner.operation.block != body:
        return value
    operands = [_copied(operand, body, copies) for operand in value.owner.operands]
    copy = value.owner.clone()
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    copies.update(zip(value.owner.results, copy.results, strict=True))
    return copies[value]


# ---- loops ---------------------------------------------------------------------------------------


def _with_variable(loop: ir.OpView, first: ir.Value, ring: int) -> tuple[ir.OpView, ir.Value]:
    """The loop with one more variable, which it hands on as it is; and that in its body.

    It turns a ring of this number, too. The loop that there was is gone.
    """
    lower, upper, step, *carried = loop.operands
    [old] = loop.regions[0].blocks
    with loop.location, ir.InsertionPoint(loop):
        wider = scf.ForOp(lower, upper, step, [*carried, first])
    body = wider.body
    for before, now in zip(old.arguments, body.arguments, strict=False):
        before.replace_all_uses_with(now)
    slot = body.arguments[len(body.arguments) - 1]
    yielded = list(terminator_of(old).operands)
    with loop.location, ir.InsertionPoint(body):
        end = scf.yield_([*yielded, slot])
    for op in list(old.operations)[:-1]:
        op.operation.move_before(end)
    for before, now in zip(loop.results, wider.results, strict=False):
        before.replace_all_uses_with(now)
    turned = list(ir.ArrayAttr(loop.attributes[RINGS])) if RINGS in loop.attributes else []
    if WAITS in loop.attributes:
        wider.attributes[WAITS] = loop.attributes[WAITS]
    wider.attributes[RINGS] = ir.ArrayAttr.get([*turned, integer(ring)])
    loop.operation.erase()
    return wider, slot
