"""Tiles that are computed where they leave the kernel, a few registers at a time.

A *pending* fragment is none yet: it is a way to emit registers of it, with what they are computed
of. Where a tile leaves box by box, each box asks for its own ones. So a chain of element-wise work
between sums and a store holds what one box needs, not the whole tile at each of its steps, and
loads begin a box ahead of where they are needed.

Which operations may wait so, `waiting` tells by the flow of data, and `OpRules.may_wait`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mlir import ir

from tilec.ops.encoding import layout_of
from tilec.ops.fragments import select_registers

if TYPE_CHECKING:
    from tilec.ops.lowering import Lowered, Lowering
    from tilec.ops.rules import OpRules


class Pending:
    """Registers of a tile that are emitted when they are asked for, each set of them once."""

    def __init__(
        self,
        make: Callable[[Sequence[int]], ir.Value],
        begin: Callable[[Sequence[int]], None],
    ) -> None:
        """`make` emits registers; `begin` what takes long before it gives them: loads."""
        self._make, self._begin = make, begin
        self._location = ir.Location.current
        self._made: dict[tuple[int, ...], ir.Value] = {}

    def of(self, registers: Sequence[int]) -> ir.Value:
        """A fragment of these registers."""
        wanted = tuple(registers)
        if wanted not in self._made:
            with self._location:
                self._made[wanted] = self._make(wanted)
        return self._made[wanted]

    def begin(self, registers: Sequence[int]) -> None:
        """Have what these registers need from memory be under way."""
        self._begin(registers)


def registers_of(fragment: Lowered, registers: Sequence[int]) -> ir.Value:
    """A fragment of some registers of a tile, whether it is there yet or not."""
    if isinstance(fragment, Pending):
        return fragment.of(registers)
    assert isinstance(fragment, ir.Value), "tiles are in registers"
    return select_registers(fragment, registers)


def begin(fragment: Lowered, registers: Sequence[int]) -> None:
    """As `Pending.begin`; of what is there, nothing is to begin."""
    if isinstance(fragment, Pending):
        fragment.begin(registers)


def element_by_element(
    rule: OpRules, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
) -> Pending:
    """What has each register of its one result of the same ones of its operands."""
    tiles = [isinstance(value.type, ir.RankedTensorType) for value in op.operands]

    def make(registers: Sequence[int]) -> ir.Value:
        pieces = [
            registers_of(operand, registers) if is_tile else operand
            for operand, is_tile in zip(operands, tiles, strict=True)
        ]
        with lowering.in_piece(len(registers)):
            [result] = rule.lower(op, pieces, lowering)
        assert isinstance(result, ir.Value)
        return result

    def begin_all(registers: Sequence[int]) -> None:
        for operand in operands:
            begin(operand, registers)

    return Pending(make, begin_all)


def selected(fragment: Lowered, source: Sequence[int]) -> Pending:
    """The tile whose register i is register `source[i]` of another one."""

    def make(registers: Sequence[int]) -> ir.Value:
        wanted = [source[register] for register in registers]
        held = sorted(set(wanted))
        places = {register: place for place, register in enumerate(held)}
        piece = registers_of(fragment, held)
        return select_registers(piece, [places[register] for register in wanted])

    def begin_source(registers: Sequence[int]) -> None:
        begin(fragment, sorted({source[register] for register in registers}))

    return Pending(make, begin_source)


def waiting(
    ends: Sequence[ir.OpView],
    may_wait: Callable[[ir.OpView], bool],
    is_early: Callable[[ir.OpView], bool],
) -> set[ir.Operation]:
    """The operations whose results are needed only where tiles are taken a few registers at a time.

    `ends` take tiles so; all that need a result must stand in one block. Operations stand there, or
    before branches around it. `is_early`: it is to be begun where it stands.
    """
    place: dict[ir.Operation, ir.Block] = {end.operation: end.operation.block for end in ends}
    left = [(value, end.operation.block) for end in ends for value in end.operands]
    while left:
        value, block = left.pop()
        if isinstance(value.owner, ir.Block) or value.owner.operation in place:
            continue
        op = value.owner.opview
        users = [place.get(use.owner.operation) for use in value.uses]
        if len(op.results) != 1 or any(user is None or user != block for user in users):
            continue
        if is_early(op) or not may_wait(op) or not _is_before(op, block):
            continue
        place[op.operation] = block
        left += [(operand, block) for operand in op.operands]
    return set(place)


def _is_before(op: ir.OpView, block: ir.Block) -> bool:
    """Whether an operation stands in a block, or in one around branches around it."""
    while op.operation.block != block:
        around = block.owner
        if around.name != "scf.if":
            return False
        block = around.operation.block
    return True


def has_one_layout(op: ir.OpView) -> bool:
    """Whether the one result of an operation, and all tiles it takes, are held alike."""
    tiles = [*op.results, *(v for v in op.operands if isinstance(v.type, ir.RankedTensorType))]
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    return len({layout_of(value.type) for value in tiles}) == 1
