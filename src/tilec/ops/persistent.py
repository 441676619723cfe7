"""Blocks that do several programs, one after the other: which ones, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from tilec.ir.dialects import arith, nvvm
from tilec.ops.cluster import rank
from tilec.ops.cluster_order import step_of, steps_of
from tilec.ops.fragments import i32
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.order import balanced, count_of, grouped
from tilec.ops.rules import OpRules


class _Number(OpRules):
    """A number (index) that is the same for all threads of the block."""

    def __init__(self, name: str, make: Callable[[Lowering], ir.Value]) -> None:
        self.name = name
        self._make = make

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        return [self._make(lowering)]


class _Program(OpRules):
    name = "warp.program"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [number] = operands
        assert isinstance(number, ir.Value)
        grid, rows, cluster = small(lowering.grid), lowering.rows_together, lowering.cluster
        [word] = small([number])
        if cluster is None and lowering.longest is not None:
            [blocks] = small([_step(lowering)])
            lowering.program = wide(balanced(word, blocks, grid, rows, lowering.longest))
            return []
        if cluster is None:
            lowering.program = wide(grouped(word, grid, rows))
            return []
        step = step_of(word, grid, rows, cluster, rank())
        lowering.program = wide(step.program)
        lowering.is_together, lowering.is_program = step.is_together, step.is_program
        return []


def register(read: Callable[[ir.Type], ir.Value]) -> ir.Value:
    """A special register of 32 bits, as index."""
    return _wide(read(ir.IntegerType.get_signless(32)))


def _wide(word: ir.Value) -> ir.Value:
    wide = arith.extui(ir.IntegerType.get_signless(64), word)
    return arith.index_cast(ir.IndexType.get(), wide)


# Launchers give kernels with roles no more programs than `NUMBERED_LIMIT`. So their numbers are
# words: a division of these takes a third of the instructions, and no branch.


def small(numbers: Sequence[ir.Value]) -> list[ir.Value]:
    """Numbers of programs (index), and extents of grids of them, as i32."""
    word = ir.IntegerType.get_signless(32)
    return [arith.index_cast(word, number) for number in numbers]


def wide(words: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
    """The same again as index."""
    return tuple(map(_wide, words))


# In a cluster, all blocks walk over its steps, of which each is a program of every block.


def _first(lowering: Lowering) -> ir.Value:
    return _clusters(nvvm.read_ptx_sreg_ctaid_x, lowering)


def _step(lowering: Lowering) -> ir.Value:
    return _clusters(nvvm.read_ptx_sreg_nctaid_x, lowering)


def _clusters(read: Callable[[ir.Type], ir.Value], lowering: Lowering) -> ir.Value:
    """A number of blocks along x as one of clusters: of the special registers ptxas divides.

    Assumes:  a persistent launch lies along x, in whole clusters (`artifact/geometry.py`)
    """
    word = read(ir.IntegerType.get_signless(32))
    if lowering.cluster is None:
        return _wide(word)
    bits = lowering.cluster.blocks.bit_length() - 1
    assert lowering.cluster.blocks == 1 << bits, "a cluster has a power of two of blocks"
    return _wide(arith.shrui(word, i32(bits)))


def _count(lowering: Lowering) -> ir.Value:
    if lowering.cluster is None:
        return _wide(count_of(small(lowering.grid)))
    return _wide(steps_of(small(lowering.grid), lowering.cluster))


RULES: tuple[OpRules, ...] = (
    _Number("warp.first_program", _first),
    _Number("warp.program_step", _step),
    _Number("warp.program_count", _count),
    _Program(),
)
