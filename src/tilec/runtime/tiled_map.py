"""Tensor maps before they are encoded: the arguments of cuTensorMapEncodeTiled, as plain data.

A tensor is described as it is. CUDA's order of axes is the reverse of ours: the contiguous axis
comes first, and its stride is not told.
"""

from __future__ import annotations

from typing import NamedTuple

from tilec.artifact.abi import ELEMENT_BYTES
from tilec.artifact.manifest import TensorMap
from tilec.artifact.tensor_maps import (
    DATA_TYPES,
    EXTENT_LIMIT,
    MULTIPLE_BYTES,
    RANK_LIMIT,
    STRIDE_LIMIT,
)
from tilec.runtime.array import Array


class TiledMap(NamedTuple):
    """One tensor map; all but `address` follows from shapes.

    Units:    `extents` and `box` are elements, the innermost axis first; `stride_bytes` are those
              of all axes but the innermost, in the same order; `swizzle` and `promotion` are bytes
    """

    param: str
    address: int
    data_type: str
    extents: tuple[int, ...]
    stride_bytes: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    promotion: int


def is_mappable(wanted: TensorMap, array: Array) -> bool:
    """Whether CUDA can describe a tensor, but for its address, by a map that does what is wanted.

    A stride of 0 is left to other variants: CUDA does not say that it takes it. So are stores of
    rows that do not end at a multiple of 16 bytes: TMA writes whole pieces of 16 bytes.
    """
    row_bytes = array.shape[-1] * ELEMENT_BYTES[array.element]
    return (
        len(array.shape) <= RANK_LIMIT
        and all(0 < extent <= EXTENT_LIMIT for extent in array.shape)
        and all(
            0 < stride < STRIDE_LIMIT and stride % MULTIPLE_BYTES == 0
            for stride in _stride_bytes(array)
        )
        and not (wanted.writes and row_bytes % MULTIPLE_BYTES)
    )


def tiled_map(wanted: TensorMap, array: Array) -> TiledMap:
    """The map of a tensor, at address 0.

    L2 fetches 256 bytes at a time only where rows begin at multiples of 128 bytes: elsewhere that
    costs more than it saves.

    Assumes:  the tensor is mappable
    """
    strides = _stride_bytes(array)
    return TiledMap(
        param=wanted.param,
        address=0,
        data_type="TFLOAT32" if wanted.rounds else DATA_TYPES[array.element],
        extents=array.shape[::-1],
        stride_bytes=strides,
        box=wanted.box[::-1],
        swizzle=wanted.swizzle,
        promotion=128 if any(stride % 128 for stride in strides) else 256,
    )


def _stride_bytes(array: Array) -> tuple[int, ...]:
    """Strides of all axes but the innermost, which is left out, from inside out.

    Along an axis of one element there is nothing to step to, and the tensor's stride may be one
    that CUDA refuses: it is told as 128 bytes.
    """
    size = ELEMENT_BYTES[array.element]
    found: list[int] = []
    for extent, stride in zip(array.shape[-2::-1], array.strides[-2::-1], strict=True):
        found.append(stride * size if extent > 1 else 128)
    return tuple(found)
