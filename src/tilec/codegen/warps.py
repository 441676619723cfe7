"""How many warps work on a program's tiles together."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.lowering import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape
from tilec.target.description import Target

# Elements of the largest tile that a thread holds: two 16-byte accesses of f32, two of bf16 at
# twice that. Fewer leave too little in flight, more cost occupancy.
_BYTES_PER_THREAD = 32
_LEAST_WARPS = 1


def warps_for(kernel: ir.OpView, hints: Mapping[str, Any], target: Target) -> int:
    """The hint `warps`, else enough for the largest tile: a power of two.

    Units:    warps of 32 threads, at most what the target allows in a block
    """
    most = target.threads_per_block // target.threads_per_warp
    if "warps" in hints:
        return int(min(most, 1 << max(0, int(hints["warps"]).bit_length() - 1)))
    accesses = (rules()[op.operation.name].access(op) for op in operations(kernel))
    largest = max((_bytes(access) for access in accesses if access is not None), default=1)
    threads = max(1, largest // _BYTES_PER_THREAD)
    warps = 1 << max(0, (threads // target.threads_per_warp).bit_length() - 1)
    return max(_LEAST_WARPS, min(most, warps))


def _bytes(access: AccessShape) -> int:
    """The size of a tile in memory."""
    return prod(access.shape) * bit_width(ir.MemRefType(access.view.type).element_type) // 8
