"""The calling convention of compiled kernels: widths, slots, launch geometry (docs/abi.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from tilec.artifact.manifest import Slot, TensorMap
from tilec.artifact.signature import Parameter

# Bytes of each element type that can lie in memory or be passed, as docs/language.md lists them.
ELEMENT_BYTES = {
    "bool": 1, "i8": 1, "u8": 1, "f8e4m3": 1, "f8e5m2": 1,
    "i16": 2, "u16": 2, "f16": 2, "bf16": 2,
    "i32": 4, "u32": 4, "f32": 4,
    "i64": 8, "u64": 8, "f64": 8, "usize": 8,
}  # fmt: skip

# Extents and program counts above this are refused, so that index arithmetic is exact in 64 bits
# (docs/language.md, Indices).
COUNT_LIMIT = 2**40

# Variants with tensor maps number their programs, times the rows that are walked together (32 at
# most), in 32 bits: larger grids are for other variants.
NUMBERED_LIMIT = 2**26

# Tensors of more elements are refused, where extents of 0 count as 1, so that products of extents
# of one tensor are exact too.
ELEMENT_LIMIT = 2**60

# Tensors whose elements lie further apart are refused, and those that would pass the end of the
# address space: each byte has an address of its own, and offsets are exact in 64 bits with a sign.
# Units: bytes
SPAN_LIMIT = 2**63
ADDRESS_END = 2**64

# The most thread blocks of a launch along x, and along y and z (CUDA C++ Programming Guide,
# "Technical Specifications per Compute Capability").
GRID_X_LIMIT = 2**31 - 1
GRID_YZ_LIMIT = 2**16 - 1


def slots_of(
    parameters: Iterable[Parameter],
    dims: Iterable[str],
    tensor_maps: Iterable[TensorMap] = (),
) -> tuple[Slot, ...]:
    """The parameters of the machine code, in order.

    For each parameter its pointer and the strides of all axes but the last, outermost first, or
    its value; then the extent of each `Dim` in order of declaration; then the tensor maps.
    """
    slots: list[Slot] = []
    for parameter in parameters:
        slots += _own_slots(parameter)
    slots += [Slot("extent", dim) for dim in dims]
    return (*slots, *(Slot("tensor_map", one.param) for one in tensor_maps))


def launch_grid(extents: Sequence[int]) -> tuple[int, int, int]:
    """The thread blocks along x, y and z of a grid of programs.

    Where the hardware has room, blocks are programs: x is the last axis of the grid, y the one
    before, z all others, row-major. That costs no division; `gridDim.y` above 1 says so. Otherwise
    program p runs where `blockIdx.x + blockIdx.z * gridDim.x` is p, row-major over the grid, and
    the blocks past the last program, fewer than `gridDim.x`, return at once.

    Assumes:  all extents are above 0, their product at most COUNT_LIMIT
    """
    count = prod(extents)
    assert 0 < count <= COUNT_LIMIT, f"no grid covers {count} programs"
    *outer, y, x = (1, 1, *extents)
    z = prod(outer)
    if 1 < y <= GRID_YZ_LIMIT and z <= GRID_YZ_LIMIT and x <= GRID_X_LIMIT:
        return x, y, z
    x = min(count, GRID_X_LIMIT)
    return x, 1, -(-count // x)


def _own_slots(parameter: Parameter) -> list[Slot]:
    name, element = parameter.name, parameter.element
    if not parameter.is_tensor:
        return [Slot("scalar", name, element)]
    strides = [Slot("stride", name, axis=axis) for axis in range(parameter.rank - 1)]
    return [Slot("pointer", name, element), *strides]
