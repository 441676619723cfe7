"""The tests' own reading of element types, against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.gpu.element_bits import from_bits, to_bits


def test_f8e4m3_by_its_bits():
    bits = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(
        from_bits(bits, "f8e4m3"), bits.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    )


def test_the_nearest_f8_ties_to_even():
    for element, kind in (("f8e4m3", ml_dtypes.float8_e4m3fn), ("f8e5m2", ml_dtypes.float8_e5m2)):
        numbers = from_bits(np.arange(256, dtype=np.uint8), element)
        numbers = np.unique(numbers[np.isfinite(numbers)])
        middles = (numbers[1:] + numbers[:-1]) / 2
        values = np.concatenate([numbers, middles, middles * 1.001, middles * 0.999])
        found = to_bits(values, element)
        np.testing.assert_array_equal(from_bits(found, element), values.astype(kind).astype(float))
        assert from_bits(to_bits(1e9, element), element) == numbers.max()
        assert np.isnan(from_bits(to_bits(np.nan, element), element))
