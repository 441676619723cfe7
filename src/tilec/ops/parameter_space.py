"""The bytes that the parameters of a kernel's machine code take, and the room for tensor maps.

Parameters lie one after the other, each aligned to its own size, tensor maps last (docs/abi.md).

Source:   PTX ISA, "Kernel Function Parameters"; CUDA driver API, "CUtensorMap"
"""

from __future__ import annotations

from mlir import ir

from tilec.ops.fragments import bit_width
from tilec.target.description import Target

MAP_BYTES, MAP_ALIGNMENT = 128, 64

_POINTER_BYTES = 8


def parameter_bytes(kernel: ir.OpView, map_count: int = 0) -> int:
    """From the first parameter to past the last, of a kernel with so many tensor maps."""
    [block] = kernel.regions[0].blocks
    end = 0
    for argument in block.arguments:
        size = _bytes(argument.type)
        end = _aligned(end, size) + size
    return _aligned(end, MAP_ALIGNMENT) + map_count * MAP_BYTES if map_count else end


def room_for_maps(kernel: ir.OpView, target: Target) -> int:
    """How many tensor maps the parameter space of the target holds beside all else."""
    begin = _aligned(parameter_bytes(kernel), MAP_ALIGNMENT)
    return max(0, (target.parameter_bytes - begin) // MAP_BYTES)


def _bytes(slot: ir.Type) -> int:
    return _POINTER_BYTES if isinstance(slot, ir.MemRefType) else bit_width(slot) // 8


def _aligned(place: int, alignment: int) -> int:
    return -(-place // alignment) * alignment
