"""One program of a kernel, executed operation by operation.

Each block is read once into steps, so that running it again asks MLIR for nothing but attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from mlir import ir

from tilec.interpret.contract import BrokenContract
from tilec.interpret.memory import View
from tilec.ops.control import TERMINATORS
from tilec.ops.formats import dtype_of, shape_of
from tilec.ops.registry import rules
from tilec.ops.rules import Datum, OpRules


@dataclass(frozen=True)
class _Kind:
    """What a result must be: nothing to check for views; any shape where scalars are many."""

    dtype: np.dtype[Any] | None
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class _Step:
    op: ir.OpView
    rule: OpRules
    operands: tuple[int, ...]
    results: tuple[int, ...]
    kinds: tuple[_Kind, ...]
    is_last: bool


@dataclass(frozen=True)
class _Block:
    """A block, read: the numbers of its arguments, the values of its constants, the rest."""

    arguments: tuple[int, ...]
    constants: Mapping[int, Datum]
    steps: tuple[_Step, ...]


@dataclass
class Code:
    """The blocks of a module as steps; values are numbered. Programs and launches share it."""

    functions: dict[str, ir.Block]
    numbers: dict[ir.Value, int] = field(default_factory=dict)
    blocks: dict[ir.Block, _Block] = field(default_factory=dict)

    def number(self, value: ir.Value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def block(self, block: ir.Block, machine: Machine) -> _Block:
        """A block as steps; its constants are evaluated once, by the first machine that asks."""
        if block not in self.blocks:
            arguments = tuple(map(self.number, block.arguments))
            constants: dict[int, Datum] = {}
            steps = []
            for step in map(self.step, block.operations):
                if step.rule.constant:
                    results = step.rule.interpret(step.op, [], machine)
                    constants.update(zip(step.results, results, strict=True))
                else:
                    steps.append(step)
            self.blocks[block] = _Block(arguments, constants, tuple(steps))
        return self.blocks[block]

    def step(self, op: ir.OpView) -> _Step:
        name = op.operation.name
        assert name in rules(), f"the CPU execution does not know `{name}`"
        return _Step(
            op,
            rules()[name],
            tuple(map(self.number, op.operands)),
            tuple(map(self.number, op.results)),
            tuple(_kind(result.type) for result in op.results),
            name in TERMINATORS,
        )


def _kind(value_type: ir.Type) -> _Kind:
    if isinstance(value_type, ir.MemRefType):
        return _Kind(None, None)
    is_tile = isinstance(value_type, ir.RankedTensorType)
    return _Kind(dtype_of(value_type), shape_of(value_type) if is_tile else None)


def code_of(function: ir.OpView) -> Code:
    """The code of a kernel, and of the helpers of its module that it may call."""
    module = function.operation.parent
    functions = [function] if module is None else module.regions[0].blocks[0].operations
    return Code(
        {
            ir.StringAttr(f.attributes["sym_name"]).value: f.regions[0].blocks[0]
            for f in functions
            if f.operation.name == "func.func"
        }
    )


@dataclass
class Machine:
    """What one program knows; a rule asks it to run the blocks of its operation."""

    code: Code
    program: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()
    values: dict[int, Datum] = field(default_factory=dict)

    def run(self, block: ir.Block, arguments: Sequence[Datum]) -> list[Datum]:
        """Execute a block; gives what its terminator hands over."""
        read = self.code.block(block, self)
        self.values.update(read.constants)
        for place, argument in zip(read.arguments, arguments, strict=True):
            self.values[place] = argument if isinstance(argument, View) else np.asarray(argument)
        for step in read.steps:
            results = self.execute(step)
            if step.is_last:
                return results
        return []

    def execute(self, step: _Step) -> list[Datum]:
        operands = [self.values[place] for place in step.operands]
        results = step.rule.interpret(step.op, operands, self)
        if step.is_last:
            return results
        for place, kind, result in zip(step.results, step.kinds, results, strict=True):
            self.values[place] = _checked(step, kind, result)
        return results

    def evaluate(self, value: ir.Value) -> Datum:
        """A value of the entry block that depends on nothing but arguments, ahead of time."""
        place = self.code.number(value)
        if place not in self.values:
            step = self.code.step(value.owner.opview)
            for needed in _needed(step.op):
                self.evaluate(needed)
            self.execute(step)
        return self.values[place]

    def call(self, function: str, arguments: Sequence[Datum]) -> list[Datum]:
        """Execute a function of the module; gives its results."""
        return self.run(self.code.functions[function], arguments)

    def fail(self, op: ir.OpView, message: str) -> NoReturn:
        """End the execution with what does not hold."""
        raise BrokenContract(message, op.location)


def _needed(op: ir.OpView) -> list[ir.Value]:
    """The values from outside that an operation and its regions use."""
    inside: set[ir.Value] = set()
    used = list(op.operands)
    pending = [op]
    while pending:
        for region in pending.pop().operation.regions:
            for block in region.blocks:
                inside.update(block.arguments)
                for inner in block.operations:
                    inside.update(inner.results)
                    used += inner.operands
                    pending.append(inner)
    return [value for value in used if value not in inside]


def _checked(step: _Step, kind: _Kind, result: Datum) -> Datum:
    if kind.dtype is None:
        return result
    array = np.asarray(result)
    name = step.op.operation.name
    assert array.dtype == kind.dtype, f"{name} gave {array.dtype}, its type says {kind.dtype}"
    assert kind.shape in (None, array.shape), f"{name} gave {array.shape}, expected {kind.shape}"
    return array
