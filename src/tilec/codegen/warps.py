"""How many warps work on a program's tiles together."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from mlir import ir

from tilec.ir.walk import operations
from tilec.layout import LANES
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape
from tilec.target.description import Target

# What a thread holds of the largest tile. Where threads only load, compute and store, one access
# of 16 bytes: small tensors then still fill the machine, and large ones do not care. Where they
# combine what they hold, four of them, for an exchange costs a warp the same however much it holds;
# but two warps, if there is an access for each thread.
_BYTES_PER_THREAD = 16
_BYTES_PER_COMBINING_THREAD = 64
_LEAST_COMBINING_WARPS = 2
# Larger blocks leave no room for others, whose loads would hide the barriers of the first; but no
# thread can hold more than so many elements.
_MOST_WARPS = 8
_MOST_COMBINING_WARPS = 4
_MOST_ELEMENTS = 64
# Where each element is an access of its own, code is as long as a thread has elements, and so is
# the time to compile it: more warps then share the tile. Two such blocks fit on a multiprocessor.
_MOST_ACCESSES = 8
_MOST_WARPS_OF_ELEMENTS = 16
# Of what an operation asks its own number of warps for: on its way to that, a thread holds no more.
_MOST_BYTES_HELD = 256


def warps_for(
    kernel: ir.OpView, hints: Mapping[str, Any], target: Target, vector_bytes: int
) -> int:
    """The hint `warps`, else what operations ask for, else enough for the largest tile.

    A power of two.

    Units:    warps of 32 threads, at most what the target allows in a block; `vector_bytes`: what
              pointers and outer strides may be taken to be multiples of
    """
    most = target.threads_per_block // target.threads_per_warp
    if "warps" in hints:
        return int(min(most, 1 << max(0, int(hints["warps"]).bit_length() - 1)))
    found = (rules()[op.operation.name].access(op) for op in operations(kernel))
    accesses = [access for access in found if access is not None]
    asked = (rules()[op.operation.name].warps(op) for op in operations(kernel))
    if counts := [count for count in asked if count is not None]:
        holding = (_power_below(_bytes(one) // (LANES * _MOST_BYTES_HELD)) for one in accesses)
        return min(most, max([*counts, *holding]))
    combines, by_element = _combines(kernel), vector_bytes == 1
    enough = (_warps(access, combines=combines, by_element=by_element) for access in accesses)
    return min(most, max(enough, default=1))


def _bytes(access: AccessShape) -> int:
    return prod(access.shape) * bit_width(ir.MemRefType(access.view.type).element_type) // 8


def _warps(access: AccessShape, *, combines: bool, by_element: bool) -> int:
    """How many warps hold a tile as they should."""
    size = prod(access.shape)
    total = _bytes(access)
    warps = total // (LANES * _BYTES_PER_THREAD)
    if combines:
        enough = total // (LANES * _BYTES_PER_COMBINING_THREAD)
        warps = min(warps, max(_LEAST_COMBINING_WARPS, enough))
    # Only powers of two in its extents are spread over threads.
    spread = prod(extent & -extent for extent in access.shape) // LANES
    warps = _power_below(min(warps, spread))
    most = _MOST_COMBINING_WARPS if combines else _MOST_WARPS
    warps = min(warps, max(most, _power_below(2 * size // (LANES * _MOST_ELEMENTS) - 1)))
    if by_element:
        shares = min(size // (LANES * _MOST_ACCESSES), spread, _MOST_WARPS_OF_ELEMENTS)
        warps = max(warps, _power_below(shares))
    return warps


def _power_below(number: int) -> int:
    """The largest power of two that is not above a number; 1, if there is none."""
    return 1 << max(0, number.bit_length() - 1)


def _combines(kernel: ir.OpView) -> bool:
    """Whether threads exchange what they hold: operations with a combiner say so."""
    return any(
        len(op.regions) and not rules()[op.operation.name].control for op in operations(kernel)
    )
