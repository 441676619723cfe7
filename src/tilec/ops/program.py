"""The program's place in the grid.

Also what a kernel says once: its arguments as views, and its preconditions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from mlir import ir

from tilec.integers.formula import FORMULAS
from tilec.integers.number import Number, always
from tilec.integers.polynomial import Polynomial, number
from tilec.ops import uses
from tilec.ops.abstract import Abstract, AbstractView, Reasoning
from tilec.ops.build import integer, known_integer, make
from tilec.ops.call import Call, Emission, Form, Operation, Value
from tilec.ops.facts import COUNT_BITS
from tilec.ops.fragments import index
from tilec.ops.lowering import Lowered, Lowering, View
from tilec.ops.rules import (
    Claim,
    DataOf,
    Datum,
    Divided,
    Facts,
    Machine,
    OpRules,
    Precondition,
)
from tilec.types import USIZE, ArrayType, Type, scalar

GRID_RANK = 3


class _Triple(Operation):
    """Three numbers, one an axis of the grid."""

    form = Form.FUNCTION

    def __init__(self, name: str, op: str, summary: str) -> None:
        self.name, self.op, self.summary = name, op, summary
        self.signature = f"{name}()"

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 0)
        return ArrayType(scalar(USIZE), GRID_RANK)

    def emit(self, emission: Emission) -> Value:
        index = ir.IndexType.get()
        return tuple(make(self.op, index, axis=integer(axis)) for axis in range(GRID_RANK))


OPERATIONS: tuple[Operation, ...] = (
    _Triple("program_id", "tile.program_id", "The index of this program in the grid."),
    _Triple("num_programs", "tile.num_programs", "The extents of the grid."),
)


@dataclass(frozen=True)
class _OfGrid(OpRules):
    """One number an axis of the grid; axes that the grid lacks have the number `beyond`."""

    of_program = True

    name: str
    beyond: int
    of_machine: Callable[[Machine], tuple[int, ...]]
    of_thread: Callable[[Lowering], tuple[ir.Value, ...]]
    of_reasoning: Callable[[Reasoning, int], Polynomial]
    is_coordinate: bool

    def program_axes(self, op: ir.OpView, of_operands: frozenset[int]) -> frozenset[int] | None:
        return frozenset((self._axis(op),)) if self.is_coordinate else frozenset()

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        numbers, axis = self.of_machine(machine), self._axis(op)
        number = numbers[axis] if axis < len(numbers) else self.beyond
        return [np.asarray(number, np.int64)]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        return [always(self.of_reasoning(reasoning, self._axis(op)))]

    def bits(self, op: ir.OpView, facts: Facts) -> int | None:
        return COUNT_BITS

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        numbers, axis = self.of_thread(lowering), self._axis(op)
        return [numbers[axis] if axis < len(numbers) else index(self.beyond)]

    def _axis(self, op: ir.OpView) -> int:
        return int(ir.IntegerAttr(op.attributes["axis"]).value)


class _Grid(OpRules):
    """What the whole kernel says once, not each program: read before the first program runs."""

    name = "tile.grid"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return []

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        reasoning.set_grid([x for x in operands if isinstance(x, Number)])
        return []

    def grid(self, op: ir.OpView, operands: Sequence[Lowered]) -> Sequence[ir.Value] | None:
        return list(operands)

    def host_grid(self, op: ir.OpView, facts: Facts) -> Sequence[Divided] | None:
        return [(value, 1) for value in op.operands]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return []


class _Claim(OpRules):
    """`tile.assume` (`requires!`) and `tile.assert` (`assert!`)."""

    def __init__(self, name: str, word: str) -> None:
        self.name, self.word = name, word

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        if not operands[0]:
            text = ir.StringAttr(op.attributes["text"]).value
            machine.fail(op, f"`{self.word}!({text})` does not hold")
        return []

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [condition] = operands
        # What `assert!` says is checked by no build but a checked one.
        if self.word == "requires" and isinstance(condition, FORMULAS):
            reasoning.assume(condition, op)
        return []

    def precondition(self, op: ir.OpView) -> Precondition | None:
        if self.word != "requires":
            return None
        return Precondition(op.operands[0], ir.StringAttr(op.attributes["text"]).value)

    def claims(self, op: ir.OpView, data_of: DataOf) -> Sequence[Claim]:
        if self.word == "requires":  # launchers check it
            return ()
        text = ir.StringAttr(op.attributes["text"]).value
        return [Claim(op.operands[0], f"{self.word}!({text})", is_written=True)]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return []


_UNKNOWN = ir.ShapedType.get_dynamic_size()


class _ReinterpretCast(OpRules):
    """A kernel's pointer as a view: the array itself, whose extents and strides it must have."""

    name = "memref.reinterpret_cast"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        [view, *numbers] = operands
        sizes = _mixed(op.attributes["static_sizes"], op, 1, numbers, view.extents)
        assert sizes == view.extents, f"extents {sizes} of a view of {view.extents}"
        return [view]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [base, *numbers] = operands
        assert isinstance(base, AbstractView), "a kernel's pointer is a view"
        dynamic = iter(x for x in numbers if isinstance(x, Number))
        extents = tuple(
            reasoning.single(next(dynamic)) if size == _UNKNOWN else number(size)
            for size in op.attributes["static_sizes"]
        )
        return [reasoning.tensor(base, extents)]

    def extent(self, op: ir.OpView, axis: int, facts: Facts) -> ir.Value | int | None:
        static = list(op.attributes["static_sizes"])
        if static[axis] != _UNKNOWN:
            return int(static[axis])
        return op.operands[1 + static[:axis].count(_UNKNOWN)]

    def extent_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        extent = self.extent(op, axis, facts)
        return extent if isinstance(extent, int) else facts.divisor(extent)

    def start_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return 0

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        base, *numbers = operands
        assert isinstance(base, View)
        static_sizes = list(op.attributes["static_sizes"])
        static_strides = list(op.attributes["static_strides"])
        dynamic = iter(numbers)
        sizes = [next(dynamic) if s == _UNKNOWN else index(s) for s in static_sizes]
        strides = [next(dynamic) if s == _UNKNOWN else index(s) for s in static_strides]
        contiguous = static_strides.index(1) if 1 in static_strides else None
        return [
            replace(
                base,
                extents=tuple(sizes),
                strides=tuple(strides),
                starts=tuple(index(0) for _ in sizes),
                contiguous=contiguous,
            )
        ]


def _mixed(
    static: ir.Attribute, op: ir.OpView, _: int, numbers: Sequence[Datum], extents: tuple[int, ...]
) -> tuple[int, ...]:
    """Static sizes with the dynamic ones, which stand after the offsets among the operands."""
    dynamic = iter(numbers[op.attributes["operandSegmentSizes"][1] :])
    unknown = ir.ShapedType.get_dynamic_size()
    return tuple(int(next(dynamic)) if size == unknown else size for size in static)


class _Dim(OpRules):
    name = "memref.dim"

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        view, axis = operands[0], known_integer(op.operands[1])
        assert isinstance(view, AbstractView) and axis is not None, "an axis is a constant"
        if view.ids:  # a part is clipped
            return reasoning.opaque(op)
        return [always(view.extents[view.axes[axis]])]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        view, axis = operands
        return [np.asarray(view.extents[int(axis)], np.int64)]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        view = operands[0]
        axis = known_integer(op.operands[1])
        assert isinstance(view, View) and axis is not None, "an axis is a constant"
        return [view.extents[axis]]


RULES: tuple[OpRules, ...] = (
    _OfGrid(
        "tile.program_id",
        0,
        lambda m: m.program,
        lambda t: t.program,
        lambda r, axis: r.program(axis),
        is_coordinate=True,
    ),
    _OfGrid(
        "tile.num_programs",
        1,
        lambda m: m.grid,
        lambda t: t.grid,
        lambda r, axis: r.programs(axis),
        is_coordinate=False,
    ),
    _Grid(),
    _Claim("tile.assume", "requires"),
    _Claim("tile.assert", "assert"),
    _ReinterpretCast(),
    _Dim(),
)
