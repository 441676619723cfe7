"""How far floats are apart, as the GPU tests count it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.gpu.distance import distance, is_nan
from tests.gpu.element_bits import to_bits


def steps(left: float, right: float, element: str) -> float:
    bits = [to_bits(np.array([value]), element) for value in (left, right)]
    return float(distance(*bits, element)[0])


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_neighbours_are_one_step_apart(element: str) -> None:
    one = to_bits(np.array([1.0]), element)
    for step in (1, 2, 5):
        assert distance(one, one + one.dtype.type(step), element) == [step]
        assert distance(one - one.dtype.type(step), one, element) == [step]


@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "f64"])
def test_zeros_infinities_and_nan(element: str) -> None:
    assert steps(0.0, -0.0, element) == 1
    assert steps(np.nan, -np.nan, element) == 0
    assert steps(np.nan, np.inf, element) == np.inf
    assert steps(np.inf, np.inf, element) == 0
    assert steps(np.inf, -np.inf, element) > 1000
    infinity = to_bits(np.array([np.inf]), element)
    assert distance(infinity, infinity - infinity.dtype.type(1), element) == [1]
    assert not is_nan(infinity, element) and is_nan(infinity + infinity.dtype.type(1), element)


def test_other_types_are_the_same_or_endlessly_far() -> None:
    left, right = np.array([1, 2], np.uint8), np.array([1, 3], np.uint8)
    np.testing.assert_array_equal(distance(left, right, "u8"), [0, np.inf])
