"""What CUDA asks of a tensor map (cuTensorMapEncodeTiled of the CUDA Driver API), and how element
types are named there."""

from __future__ import annotations

# The end of CU_TENSOR_MAP_DATA_TYPE_… for each element type. Copies move bits; which type of a
# width it is tells only apart what is stored by a reduction, but that TFLOAT32 rounds.
DATA_TYPES = {
    "bool": "UINT8", "i8": "UINT8", "u8": "UINT8", "f8e4m3": "UINT8", "f8e5m2": "UINT8",
    "i16": "UINT16", "u16": "UINT16", "f16": "FLOAT16", "bf16": "BFLOAT16",
    "i32": "INT32", "u32": "UINT32", "f32": "FLOAT32",
    "i64": "INT64", "u64": "UINT64", "usize": "INT64", "f64": "FLOAT64",
}  # fmt: skip

RANK_LIMIT = 5
BOX_LIMIT = 256  # elements along one axis of a copy
MULTIPLE_BYTES = 16  # of addresses, of strides, and of the rows of a copy
STRIDE_LIMIT = 2**40  # bytes; strides are below it
EXTENT_LIMIT = 2**31 - 1  # elements: coordinates of a copy are signed 32-bit numbers
