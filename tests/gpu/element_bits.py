"""Numbers as the bits of an element type, and back, with NumPy alone."""

from __future__ import annotations

import numpy as np

_NUMPY = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def to_bits(values, element):
    """Unsigned integers that hold the nearest number of the element type, ties to even."""
    if element == "bf16":
        with np.errstate(over="ignore", invalid="ignore"):
            wide = np.asarray(values, np.float32).view(np.uint32)
        rounded = (wide + np.uint32(0x7FFF) + ((wide >> np.uint32(16)) & np.uint32(1))) >> 16
        quiet_nan = (wide >> np.uint32(16)) | np.uint32(0x40)
        return np.where(np.isnan(values), quiet_nan, rounded).astype(np.uint16)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.asarray(values).astype(_NUMPY[element])
    return exact.view(_BITS[exact.itemsize])


def from_bits(bits, element):
    """What the bits mean: floats as float64, the rest as NumPy's type of the element."""
    if element == "f8e4m3":
        return _F8E4M3[bits]
    if element == "bf16":
        return _wide((bits.astype(np.uint32) << np.uint32(16)).view(np.float32))
    values = bits.view(_NUMPY[element])
    return _wide(values) if values.dtype.kind == "f" else values


def _f8e4m3():
    """The numbers of f8e4m3 by their bits: a sign, 4 bits of exponent, 3 of fraction, no infinity.

    Source:   Micikevicius et al., "FP8 Formats for Deep Learning", table 1
    """
    bits = np.arange(256)
    exponent, fraction = bits >> 3 & 15, bits & 7
    size = np.where(exponent > 0, (8 + fraction) * np.exp2(exponent - 10.0), fraction * 2.0**-9)
    return np.where(bits & 127 == 127, np.nan, np.where(bits < 128, size, -size))


_F8E4M3 = _f8e4m3()


def _wide(values):
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return values.astype(np.float64)


def rounded(values, element):
    """The numbers of the element type nearest to these, as float64 or the element's NumPy type."""
    return from_bits(to_bits(values, element), element)
