"""Rows of any length where a first pass could go wrong: infinities, NaN, large means."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.on_cpu import compiled

LIBRARY = Path(__file__).parent.parent.parent / "kernels"


def softmax(x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    with compiled(LIBRARY / "softmax_long.tile") as program:
        program.run("softmax_long__f32_2048", {"y": y, "x": x})
    return y


def test_softmax_of_what_is_not_finite_is_that_of_one_pass() -> None:
    x = np.zeros((6, 4500), np.float32)
    x[0, :] = -np.inf  # no largest: 0 / 0
    x[1, 4100] = np.inf
    x[2, 7] = np.nan
    x[3, :4400] = -np.inf
    x[4, 2048:] = -np.inf  # from the second tile on
    x[5, :] = np.finfo(np.float32).min
    y = softmax(x)
    assert np.isnan(y[:3]).all()
    counts = [100, 2048, 4500]
    for row, count in zip(y[3:], counts, strict=True):
        assert set(np.unique(row)) <= {np.float32(0), np.float32(1 / count)}
        assert np.count_nonzero(row) == count


def test_softmax_of_rows_that_rise_and_fall() -> None:
    steps = np.linspace(-300, 300, 9000, dtype=np.float32)
    x = np.stack([steps, steps[::-1], np.abs(steps)])
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    # Exponents up to 600 round to within 600 u; 2^-149 is the smallest number.
    exact = e / e.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax(x), exact, rtol=1500 * 2.0**-24, atol=2.0**-148)


def test_layernorm_keeps_the_variance_of_a_large_mean() -> None:
    """By the mean of squares, the variance 1 would drown in 2^24 · 2^-24."""
    rng = np.random.default_rng(0)
    x = (4096 + rng.choice([-1.0, 1.0], (1, 6000))).astype(np.float32)
    y, ones, zeros = np.zeros_like(x), np.ones(6000, np.float32), np.zeros(6000, np.float32)
    with compiled(LIBRARY / "layernorm_long.tile") as program:
        arguments = {"y": y, "x": x, "weight": ones, "bias": zeros, "eps": 0.0}
        program.run("layernorm_long__f32_2048", arguments)
    wide = x.astype(np.float64)
    exact = (wide - wide.mean()) / wide.std()
    # The mean rounds to 2^-12 (2^-11 apart at 4096), a few times over.
    np.testing.assert_allclose(y, exact, atol=4 * 2.0**-12)
