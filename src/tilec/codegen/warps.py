"""How many warps work on a program's tiles together."""

from __future__ import annotations

from math import prod

from mlir import ir

from tilec.hints import Hints
from tilec.ir.walk import operations
from tilec.layout import LANES
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape
from tilec.target.description import Target

# What a thread holds of the largest tile. Where threads only load, compute and store, one access
# of 16 bytes: small tensors then still fill the machine, and large ones do not care. No thread can
# hold more than so many elements.
_BYTES_PER_THREAD = 16
_MOST_WARPS = 8
_MOST_ELEMENTS = 64
# Where threads combine what they hold, an exchange costs a warp the same however much it holds, and
# a larger block leaves less room for others, whose loads would hide its barriers. So the larger a
# block is, the more a thread of it holds: up to so many warps, so many bytes. The most that one of
# these gives is taken (measured: docs/notes.md).
_COMBINING = ((4, 16), (8, 32), (16, 64), (32, 128))
# Of what an operation asks its own number of warps for: on its way to that, a thread holds no more.
_MOST_BYTES_HELD = 256


def warps_for(kernel: ir.OpView, hints: Hints, target: Target) -> int:
    """The hint `warps`, else what operations ask for, else enough for the largest tile.

    A power of two.

    Units:    warps of 32 threads, at most what the target allows in a block
    """
    most = target.threads_per_block // target.threads_per_warp
    if hints.warps is not None:
        return min(most, 1 << max(0, hints.warps.bit_length() - 1))
    found = (rules()[op.operation.name].access(op) for op in operations(kernel))
    accesses = [access for access in found if access is not None]
    asked = (rules()[op.operation.name].warps(op) for op in operations(kernel))
    if counts := [count for count in asked if count is not None]:
        holding = (_power_below(_bytes(one) // (LANES * _MOST_BYTES_HELD)) for one in accesses)
        return min(most, max([*counts, *holding]))
    combines = _combines(kernel)
    enough = (_warps(access, combines=combines) for access in accesses)
    return min(most, max(enough, default=1))


def _bytes(access: AccessShape) -> int:
    return prod(access.shape) * bit_width(ir.MemRefType(access.view.type).element_type) // 8


def _warps(access: AccessShape, *, combines: bool) -> int:
    """How many warps hold a tile as they should."""
    size = prod(access.shape)
    warps = _bytes(access) // LANES
    # Only powers of two in its extents are spread over threads.
    spread = prod(extent & -extent for extent in access.shape) // LANES
    if combines:
        enough = max(min(most, warps // held) for most, held in _COMBINING)
        return _power_below(min(enough, spread))
    warps = _power_below(min(warps // _BYTES_PER_THREAD, spread))
    return min(warps, max(_MOST_WARPS, _power_below(2 * size // (LANES * _MOST_ELEMENTS) - 1)))


def _power_below(number: int) -> int:
    """The largest power of two that is not above a number; 1, if there is none."""
    return 1 << max(0, number.bit_length() - 1)


def _combines(kernel: ir.OpView) -> bool:
    """Whether threads exchange what they hold: operations with a combiner say so."""
    return any(
        len(op.regions) and not rules()[op.operation.name].control for op in operations(kernel)
    )
