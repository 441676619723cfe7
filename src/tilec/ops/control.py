"""Control flow: `scf.for`, `scf.while`, `scf.if`, calls of helpers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd

import numpy as np
from mlir import ir

from tilec.integers.formula import FORMULAS, at_least, less, negated
from tilec.integers.number import Number, always
from tilec.integers.polynomial import Polynomial
from tilec.ops.abstract import Abstract, Reasoning
from tilec.ops.facts import COUNT_BITS, NUMBER_BITS
from tilec.ops.host_expression import unsigned_scalar
from tilec.ops.lower_control import (
    carried_by_for,
    carried_by_if,
    carried_by_while,
    lower_for,
    lower_if,
    lower_while,
    terminator_of,
)
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import Carried, Datum, Facts, HostExpression, Machine, OpRules
from tilec.types import ELEMENTS, Kind


class _For(OpRules):
    name = "scf.for"
    control = True
    loop = True

    def carried(self, op: ir.OpView) -> tuple[Carried, ...]:
        return carried_by_for(op)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return lower_for(op, operands, lowering)

    def argument_divisor(self, op: ir.OpView, argument: ir.Value, facts: Facts) -> int:
        if argument.arg_number != 0:
            return 1
        found = gcd(facts.divisor(op.operands[0]), facts.divisor(op.operands[2]))
        return found & -found

    def argument_bits(self, op: ir.OpView, argument: ir.Value, facts: Facts) -> int | None:
        if argument.arg_number != 0:
            return None
        lower, upper = facts.bits(op.operands[0]), facts.bits(op.operands[1])
        return None if lower is None else upper if upper is not None else NUMBER_BITS

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        lower, upper, step, *carried = operands
        block = op.regions[0].blocks[0]
        for number in range(int(lower), int(upper), int(step)):
            carried = machine.run(block, [lower.dtype.type(number), *carried])
        return carried

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        first, last, step, *carried = operands
        assert isinstance(first, Number) and isinstance(last, Number) and isinstance(step, Number)
        lower, upper, stride = map(reasoning.single, (first, last, step))
        # A loop that does not move on has no turns (the emitter sees to steps above zero).
        assert stride.interval[0] > 0, "the step of a loop is above zero"
        room = reasoning.choose(less(lower, upper), always(upper - lower), always(0))
        turns = reasoning.single(reasoning.quotient(room, step, "ceiling", op))
        [block] = op.regions[0].blocks

        def turn(number: Polynomial, variables: Sequence[Abstract]) -> Sequence[Abstract]:
            counter = lower + number * stride
            inside = less(counter, upper)
            # The counter never wraps: the emitter sees to bounds that leave room for a step.
            return reasoning.run(block, [always(counter), *variables], [inside], op)

        kinds = [v.type for v in op.results]
        return reasoning.repeated(carried, kinds, turn, turns, op)


class _InRange(OpRules):
    """What a loop counts, where that is not its own variable: with what is known of it."""

    name = "tile.in_range"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [operands[0]]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        counter, start, end = operands
        assert isinstance(counter, Number) and isinstance(start, Number) and isinstance(end, Number)
        number = reasoning.unwrapped(counter, _sums_of(op))
        first, last = map(reasoning.single, (start, end))
        is_inclusive = ir.BoolAttr(op.attributes["inclusive"]).value
        # The emitter sees to it: a turn of the loop is a number of the range.
        reasoning.know_here(at_least(number, first), op)
        reasoning.know_here(at_least(last, number) if is_inclusive else less(number, last), op)
        return [always(number)]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [operands[0]]


def _sums_of(op: ir.OpView) -> list[ir.OpView]:
    """What computes the number of a turn from the turn: what the emitter knows not to wrap."""
    loop = op.operation.parent
    turn = loop.regions[0].blocks[0].arguments[0]
    total = op.operands[0].owner
    parts = [total, *(v.owner for v in total.operands)] if _is_operation(total) else []
    made = [part.opview for part in parts if _is_operation(part)]
    products = [part for part in made if turn in part.operands]
    return [made[0], *products] if products else []


def _is_operation(owner: ir.Operation | ir.Block) -> bool:
    return not isinstance(owner, ir.Block)


class _While(OpRules):
    name = "scf.while"
    control = True
    loop = True

    def carried(self, op: ir.OpView) -> tuple[Carried, ...]:
        return carried_by_while(op)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return lower_while(op, operands, lowering)

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        before, after = (region.blocks[0] for region in op.regions)
        carried = list(operands)
        while True:
            # scf.condition hands over the condition, then what goes on.
            holds, *carried = machine.run(before, carried)
            if not holds:
                return carried
            carried = machine.run(after, carried)

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        before, after = (region.blocks[0] for region in op.regions)

        def turn(number: Polynomial, variables: Sequence[Abstract]) -> Sequence[Abstract]:
            condition, *passed = reasoning.run(before, variables, [], op)
            assert isinstance(condition, FORMULAS), "a condition is a truth value"
            return reasoning.run(after, passed, [condition], op)

        reasoning.repeated(operands, [v.type for v in op.operands], turn, None, op)
        return reasoning.opaque(op)


class _If(OpRules):
    name = "scf.if"
    control = True

    def carried(self, op: ir.OpView) -> tuple[Carried, ...]:
        return carried_by_if(op)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return lower_if(op, operands, lowering)

    def host(
        self, op: ir.OpView, number: int, host_of: Callable[[ir.Value], HostExpression]
    ) -> HostExpression | None:
        condition = host_of(op.operands[0])
        then, otherwise = (
            host_of(terminator_of(region.blocks[0]).operands[number]) for region in op.regions
        )
        if otherwise is False:
            return ("and", condition, then)
        if then is True:
            return ("or", condition, otherwise)
        return ("select", condition, then, otherwise)

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        [condition] = operands
        if np.ndim(condition):  # in a combiner that runs on whole arrays (`ops/whole_arrays.py`)
            sides = [machine.run(r.blocks[0], []) for r in op.regions if len(r.blocks)]
            return [np.where(condition, *pair) for pair in zip(*sides, strict=True)]
        region = op.regions[0 if condition else 1]
        return machine.run(region.blocks[0], []) if len(region.blocks) else []

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [condition] = operands
        assert isinstance(condition, FORMULAS), "a condition is a truth value"
        sides = [
            reasoning.run(region.blocks[0], [], [fact], op) if len(region.blocks) else []
            for region, fact in zip(op.regions, (condition, negated(condition)), strict=True)
        ]
        return [
            reasoning.joined(condition, yes, no, result)
            for yes, no, result in zip(*sides, op.results, strict=True)
        ]


class _Call(OpRules):
    name = "func.call"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return machine.call(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, operands)


class _Terminator(OpRules):
    """Hands its operands to the operation around it."""

    terminator = True

    def __init__(self, name: str) -> None:
        self.name = name

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return list(operands)

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        return list(operands)


# `gpu.yield` ends the blocks of our own operations, for which IRDL has no terminator.
TERMINATORS = frozenset({"scf.yield", "scf.condition", "func.return", "linalg.yield", "gpu.yield"})


_UNSIGNED = frozenset(e.name for e in ELEMENTS.values() if e.kind is Kind.UNSIGNED)


class _Function(OpRules):
    """The kernel itself; its arguments are what callers pass."""

    name = "func.func"

    def argument_bits(self, op: ir.OpView, argument: ir.Value, facts: Facts) -> int | None:
        slot = _slot(op, argument)
        return COUNT_BITS if slot is not None and slot["kind"].value == "extent" else None

    def argument_host(self, op: ir.OpView, argument: ir.Value) -> HostExpression | None:
        slot = _slot(op, argument)
        if slot is None or slot["kind"].value not in ("extent", "scalar"):
            return None
        name = str(slot["name"].value)
        is_unsigned = "element" in slot and slot["element"].value in _UNSIGNED
        return unsigned_scalar(argument.type, name) if is_unsigned else name


def _slot(function: ir.OpView, argument: ir.Value) -> ir.DictAttr | None:
    """What an argument of a kernel is; None of a helper's."""
    if "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[argument.arg_number])
    return ir.DictAttr(attributes["tile.slot"]) if "tile.slot" in attributes else None


RULES: tuple[OpRules, ...] = (
    _Function(),
    _For(),
    _InRange(),
    _While(),
    _If(),
    _Call(),
    *map(_Terminator, sorted(TERMINATORS)),
)
