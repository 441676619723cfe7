"""Tensor maps as the hardware reads them.

The driver encodes them, called by `ctypes`: it wants them at multiples of 64 bytes, and the objects
of cuda.bindings (13.4) lie anywhere. Those of cuda.core lie well, but do not say where.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from cuda.bindings import driver as bindings

from tilec.runtime.devices import SUCCESS, address_of, made_current, text_of
from tilec.runtime.entry import Entry
from tilec.runtime.errors import LaunchError, failure
from tilec.runtime.tiled_map import TiledMap

MAP_BYTES = 128
_ALIGNMENT = 128  # cuda.h asks for 64, that of CUDA 13 for 128
_SINCE_CUDA = 12000

_SWIZZLES = {
    0: bindings.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_NONE,
    32: bindings.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_32B,
    64: bindings.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_64B,
    128: bindings.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
}
_PROMOTIONS = {
    128: bindings.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    256: bindings.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
}
_INTERLEAVE = bindings.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE
_ZEROS = bindings.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE

# CUresult cuTensorMapEncodeTiled(tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
# globalStrides, boxDim, elementStrides, interleave, swizzle, l2Promotion, oobFill)
_PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint32),
    ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int,
)  # fmt: skip


class EncodedMap:
    """A tensor map in memory of its own, which is never written again.

    `place` is its address on the host.
    """

    __slots__ = ("_memory", "place")

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(MAP_BYTES + _ALIGNMENT)
        start = ctypes.addressof(self._memory)
        self.place = -(-start // _ALIGNMENT) * _ALIGNMENT


def encoded(told: TiledMap, entry: Entry) -> EncodedMap:
    """The map that the driver makes of what it is told.

    Raises:   LaunchError if it refuses
    """
    encode = _encode_tiled()
    made = EncodedMap()
    rank = len(told.extents)
    data_type = getattr(bindings.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{told.data_type}")
    # A vector has no strides to tell, and a null pointer might be refused: one that nobody reads.
    strides = told.stride_bytes or (MAP_BYTES,)
    with made_current(entry.device):
        status = encode(
            made.place,
            int(data_type),
            rank,
            told.address,
            (ctypes.c_uint64 * rank)(*told.extents),
            (ctypes.c_uint64 * len(strides))(*strides),
            (ctypes.c_uint32 * rank)(*told.box),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            int(_INTERLEAVE),
            int(_SWIZZLES[told.swizzle]),
            int(_PROMOTIONS[told.promotion]),
            int(_ZEROS),
        )
    if status != SUCCESS:
        raise failure(
            f"`{entry.kernel.symbol}` was not launched: the driver refuses a tensor map of "
            f"`{told.param}` (address {told.address:#x}, extents {told.extents[::-1]}, strides in "
            f"bytes {told.stride_bytes[::-1]}, copies of {told.box[::-1]})",
            text_of(bindings.CUresult(status)),
        )
    return made


@cache
def _encode_tiled() -> Callable[..., int]:
    """The driver's function.

    Raises:   LaunchError if the driver has none
    """
    name = "cuTensorMapEncodeTiled"
    address = address_of(name, _SINCE_CUDA)
    if not address:
        raise LaunchError(f"this CUDA driver has no `{name}`: tensor maps need CUDA 12 or later")
    return _PROTOTYPE(address)
