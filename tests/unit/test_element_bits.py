"""The tests' own reading of element types, against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.gpu.element_bits import from_bits


def test_f8e4m3_by_its_bits():
    bits = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(
        from_bits(bits, "f8e4m3"), bits.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    )
