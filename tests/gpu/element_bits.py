"""Numbers as the bits of an element type, and back, with NumPy alone."""

from __future__ import annotations

import numpy as np

_NUMPY = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "usize": np.int64,
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
    if element in _F8:
        return _to_f8(np.asarray(values, np.float64), element)
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.asarray(values).astype(_NUMPY[element])
    return exact.view(_BITS[exact.itemsize])


def from_bits(bits, element):
    """What the bits mean: floats as float64, the rest as NumPy's type of the element."""
    if element == "bf16":
        return _wide((bits.astype(np.uint32) << np.uint32(16)).view(np.float32))
    if element in _F8:
        return _f8(bits, *_F8[element])
    values = bits.view(_NUMPY[element])
    return _wide(values) if values.dtype.kind == "f" else values


# Bits of fraction, bias, and the least code that is no finite number.
_F8 = {"f8e4m3": (3, 7, 0x7F), "f8e5m2": (2, 15, 0x7C)}


def _f8(bits, fraction, bias, beyond):
    code = (bits & 0x7F).astype(np.int64)
    exponent = np.maximum(code >> fraction, 1)
    whole = np.where(code >> fraction, (code & ((1 << fraction) - 1)) | (1 << fraction), code)
    size = np.ldexp(whole.astype(np.float64), exponent - bias - fraction)
    special = np.where((code == 0x7C) & (beyond == 0x7C), np.inf, np.nan)
    return np.where(code >= beyond, special, size) * np.where(bits & 0x80, -1.0, 1.0)


def _to_f8(values, element):
    """What is too large becomes the largest."""
    numbers = from_bits(np.arange(_F8[element][2], dtype=np.uint8), element)
    middles = (numbers[1:] + numbers[:-1]) / 2
    size = np.abs(values)
    below, above = (np.searchsorted(middles, size, side) for side in ("left", "right"))
    code = np.where(below % 2 == 0, below, above)  # both, but in the middle
    return np.where(np.isnan(values), 0x7F, code + 0x80 * np.signbit(values)).astype(np.uint8)


def _wide(values):
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        return values.astype(np.float64)


def rounded(values, element):
    """The numbers of the element type nearest to these, as float64 or the element's NumPy type."""
    return from_bits(to_bits(values, element), element)
