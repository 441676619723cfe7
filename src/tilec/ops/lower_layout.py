"""A change of layout on a GPU: registers renamed, shuffles, or shared memory, as its plan says."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from tilec.layout.conversion import ConversionPlan, RegisterPermutation
from tilec.layout.shared_memory import SharedMemory
from tilec.layout.shuffle import Shuffle, Swap
from tilec.ops.between_threads import (
    from_memory,
    read_shared,
    shuffle_from,
    to_memory,
    write_shared,
)
from tilec.ops.lowering import LANES, Lowering, bit_width, i32, in_memory


def lower_conversion(
    plan: ConversionPlan, registers: Sequence[ir.Value], lowering: Lowering
) -> list[ir.Value]:
    """The target's registers, from the source's."""
    match plan:
        case RegisterPermutation(order):
            return [registers[r] for r in order]
        case Shuffle():
            return _shuffle(plan, registers, lowering)
        case SharedMemory():
            return _through_shared(plan, registers, lowering)


def _shuffle(plan: Shuffle, registers: Sequence[ir.Value], lowering: Lowering) -> list[ir.Value]:
    offered = _swapped(plan.gather, registers, lowering)
    values = []
    for step in plan.rounds:
        if plan.is_move(step):
            values.append(offered[step.register])
            continue
        lane = lowering.thread_number((*plan.lane, *plan.warp))
        if step.lane_xor:
            lane = arith.xori(lane, i32(step.lane_xor))
        values.append(shuffle_from(offered[step.register], lane))
    return _swapped(plan.scatter, [values[n] for n in plan.placement], lowering)


def _swapped(
    swaps: Sequence[Swap], registers: Sequence[ir.Value], lowering: Lowering
) -> list[ir.Value]:
    found = list(registers)
    for swap in swaps:
        mask = swap.lane_mask | swap.warp_mask << (LANES.bit_length() - 1)
        parity = lowering.thread_number(
            tuple(mask >> bit & 1 for bit in range(LANES.bit_length() - 1 + _warp_bits(lowering)))
        )
        swaps_here = arith.cmpi(arith.CmpIPredicate.ne, parity, i32(0))
        found = [
            arith.select(swaps_here, found[r ^ swap.register_xor], found[r])
            for r in range(len(found))
        ]
    return found


def _warp_bits(lowering: Lowering) -> int:
    return lowering.warps.bit_length() - 1


def _through_shared(
    plan: SharedMemory, registers: Sequence[ir.Value], lowering: Lowering
) -> list[ir.Value]:
    element = registers[0].type
    buffer = lowering.shared_bytes(plan.elements * bit_width(element) // 8)
    write_shared(buffer, plan.write, [to_memory(r) for r in registers], lowering)
    if plan.warp_local:
        lowering.warp_barrier()
    else:
        lowering.barrier()
    read = read_shared(buffer, plan.read, in_memory(element), lowering)
    return [from_memory(read[r][0], element) for r in sorted(read)]
