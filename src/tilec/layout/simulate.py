"""What the plans mean: each one executed with NumPy, thread by thread.

The code generator's instructions must do the same. Data is an array [warps, lanes, registers].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from tilec.layout.conversion import ConversionPlan, RegisterPermutation
from tilec.layout.layout import LANES
from tilec.layout.reduction import Exchange, ReductionPlan
from tilec.layout.shared_memory import SharedMemory
from tilec.layout.shuffle import Shuffle, Swap

Data = npt.NDArray[Any]
Combine = Callable[[Data, Data], Data]


def simulate_conversion(plan: ConversionPlan, source: Data) -> Data:
    """The registers of the target after the conversion, [warps, lanes, target registers]."""
    match plan:
        case RegisterPermutation():
            return source[..., list(plan.registers)]
        case Shuffle():
            return _shuffled(plan, source)
        case SharedMemory():
            return _through_memory(plan, source)


def _shuffled(plan: Shuffle, source: Data) -> Data:
    gathered = _swapped(plan.gather, source)
    values = []
    for step in plan.rounds:
        value = np.empty_like(source[..., 0])
        for warp, lane in np.ndindex(*value.shape):
            value[warp, lane] = gathered[warp, plan.lane_of(step, lane, warp), step.register]
        values.append(value)
    placed = np.stack([values[index] for index in plan.placement], axis=-1)
    return _swapped(plan.scatter, placed)


def _swapped(swaps: tuple[Swap, ...], data: Data) -> Data:
    registers = np.arange(data.shape[-1])
    for swap in swaps:
        other = data[..., registers ^ swap.register_xor]
        holds = np.empty(data.shape[:2], dtype=bool)
        for warp, lane in np.ndindex(*holds.shape):
            ones = (lane & swap.lane_mask).bit_count() + (warp & swap.warp_mask).bit_count()
            holds[warp, lane] = ones % 2 == 1
        data = np.where(holds[..., None], other, data)
    return data


def _through_memory(plan: SharedMemory, source: Data) -> Data:
    buffer = np.zeros(plan.elements, dtype=source.dtype)
    writer = np.full(plan.elements, -1)
    for warp, lane in np.ndindex(*source.shape[:2]):
        if not plan.write.takes_part(lane, warp):
            continue
        for access in plan.write.accesses:
            offset = plan.write.offset(access, lane, warp)
            assert offset % len(access.registers) == 0, "a vector access is not aligned"
            for place, register in enumerate(access.registers, start=offset):
                assert writer[place] < 0, "two threads write one element"
                buffer[place], writer[place] = source[warp, lane, register], warp
    count = sum(len(access.registers) for access in plan.read.accesses)
    result = np.zeros((*source.shape[:2], count), dtype=source.dtype)
    for warp, lane in np.ndindex(*source.shape[:2]):
        for access in plan.read.accesses:
            offset = plan.read.offset(access, lane, warp)
            assert offset % len(access.registers) == 0, "a vector access is not aligned"
            for place, register in enumerate(access.registers, start=offset):
                assert writer[place] == warp or (writer[place] >= 0 and not plan.warp_local)
                result[warp, lane, register] = buffer[place]
    return result


def simulate_reduction(plan: ReductionPlan, source: Data, combine: Combine) -> Data:
    """The registers of `plan.result` after the reduction, [warps, lanes, result registers]."""
    folded = [reduce(combine, (source[..., r] for r in fold)) for fold in plan.folds]
    value = np.stack(folded, axis=-1)
    lanes, registers = np.arange(LANES), np.arange(value.shape[-1])
    for step in plan.butterflies:
        offered = value[..., registers ^ step.register_xor]
        value = combine(value, offered[:, lanes ^ step.lane_mask])
    if plan.exchange is None:
        return value
    return _exchanged(plan.exchange, value, combine)


def _exchanged(exchange: Exchange, value: Data, combine: Combine) -> Data:
    buffer = np.zeros(exchange.elements, dtype=value.dtype)
    written = np.zeros(exchange.elements, dtype=bool)
    result: Data = value.copy()
    for warp, lane in np.ndindex(*value.shape[:2]):
        if not exchange.write.takes_part(lane, warp):
            continue
        for access in exchange.write.accesses:
            offset = exchange.write.offset(access, lane, warp)
            assert not written[offset], "two threads write one slot"
            [register] = access.registers
            buffer[offset], written[offset] = value[warp, lane, register], True
    for warp, lane in np.ndindex(*value.shape[:2]):
        for access in exchange.read.accesses:
            offset = exchange.read.offset(access, lane, warp)
            slots = slice(offset, offset + exchange.partials)
            assert written[slots].all(), "a slot is read that nobody wrote"
            [register] = access.registers
            result[warp, lane, register] = reduce(combine, buffer[slots])
    return result
