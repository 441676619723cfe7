"""Numbers as the CPU execution holds them.

A tile or scalar is a NumPy array whose type follows from its MLIR type alone: `i32` is int32
whatever its sign (operations that mean unsigned numbers look at the bits), `index` int64, `i1`
bool, `tf32` float32 with ten bits of fraction, bf16 and f8 the types of `ml_dtypes`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]

_DTYPES: dict[str, DTypeLike] = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "index": np.int64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f64": np.float64, "tf32": np.float32, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip

# What is computed in f32 and rounded once: NumPy's own arithmetic on them, where it has any, agrees
# for one operation, but not for their functions.
_NARROW = {np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)}
_F8 = {np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)}


def element_of(value_type: ir.Type) -> ir.Type:
    """The element type of a tensor, or the type itself."""
    if isinstance(value_type, ir.RankedTensorType):
        return value_type.element_type
    return value_type


def dtype_of(value_type: ir.Type) -> np.dtype[Any]:
    """The NumPy type of the numbers of an MLIR type."""
    return np.dtype(_DTYPES[str(element_of(value_type))])


def shape_of(value_type: ir.Type) -> tuple[int, ...]:
    """The extents of a tensor; none for a scalar."""
    return tuple(value_type.shape) if isinstance(value_type, ir.RankedTensorType) else ()


def unsigned(values: Array) -> Array:
    """The same bits as unsigned numbers."""
    return values.view(f"u{values.dtype.itemsize}")


def signed(values: Array) -> Array:
    """The same bits as signed numbers; an `i1` is 0 or -1."""
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def wide(values: Array) -> Array:
    """Floats as float64, exactly."""
    return values.astype(np.float64)


def rounded(values: Array, value_type: ir.Type) -> Array:
    """float64 numbers to the nearest of a float type, ties to even, in one rounding.

    Out of range becomes infinite (f8e4m3, which has none: NaN), as IEEE has it.
    """
    target = dtype_of(value_type)
    values = np.asarray(values, np.float64)
    if str(element_of(value_type)) == "tf32":
        return _tf32(to_odd(values))
    if target in (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16)):
        return values.astype(target)
    # ml_dtypes goes through float32: rounded to odd there, the second rounding is right
    # (Boldo and Melquiond, "When double rounding is odd").
    return to_odd(values).astype(target)


def to_odd(values: Array) -> Array:
    """float64 to float32; what is not exact becomes the neighbour with an odd last bit."""
    near = values.astype(np.float32)
    bits = near.view(np.int32)
    inexact = np.isfinite(values) & (near.astype(np.float64) != values)
    # toward zero first: one unit down in magnitude where rounding went up
    toward = np.where(inexact & (np.abs(wide(near)) > np.abs(values)), bits - 1, bits)
    return np.where(inexact, toward | 1, toward).astype(np.int32).view(np.float32)


def _tf32(values: Array) -> Array:
    """float32 to ten bits of fraction, ties to even."""
    bits = values.view(np.uint32)
    even = bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    return np.where(np.isnan(values), bits, even & np.uint32(0xFFFFE000)).view(np.float32)


def saturated_f8(values: Array, value_type: ir.Type) -> Array:
    """float64 to f8: nearest even, what is too large becomes the largest; NaN stays."""
    largest = float(ml_dtypes.finfo(dtype_of(value_type)).max)
    return rounded(np.clip(values, -largest, largest), value_type)


def exact_float(values: Array) -> Array:
    """Integers as float64 such that one more rounding to a narrower type is right.

    64-bit numbers do not fit: those above 2^53 are rounded to odd at 53 bits.
    """
    if values.dtype.itemsize < 8:
        return values.astype(np.float64)
    low = values & values.dtype.type(0x7FF)
    odd = (values >> values.dtype.type(11)) | (low != 0).astype(values.dtype)
    large = np.ldexp(odd.astype(np.float64), 11)
    one = values.dtype.type(1) << values.dtype.type(53)
    fits = values <= one
    if values.dtype.kind == "i":
        fits &= values >= -one
    return np.where(fits, values.astype(np.float64), large)


def from_integers(values: Array, value_type: ir.Type) -> Array:
    """Integers to the nearest of a float type, ties to even."""
    if dtype_of(value_type) == np.dtype(np.float64):
        return values.astype(np.float64)
    return rounded(exact_float(values), value_type)


def attribute_number(attribute: ir.Attribute) -> int | float:
    """The number of an integer or float attribute."""
    assert isinstance(attribute, (ir.IntegerAttr, ir.BoolAttr, ir.FloatAttr)), str(attribute)
    return attribute.value  # type: ignore[no-any-return]
