"""How many warps work on a program's tiles together."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape
from tilec.target.description import Target

# What a thread holds of the largest tile: two accesses of 16 bytes. Fewer leave too little in
# flight, more cost occupancy.
_BYTES_PER_THREAD = 32
_LEAST_WARPS = 1


def warps_for(kernel: ir.OpView, hints: Mapping[str, Any], target: Target) -> int:
    """The hint `warps`, else what operations ask for, else enough for the largest tile.

    A power of two.

    Units:    warps of 32 threads, at most what the target allows in a block
    """
    most = target.threads_per_block // target.threads_per_warp
    if "warps" in hints:
        return int(min(most, 1 << max(0, int(hints["warps"]).bit_length() - 1)))
    asked = (rules()[op.operation.name].warps(op) for op in operations(kernel))
    if counts := [count for count in asked if count is not None]:
        return min(most, max(counts))
    accesses = (rules()[op.operation.name].access(op) for op in operations(kernel))
    threads = max((_threads(access) for access in accesses if access is not None), default=1)
    warps = 1 << max(0, (threads // target.threads_per_warp).bit_length() - 1)
    return max(_LEAST_WARPS, min(most, warps))


def _threads(access: AccessShape) -> int:
    """How many threads a tile occupies. Only powers of two in its extents are spread over them."""
    element_bytes = bit_width(ir.MemRefType(access.view.type).element_type) // 8
    spread = prod(extent & -extent for extent in access.shape)
    return max(1, min(prod(access.shape) * element_bytes // _BYTES_PER_THREAD, spread))
