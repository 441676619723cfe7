"""How far numbers of an element type are apart, counted in numbers of the type."""

from __future__ import annotations

import numpy as np

# The largest bits of each float that are no NaN, without the sign.
_NAN = {
    "f8e4m3": 0x7E, "f8e5m2": 0x7C, "f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000,
    "f64": 0x7FF0000000000000,
}  # fmt: skip


def distance(bits, expected, element):
    """Steps from each number to the one expected, as float64; 0 if they are the same.

    Floats: zeros of different sign are one step apart, infinity one from the largest number, NaN
    is like NaN and endlessly far from all else. Of other types all that differ are endlessly far.
    """
    if element not in _NAN:
        return np.where(bits == expected, 0.0, np.inf)
    nan, expected_nan = is_nan(bits, element), is_nan(expected, element)
    steps = _steps(_ordered(bits), _ordered(expected))
    return np.where(nan | expected_nan, np.where(nan & expected_nan, 0.0, np.inf), steps)


def is_nan(bits, element):
    """Where the bits of a float are NaN."""
    magnitude = bits & ~_sign(bits)
    return magnitude > bits.dtype.type(_NAN[element])


def _ordered(bits):
    """Whole numbers in the order of the floats."""
    magnitude = (bits & ~_sign(bits)).astype(np.int64)
    return np.where(bits & _sign(bits), -1 - magnitude, magnitude)


def _steps(a, b):
    """|a - b| as float64, exact where it is small."""
    roughly = np.abs(a.astype(np.float64) - b.astype(np.float64))
    near = roughly < 2.0**52
    return np.where(near, np.abs(np.where(near, a - b, 0)), roughly)


def _sign(bits):
    return bits.dtype.type(1 << (8 * bits.itemsize - 1))
