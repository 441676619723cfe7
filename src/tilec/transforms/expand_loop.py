"""Modulo expansion: a loop whose operations belong to two stages becomes a software pipeline.

Before:   x = x0
          for i in l..u { a = f i; x = g a x i }
After:    if l < u {
              a = f l                                          prologue: stage 0
              for i in l+1..u { b = f i; x = g a x (i-1); a = b }
              x = g a x (u-1)                                  epilogue: stage 1
          } else { x = x0 }

A value that stage 0 computes and stage 1 uses is one more variable of the loop. Operations that
take no time are cloned into each stage that uses them.

Assumes:  the body has no side effects; a stage uses values of its own or of an earlier stage
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir

from tilec.ir.dialects import arith, scf
from tilec.ir.rewrite import cloned
from tilec.ir.walk import operands_within
from tilec.ops.lower_control import terminator_of


@dataclass(frozen=True)
class Stages:
    """The operations that take time, in the order of a steady iteration; some are in stage 1."""

    order: tuple[ir.OpView, ...]
    second: frozenset[ir.Operation]

    def of(self, op: ir.OpView) -> int:
        return int(op.operation in self.second)


def expand_loop(loop: ir.OpView, stages: Stages) -> None:
    """Rewrites a `scf.for` in place."""
    _Expansion(loop, stages).rewrite()


def reorder_loop(loop: ir.OpView, order: Sequence[ir.OpView]) -> None:
    """Moves the operations of a body into this order, all others before their first user."""
    [body] = loop.regions[0].blocks
    end = terminator_of(body)
    moved: set[ir.Operation] = set()

    def move(op: ir.OpView) -> None:
        if op.operation in moved:
            return
        moved.add(op.operation)
        for value in operands_within(op):
            if not isinstance(value.owner, ir.Block) and value.owner.operation.block == body:
                move(value.owner.opview)
        op.operation.move_before(end.operation)

    for op in (*order, *list(body.operations)[:-1]):
        move(op)


@dataclass
class _Part:
    """The prologue, a steady iteration or the epilogue: where its operations go, and what values
    of the loop are there, by the stage that uses them. `indices` is the loop's index by stage."""

    indices: Callable[[int], ir.Value]
    place: ir.InsertionPoint
    values: dict[tuple[ir.Value, int], ir.Value] = field(default_factory=dict)


class _Expansion:
    def __init__(self, loop: ir.OpView, stages: Stages) -> None:
        self.loop = loop
        self.stages = stages
        [self.body] = loop.regions[0].blocks
        self.lower, self.upper, self.step, *self.starts = loop.operands
        self.variables = list(self.body.arguments)[1:]
        self.yielded = list(terminator_of(self.body).operands)
        self.timed = {op.operation for op in stages.order}
        self.stage_of_variable = self._stages_of_variables()
        self.crossing = self._crossing()

    # ---- stages of values --------------------------------------------------------------------

    def _stages_of_variables(self) -> dict[ir.Value, int]:
        """Of each variable, the latest stage of what is yielded for it."""
        found = dict.fromkeys(self.variables, 0)
        while True:
            again = {
                variable: max((self._stage(v, found) for v in self._sources([value])), default=0)
                for variable, value in zip(self.variables, self.yielded, strict=True)
            }
            if again == found:
                return found
            found = again

    def _stage(self, source: ir.Value, of_variables: dict[ir.Value, int]) -> int:
        if source in of_variables:
            return of_variables[source]
        return self.stages.of(source.owner.opview)

    def _sources(self, values: Sequence[ir.Value]) -> Iterator[ir.Value]:
        """The variables and the results of timed operations that values are computed from."""
        waiting, seen = list(values), set[ir.Value]()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self.variables:
                yield value
            elif self._is_in_body(value):
                op = value.owner.opview
                if op.operation in self.timed:
                    yield value
                else:
                    waiting += operands_within(op)

    def _is_in_body(self, value: ir.Value) -> bool:
        return not isinstance(value.owner, ir.Block) and value.owner.operation.block == self.body

    def _crossing(self) -> list[ir.Value]:
        """What stage 1 uses of stage 0."""
        second = [op for op in self.stages.order if self.stages.of(op)]
        used = [value for op in second for value in operands_within(op)]
        used += [
            value
            for variable, value in zip(self.variables, self.yielded, strict=True)
            if self.stage_of_variable[variable]
        ]
        sources = self._sources(used)
        return [value for value in sources if not self._stage(value, self.stage_of_variable)]

    # ---- prologue, loop, epilogue ------------------------------------------------------------

    def rewrite(self) -> None:
        loop = self.loop
        with loop.location, ir.InsertionPoint(loop):
            runs = arith.cmpi(arith.CmpIPredicate.slt, self.lower, self.upper)
            branch = scf.IfOp(runs, [result.type for result in loop.results], has_else=True)
        with loop.location, ir.InsertionPoint(branch.else_block):
            scf.yield_(self.starts)
        with loop.location, ir.InsertionPoint(branch.then_block):
            end = scf.yield_([])
        results = self._pipeline(ir.InsertionPoint(end))
        end.operation.erase()
        with loop.location, ir.InsertionPoint(branch.then_block):
            scf.yield_(results)
        for old, new in zip(loop.results, branch.results, strict=True):
            old.replace_all_uses_with(new)
        loop.operation.erase()

    def _pipeline(self, place: ir.InsertionPoint) -> list[ir.Value]:
        prologue = _Part(lambda _: self.lower, place)
        prologue.values = {(v, 0): s for v, s in zip(self.variables, self.starts, strict=True)}
        self._emit_stage(prologue, 0)
        carried = list(zip(self.variables, self.yielded, self.starts, strict=True))
        starts = [
            start if self.stage_of_variable[variable] else self._value(value, 0, prologue)
            for variable, value, start in carried
        ]
        starts += [self._value(value, 0, prologue) for value in self.crossing]
        with self.loop.location, place:
            second = arith.addi(self.lower, self.step)
            steady = scf.ForOp(second, self.upper, self.step, starts)
        self._emit_steady(steady)
        epilogue = _Part(lambda _: self._last_index(place), place)
        results = list(steady.results)
        epilogue.values = {
            (value, 1): result
            for value, result in zip([*self.variables, *self.crossing], results, strict=True)
        }
        self._emit_stage(epilogue, 1)
        return [
            self._value(value, 1, epilogue) if self.stage_of_variable[variable] else result
            for (variable, value, _), result in zip(carried, results, strict=False)
        ]

    def _emit_steady(self, steady: ir.OpView) -> None:
        [body] = steady.regions[0].blocks
        with self.loop.location, ir.InsertionPoint(body):
            end = scf.yield_([])
        place = ir.InsertionPoint(end)
        index, *inner = body.arguments

        def indices(stage: int) -> ir.Value:
            with self.loop.location, place:
                return arith.subi(index, self.step) if stage else index

        part = _Part(indices, place)
        own = [(value, self.stage_of_variable[value]) for value in self.variables]
        keys = [*own, *((value, 1) for value in self.crossing)]
        part.values = dict(zip(keys, inner, strict=True))
        for op in self.stages.order:
            self._clone(op, self.stages.of(op), part)
        yielded = [
            self._value(value, stage, part)
            for value, (_, stage) in zip(self.yielded, own, strict=True)
        ]
        yielded += [self._value(value, 0, part) for value in self.crossing]
        end.operation.erase()
        with self.loop.location, ir.InsertionPoint(body):
            scf.yield_(yielded)

    def _last_index(self, place: ir.InsertionPoint) -> ir.Value:
        """The index of the last iteration, where there is one."""
        with self.loop.location, place:
            count = arith.ceildivsi(arith.subi(self.upper, self.lower), self.step)
            one = arith.constant(ir.IndexType.get(), 1)
            return arith.addi(self.lower, arith.muli(arith.subi(count, one), self.step))

    # ---- operations --------------------------------------------------------------------------

    def _emit_stage(self, part: _Part, stage: int) -> None:
        for op in self.stages.order:
            if self.stages.of(op) == stage:
                self._clone(op, stage, part)

    def _value(self, value: ir.Value, stage: int, part: _Part) -> ir.Value:
        """A value of the loop as a stage uses it."""
        if (value, stage) in part.values:
            return part.values[value, stage]
        if value == self.body.arguments[0]:
            part.values[value, stage] = part.indices(stage)
        elif self._is_in_body(value):
            op = value.owner.opview
            assert op.operation not in self.timed, "timed operations precede their users"
            self._clone(op, stage, part)
        else:
            assert value not in self.variables, "a stage uses variables of its own stage"
            return value
        return part.values[value, stage]

    def _clone(self, op: ir.OpView, stage: int, part: _Part) -> None:
        used = [value for value in operands_within(op) if self._is_of_loop(value)]
        renamed = {value: self._value(value, stage, part) for value in used}
        copy = cloned(op, renamed, part.place)
        for old, new in zip(op.results, copy.results, strict=True):
            part.values[old, stage] = new

    def _is_of_loop(self, value: ir.Value) -> bool:
        """Whether it is the index, a variable, or a result of the body itself."""
        return value.owner == self.body or self._is_in_body(value)
