"""How a block with roles begins: who makes barriers in memory, and who waits for that.

What stands before the first copy delays all that the block does. So two warps that have nothing
else to do begin at once, while the others find out which program they do: the loader's first
thread has the hardware fetch the descriptions of tensors, a thread of the warp after it makes the
barriers and arrives for that warp. The roles wait, where they begin. In a cluster, the barriers of
all blocks are waited for.

    loader's warp:    prefetch maps                          | wait | copy ...
    the warp after:   make barriers, fence, arrive, arrive   |
    math warps:                                              | wait | get ...

The loader waits for that warp alone: math warps come later, for they wait for registers.

Source:   PTX ISA, "prefetch, prefetchu", "barrier", "barrier.cluster", "fence.mbarrier_init"
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, nvvm, scf
from tilec.layout import LANES
from tilec.ops.fragments import i32
from tilec.ops.lowering import Lowering, first_place

# The numbers of barriers: of the loader's warp, and of the math warps, whose teams have those
# between (`ops/roles.py`).
_OF_LOADER, _OF_MATH = 0, 15


@dataclass(frozen=True)
class Start:
    """Where what a block begins with goes.

    `places` is where addresses of barriers are computed, `making` where one thread makes barriers.
    `waits_for_cluster`: until all blocks of the cluster have made theirs.
    """

    places: ir.InsertionPoint
    making: ir.InsertionPoint
    waits_for_cluster: bool
    math_threads: int


def begin(lowering: Lowering, maps: Iterable[ir.Value], *, waits_for_cluster: bool) -> Start:
    """The start of a block whose loader is the warp after all math warps."""
    thread, loader = lowering.thread, LANES * lowering.warps * lowering.teams
    fetch = scf.IfOp(_is(thread, loader))
    with ir.InsertionPoint(fetch.then_block):
        for described in maps:
            nvvm.prefetch(described, tensormap=True)
        scf.yield_([])
    places = first_place()
    if waits_for_cluster:
        making = _by_one(thread, loader + LANES)
        # The fence before it is all the order that is needed.
        nvvm.cluster_arrive_relaxed(aligned=ir.UnitAttr.get())
        return Start(places, making, waits_for_cluster, loader)
    warp = arith.shrui(thread, i32(LANES.bit_length() - 1))
    branch = scf.IfOp(_is(warp, loader // LANES + 1))
    with ir.InsertionPoint(branch.then_block):
        making = _by_one(thread, loader + LANES)
        nvvm.barrier_arrive(i32(2 * LANES), barrier_id=i32(_OF_LOADER))
        nvvm.barrier_arrive(i32(loader + LANES), barrier_id=i32(_OF_MATH))
        scf.yield_([])
    return Start(places, making, waits_for_cluster, loader)


def await_start(start: Start, *, is_loader: bool) -> None:
    """Until all barriers are there: the loader's warp, or all math warps."""
    if start.waits_for_cluster:
        nvvm.cluster_wait(aligned=ir.UnitAttr.get())
        return
    number = _OF_LOADER if is_loader else _OF_MATH
    threads = LANES + (LANES if is_loader else start.math_threads)
    ir.Operation.create(
        "nvvm.barrier",
        operands=[i32(number), i32(threads)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, 0])},
    )


def _by_one(thread: ir.Value, number: int) -> ir.InsertionPoint:
    """Where what one thread does before the barriers are fenced goes."""
    branch = scf.IfOp(_is(thread, number))
    with ir.InsertionPoint(branch.then_block):
        making = first_place()
        nvvm.fence_mbarrier_init()
        scf.yield_([])
    return making


def _is(number: ir.Value, other: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, number, i32(other))
