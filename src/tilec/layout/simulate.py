"""What the plans mean: each one executed with NumPy, thread by thread.

The code generator's instructions must do the same. Data is an array [warps, lanes, registers].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from tilec.layout.layout import LANES
from tilec.layout.reduction import Exchange, ReductionPlan

Data = npt.NDArray[Any]
Combine = Callable[[Data, Data], Data]


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
