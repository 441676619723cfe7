"""A loop whose operations are done in two stages: those of stage 1 a turn after those of stage 0.

Before:   x = x0
          for i in l..u { a = f i; x = g a x i }
After:    if l < u {
              a = f l; y = x0
              for i in l+1..u { b = f i; y = g a y (i-1); a = b }      b and a are one variable
              x = g a y (u-1)
          } else { x = x0 }

The turns that are filled (the first line) and emptied (the last one) are those of one stage. What
stage 0 gives and stage 1 takes is a variable of the loop, as is the value before its turn of what
the loop carries and both take. What takes no time each stage has for itself.

Assumes:  nothing in the loop writes, or reads what is written meanwhile; what one stage takes of
          another is of the same turn or an earlier one
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.ir.dialects import arith, scf
from tilec.ir.walk import operations
from tilec.ops.lower_control import terminator_of


@dataclass(frozen=True)
class Stages:
    """The operations of a loop that take time, in the order in which a turn does them, and those
    that are done a turn later. What takes no time is not among them."""

    order: tuple[ir.OpView, ...]
    late: frozenset[ir.Operation]

    def of(self, op: ir.Operation) -> int:
        return int(op in self.late)


def expand_loop(loop: ir.OpView, stages: Stages) -> None:
    """Rewrites a `scf.for` in place."""
    _Expansion(loop, stages).rewrite()


def reorder_loop(loop: ir.OpView, order: Sequence[ir.OpView]) -> None:
    """The same turns, with their operations in another order; each of the rest before its first
    user."""
    [body] = loop.regions[0].blocks
    end = terminator_of(body)
    moved: set[ir.Operation] = set()

    def move(op: ir.OpView) -> None:
        if op.operation in moved:
            return
        moved.add(op.operation)
        for value in taken_by(op):
            if not isinstance(value.owner, ir.Block) and value.owner.operation.block == body:
                move(value.owner.opview)
        op.operation.move_before(end.operation)

    for op in (*order, *list(body.operations)[:-1]):
        move(op)


def taken_by(op: ir.OpView) -> list[ir.Value]:
    """Its operands, and what its regions take."""
    return [*op.operands, *(value for inner in operations(op) for value in inner.operands)]


# What a value of the loop is, by the value and the stage that takes it.
_Known = dict[tuple[ir.Value, int], ir.Value]


@dataclass
class _Turn:
    """Where operations of a turn go, and what they and others of the loop are there.

    `numbers` are those of the loop, by stage.
    """

    numbers: Callable[[int], ir.Value]
    place: ir.InsertionPoint
    known: _Known = field(default_factory=dict)


class _Expansion:
    def __init__(self, loop: ir.OpView, stages: Stages) -> None:
        self.loop = loop
        self.stages = stages
        [self.body] = loop.regions[0].blocks
        self.lower, self.upper, self.step, *self.starts = loop.operands
        self.carried = list(self.body.arguments)[1:]
        self.handed = list(terminator_of(self.body).operands)
        self.timed = {op.operation for op in stages.order}
        self.of_carried = self._stages_of_carried()
        self.kept = self._kept()

    # ---- what is kept for a turn -------------------------------------------------------------

    def _stages_of_carried(self) -> list[int]:
        """Of each variable of the loop, the latest stage of what it is made of."""
        found = [0] * len(self.carried)
        while True:
            again = [self._stage_of(value, found) for value in self.handed]
            if again == found:
                return found
            found = again

    def _stage_of(self, value: ir.Value, of_carried: Sequence[int]) -> int:
        waiting, seen, found = [value], set[ir.Value](), 0
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if one in self.carried:
                found = max(found, of_carried[self.carried.index(one)])
            elif self._is_made_here(one):
                op = one.owner.opview
                if op.operation in self.timed:
                    found = max(found, self.stages.of(op.operation))
                else:
                    waiting += taken_by(op)
        return found

    def _is_made_here(self, value: ir.Value) -> bool:
        return not isinstance(value.owner, ir.Block) and value.owner.operation.block == self.body

    def _kept(self) -> list[ir.Value]:
        """What stage 1 takes of stage 0: results of its operations, and what the loop carries."""
        waiting = [v for op in self.stages.order if self._is_late(op) for v in taken_by(op)]
        waiting += [v for v, stage in zip(self.handed, self.of_carried, strict=True) if stage]
        found: dict[ir.Value, None] = {}
        seen: set[ir.Value] = set()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.carried:
                if not self.of_carried[self.carried.index(value)]:
                    found[value] = None
            elif self._is_made_here(value):
                op = value.owner.opview
                if op.operation not in self.timed:
                    waiting += taken_by(op)
                elif not self._is_late(op):
                    found[value] = None
        return list(found)

    def _is_late(self, op: ir.OpView) -> bool:
        return op.operation in self.stages.late

    # ---- the loop and what is around it ------------------------------------------------------

    def rewrite(self) -> None:
        loop = self.loop
        with loop.location, ir.InsertionPoint(loop):
            turns = arith.cmpi(arith.CmpIPredicate.slt, self.lower, self.upper)
            branch = scf.IfOp(turns, [result.type for result in loop.results], has_else=True)
        with loop.location, ir.InsertionPoint(branch.else_block):
            scf.yield_(self.starts)
        with loop.location, ir.InsertionPoint(branch.then_block):
            end = scf.yield_([])
        results = self._turns(ir.InsertionPoint(end))
        end.operation.erase()
        with loop.location, ir.InsertionPoint(branch.then_block):
            scf.yield_(results)
        for old, new in zip(loop.results, branch.results, strict=True):
            old.replace_all_uses_with(new)
        loop.operation.erase()

    def _turns(self, place: ir.InsertionPoint) -> list[ir.Value]:
        filling = _Turn(lambda _: self.lower, place)
        filling.known |= {(v, 0): s for v, s in zip(self.carried, self.starts, strict=True)}
        self._emit(filling, 0)
        with self.loop.location, place:
            second = arith.addi(self.lower, self.step)
        first = [
            start if stage else self._value(handed, 0, filling)
            for start, stage, handed in zip(self.starts, self.of_carried, self.handed, strict=True)
        ]
        first += [self._value(value, 0, filling) for value in self.kept]
        with self.loop.location, place:
            steady = scf.ForOp(second, self.upper, self.step, first)
        self._steady(steady)
        count = len(self.carried)
        emptying = _Turn(lambda _: self._last(place), place)
        given = list(steady.results)
        emptying.known |= {(v, 1): g for v, g in zip(self.carried, given, strict=False)}
        emptying.known |= {(v, 1): g for v, g in zip(self.kept, given[count:], strict=True)}
        self._emit(emptying, 1)
        return [
            self._value(handed, 1, emptying) if stage else result
            for result, stage, handed in zip(given, self.of_carried, self.handed, strict=False)
        ]

    def _steady(self, steady: ir.OpView) -> None:
        [body] = steady.regions[0].blocks
        with self.loop.location, ir.InsertionPoint(body):
            end = scf.yield_([])
        place, count = ir.InsertionPoint(end), len(self.carried)
        number = body.arguments[0]

        def numbers(stage: int) -> ir.Value:
            with self.loop.location, place:
                return arith.subi(number, self.step) if stage else number

        turn = _Turn(numbers, place)
        inner = list(body.arguments)[1:]
        for value, stage, argument in zip(self.carried, self.of_carried, inner, strict=False):
            turn.known[value, stage] = argument
        turn.known |= {(v, 1): kept for v, kept in zip(self.kept, inner[count:], strict=True)}
        for op in self.stages.order:
            self._clone(op, self.stages.of(op.operation), turn)
        handed = [
            self._value(v, stage, turn)
            for v, stage in zip(self.handed, self.of_carried, strict=True)
        ]
        handed += [self._value(value, 0, turn) for value in self.kept]
        end.operation.erase()
        with self.loop.location, ir.InsertionPoint(body):
            scf.yield_(handed)

    def _last(self, place: ir.InsertionPoint) -> ir.Value:
        """The number of the last turn, where there is one."""
        with self.loop.location, place:
            turns = arith.ceildivsi(arith.subi(self.upper, self.lower), self.step)
            one = arith.constant(ir.IndexType.get(), 1)
            return arith.addi(self.lower, arith.muli(arith.subi(turns, one), self.step))

    # ---- operations --------------------------------------------------------------------------

    def _emit(self, turn: _Turn, stage: int) -> None:
        """The operations of one stage."""
        for op in self.stages.order:
            if self.stages.of(op.operation) == stage:
                self._clone(op, stage, turn)

    def _value(self, value: ir.Value, stage: int, turn: _Turn) -> ir.Value:
        """What a value of the loop is to a stage."""
        if (value, stage) in turn.known:
            return turn.known[value, stage]
        if value == self.body.arguments[0]:
            turn.known[value, stage] = turn.numbers(stage)
        elif self._is_made_here(value):
            op = value.owner.opview
            assert op.operation not in self.timed, "what takes time is done before it is taken"
            self._clone(op, stage, turn)
        else:
            assert value not in self.carried, "what is carried is kept for those who take it"
            return value
        return turn.known[value, stage]

    def _clone(self, op: ir.OpView, stage: int, turn: _Turn) -> None:
        inside = {value for inner in operations(op) for value in inner.results} | {
            argument
            for one in (op, *operations(op))
            for region in one.regions
            for block in region.blocks
            for argument in block.arguments
        }
        renamed = {v: self._value(v, stage, turn) for v in taken_by(op) if v not in inside}
        with op.location:
            copy = op.operation.clone(ip=turn.place).opview
        for one in (copy, *operations(copy)):
            for number, value in enumerate(one.operands):
                if value in renamed:
                    one.operands[number] = renamed[value]
        for old, new in zip(op.results, copy.results, strict=True):
            turn.known[old, stage] = new
