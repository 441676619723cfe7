"""Blocks that share what they copy: where they meet, and which of them has a program.

Source:   PTX ISA, "barrier.cluster", "mapa"; CUDA C++ Programming Guide, "Thread Block Clusters"
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import arith, nvvm
from tilec.layout.neighbours import Cluster, Sharers
from tilec.ops.fragments import i32
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import OpRules


class _Meet(OpRules):
    name = "warp.meet"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        # All have arrived where the block begins, and wait where its roles do (`ops/start.py`).
        assert lowering.start is not None and lowering.start.waits_for_cluster
        return []


class _IsProgram(OpRules):
    name = "warp.is_program"
    of_program = True

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        assert lowering.is_program is not None, "a program was said"
        return [lowering.is_program]


def rank() -> ir.Value:
    """The number (i32) of this block in its cluster."""
    return nvvm.read_ptx_sreg_cluster_ctarank(ir.IntegerType.get_signless(32))


def number_among(sharers: Sharers) -> ir.Value:
    """Which of those that share a tile this block is (i32)."""
    cluster, found = sharers.cluster, None
    if not sharers.others:
        return rank()
    for side in sharers.along:
        own = _place(cluster, side)
        scaled = own if found is None else arith.muli(found, i32(cluster.sides[side].blocks))
        found = own if found is None else arith.addi(scaled, own)
    assert found is not None, "somebody shares it"
    return found


def all_among(sharers: Sharers) -> ir.Value:
    """Those that share a tile with this block (i16, a bit for each rank)."""
    short, cluster = ir.IntegerType.get_signless(16), sharers.cluster
    if not sharers.others:
        return arith.constant(short, sharers.first_ranks)
    first = None
    for side in sharers.others:
        further = arith.muli(_place(cluster, side), i32(cluster.steps[side]))
        first = further if first is None else arith.addi(first, further)
    return arith.trunci(short, arith.shli(i32(sharers.first_ranks), first))


def _place(cluster: Cluster, side: int) -> ir.Value:
    """Where this block is along a side of its cluster (i32)."""
    place = arith.divui(rank(), i32(cluster.steps[side]))
    return arith.remui(place, i32(cluster.sides[side].blocks))


def in_block(barrier: ir.Value, thread: ir.Value, blocks: int) -> ir.Value:
    """Where a barrier (ptr<3>) is in the block that this thread (i32) of a warpgroup speaks to."""
    other = arith.andi(thread, i32(blocks - 1))
    return nvvm.mapa(ir.Type.parse("!llvm.ptr<7>"), barrier, other)


RULES: tuple[OpRules, ...] = (_Meet(), _IsProgram())
