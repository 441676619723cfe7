"""Parts: their place in the grid, and smaller parts of them.

The markers of moves and borrows are here too, for they change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.integers.number import Number, always
from tilec.ir.dialects import arith
from tilec.ir.types import part_type, view_facts
from tilec.ops import uses
from tilec.ops.abstract import Abstract, AbstractView, Reasoning
from tilec.ops.build import integer, integer_list, known_integer, make
from tilec.ops.call import Call, Emission, Form, Operation, Receiver
from tilec.ops.facts import COUNT_BITS
from tilec.ops.fragments import index
from tilec.ops.indices import index_values
from tilec.ops.lowering import Lowered, Lowering, View, within_reach
from tilec.ops.rules import Datum, Divided, Facts, Machine, OpRules
from tilec.types import USIZE, PartType, Type, scalar


@dataclass(frozen=True)
class _PartNumber(Operation):
    """A number of the part along a constant axis."""

    name: str
    op: str
    summary: str
    form: Form = Form.METHOD
    receiver: Receiver | None = Receiver.PART

    @property
    def signature(self) -> str:  # type: ignore[override]
        return f"part.{self.name}(axis)"

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2)
        part, argument = call.arguments[0].type, call.arguments[1]
        assert isinstance(part, PartType)
        axis = uses.constant_axis(argument.constant)
        if axis is None:
            message = f"`{self.name}` takes an axis that is a constant, got `{argument.type}`"
            raise uses.refuse("E0203", message, Label(argument.span))
        if not -part.rank <= axis < part.rank:
            raise uses.bad_axis(call, part.rank, axis, argument.span)
        return scalar(USIZE)

    def emit(self, emission: Emission) -> ir.Value:
        part, axis = emission.operands
        kind = emission.types[0]
        assert isinstance(kind, PartType)
        known = known_integer(axis)
        assert known is not None, "the axis of a part is a constant"
        return make(self.op, ir.IndexType.get(), part, axis=integer(known % kind.rank))


class _Sub(Operation):
    name = "sub"
    form = Form.METHOD
    receiver = Receiver.PART
    signature = "part.sub::<…>([i, …])"
    summary = "The smaller part at a tile index of this one, clipped to it; borrows it."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 2, None)
        part = call.arguments[0].type
        assert isinstance(part, PartType)
        block = uses.extents(call)
        indices = uses.index_types(call, 1)
        if not len(block) == len(indices) == part.rank:
            wrong = call.arguments[1].span if len(indices) != part.rank else call.name_span
            raise uses.refuse(
                "E0303",
                f"expected {part.rank} extents and indices, got {len(block)} and {len(indices)}",
                Label(wrong),
                Label(call.arguments[0].span, f"this is `{part}`"),
            )
        return PartType(part.tensor, block)

    def emit(self, emission: Emission) -> ir.Value:
        assert isinstance(emission.result, PartType)
        block = integer_list(emission.result.block)
        indices = index_values(emission, 1)
        return make(
            "tile.sub", part_type(emission.result), emission.operands[0], *indices, block=block
        )


OPERATIONS: tuple[Operation, ...] = (
    _PartNumber("id", "tile.part_id", "The index of the part among those of its tensor."),
    _PartNumber("offset", "tile.part_offset", "The first element of the part in its tensor."),
    _Sub(),
)


def _block(op: ir.OpView) -> tuple[int, ...]:
    return tuple(ir.IntegerAttr(extent).value for extent in ir.ArrayAttr(op.attributes["block"]))


def _axis_of(op: ir.OpView) -> int:
    return int(ir.IntegerAttr(op.attributes["axis"]).value)


def _tile_of(view: View, ids: Sequence[ir.Value], block: Sequence[int], *, begins: bool) -> View:
    """The tile of `block` at these tile indices of a view, clipped to it.

    `begins`: it certainly begins in the view.
    """
    sizes = [index(size) for size in block]
    starts = [arith.muli(i, size) for i, size in zip(ids, sizes, strict=True)]
    left = [arith.subi(extent, start) for extent, start in zip(view.extents, starts, strict=True)]
    extents = [arith.minsi(size, rest) for size, rest in zip(sizes, left, strict=True)]
    if not begins:
        extents = [arith.maxsi(extent, index(0)) for extent in extents]
    origins = [arith.addi(a, b) for a, b in zip(view.starts, starts, strict=True)]
    return replace(view, starts=tuple(origins), extents=tuple(extents), ids=tuple(ids))


class _TilePart(OpRules):
    name = "tile.part"
    of_program = True

    def extent_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        # min(block, extent - id * block) is a multiple of what divides both.
        return gcd(_block(op)[axis], facts.extent_divisor(op.operands[0], axis))

    def start_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return _block(op)[axis]

    def host_grid(self, op: ir.OpView, facts: Facts) -> Sequence[Divided] | None:
        tensor = op.operands[0]
        extents = [facts.extent(tensor, axis) for axis in range(len(_block(op)))]
        return [(e, size) for e, size in zip(extents, _block(op), strict=True) if e is not None]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        [view] = operands
        block = _block(op)
        return [view.tile(machine.program[: len(block)], block)]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [view] = operands
        assert isinstance(view, AbstractView), "a view is known"
        block = _block(op)
        reasoning.is_cut(view, block, op)
        ids = [reasoning.program(axis) for axis in range(len(block))]
        starts = [i.scaled(size) for i, size in zip(ids, block, strict=True)]
        return [view.tile([always(i) for i in ids], starts, block)]

    def grid(self, op: ir.OpView, operands: Sequence[Lowered]) -> Sequence[ir.Value] | None:
        [view] = operands
        assert isinstance(view, View)
        return [
            arith.ceildivui(extent, index(size))
            for extent, size in zip(view.extents, _block(op), strict=True)
        ]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [view] = operands
        assert isinstance(view, View)
        # A grid of higher rank, of another part, has extent 1 along the further axes. In each axis
        # there are as many programs as tiles that begin in the tensor.
        return [_tile_of(view, lowering.program[: view.rank], _block(op), begins=True)]


class _TileSub(OpRules):
    name = "tile.sub"

    def extent_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return gcd(
            _block(op)[axis],
            facts.extent_divisor(op.operands[0], axis),
            self._offset(op, axis, facts),
        )

    def start_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return gcd(facts.start_divisor(op.operands[0], axis), self._offset(op, axis, facts))

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        view, *numbers = operands
        assert isinstance(view, AbstractView), "a view is known"
        ids = [x for x in numbers if isinstance(x, Number)]
        starts = [
            view.starts[axis] + reasoning.single(i).scaled(size)
            for axis, i, size in zip(view.axes, ids, _block(op), strict=True)
        ]
        return [view.tile(ids, starts, _block(op))]

    def _offset(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return facts.divisor(op.operands[1 + axis]) * _block(op)[axis]

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        part, *indices = operands
        return [part.tile(tuple(int(i) for i in indices), _block(op))]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        part, *indices = operands
        assert isinstance(part, View)
        found = _tile_of(part, [within_reach(i) for i in indices], _block(op), begins=False)
        # At a negative index there is nothing of the part.
        below = arith.CmpIPredicate.slt
        extents = [
            arith.select(arith.cmpi(below, i, index(0)), index(0), extent)
            for i, extent in zip(indices, found.extents, strict=True)
        ]
        return [replace(found, extents=tuple(extents))]


def _is_of_grid(part: ir.Value) -> bool:
    """Whether it is the part that the program's index chose, so that it lies in its tensor."""
    return not isinstance(part.owner, ir.Block) and part.owner.name == "tile.part"


class _OfAxis(OpRules):
    """Where the part is along one axis."""

    def program_axes(self, op: ir.OpView, of_operands: frozenset[int]) -> frozenset[int] | None:
        return frozenset((_axis_of(op),)) if _is_of_grid(op.operands[0]) else of_operands


class _PartId(_OfAxis):
    name = "tile.part_id"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.asarray(operands[0].index[_axis_of(op)], np.int64)]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [part] = operands
        assert isinstance(part, AbstractView), "a view is known"
        return [part.ids[_axis_of(op)]]

    def bits(self, op: ir.OpView, facts: Facts) -> int | None:
        return COUNT_BITS if _is_of_grid(op.operands[0]) else None

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [part] = operands
        assert isinstance(part, View)
        return [part.ids[_axis_of(op)]]


class _PartOffset(_OfAxis):
    name = "tile.part_offset"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [np.asarray(operands[0].origin[_axis_of(op)], np.int64)]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        [part] = operands
        assert isinstance(part, AbstractView), "a view is known"
        start = always(part.starts[part.axes[_axis_of(op)]])
        return [reasoning.wrapped(start, op.results[0].type, op)]

    def bits(self, op: ir.OpView, facts: Facts) -> int | None:
        return COUNT_BITS if _is_of_grid(op.operands[0]) else None

    def divisor(self, op: ir.OpView, facts: Facts) -> int:
        if not _is_of_grid(op.operands[0]):
            return 1
        block = view_facts(op.operands[0].type).block
        assert block is not None, "a part has a block"
        return block[_axis_of(op)]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [part] = operands
        assert isinstance(part, View)
        return [part.starts[_axis_of(op)]]


class _SameView(OpRules):
    """Markers for the ownership checks, and casts that only forget extents."""

    def extent(self, op: ir.OpView, axis: int, facts: Facts) -> ir.Value | int | None:
        return facts.extent(op.operands[0], axis)

    def extent_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return facts.extent_divisor(op.operands[0], axis)

    def start_divisor(self, op: ir.OpView, axis: int, facts: Facts) -> int:
        return facts.start_divisor(op.operands[0], axis)

    def __init__(self, name: str) -> None:
        self.name = name

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return [operands[0]]

    def abstract(
        self, op: ir.OpView, operands: Sequence[Abstract], reasoning: Reasoning
    ) -> Sequence[Abstract]:
        return [operands[0]]

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [operands[0]]


RULES: tuple[OpRules, ...] = (
    _TilePart(),
    _TileSub(),
    _PartId(),
    _PartOffset(),
    *map(_SameView, ("tile.move", "tile.borrow", "memref.cast")),
)
