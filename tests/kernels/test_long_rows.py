"""Rows of any length where a first pass could go wrong: infinities, NaN, large means."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.on_cpu import compiled

LIBRARY = Path(__file__).parent.parent.parent / "kernels"


def softmax(x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    with compiled(LIBRARY / "softmax_long.tile") as program:
        program.run("softmax_long__f32_16384_4__warps32", {"y": y, "x": x})
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


def row_results(kernel: str, symbol: str, x: np.ndarray, **more: np.ndarray) -> np.ndarray:
    """What a kernel that gives one number a row makes of the rows."""
    name = "loss" if kernel == "cross_entropy" else "y"
    y = np.zeros(len(x), np.int32 if kernel == "argmax" else np.float32)
    with compiled(LIBRARY / f"{kernel}.tile") as program:
        program.run(f"{kernel}__{symbol}", {name: y, "x": x, **more})
    return y


def test_logsumexp_of_what_is_not_finite() -> None:
    x = np.zeros((7, 4500), np.float32)
    x[0, :] = -np.inf
    x[1, [3, 3, 4100]] = np.inf
    x[2, 7] = np.nan
    x[3, [7, 8]] = np.nan, np.inf
    x[4, 2048:] = -np.inf
    x[5, :] = np.finfo(np.float32).min
    x[6, :] = np.finfo(np.float32).max
    largest = float(np.finfo(np.float32).max)
    wanted = [-np.inf, np.inf, np.nan, np.nan, np.log(2048), -largest, largest]
    np.testing.assert_allclose(row_results("logsumexp", "f32_2048_4", x), wanted, rtol=2.0**-22)


def test_cross_entropy_of_logits_that_are_masked_or_large() -> None:
    x = np.zeros((5, 4500), np.float32)
    x[0, 1:] = -np.inf
    x[1, :] = np.finfo(np.float32).min
    x[2, 9] = np.inf
    x[3, 9] = -np.inf
    x[4, :] = 1e6
    target = np.int32([0, 4499, 4, 9, 0])
    wanted = [0, np.log(4500), np.inf, np.inf, np.log(4500)]
    found = row_results("cross_entropy", "f32_2048_4", x, target=target)
    np.testing.assert_allclose(found, wanted, rtol=2.0**-22)


def test_argmax_is_the_first_of_equals_and_nan_is_largest() -> None:
    x = np.full((6, 3000), -np.inf, np.float32)
    x[1, [2999, 1024, 5]] = 3.0
    x[2, [2000, 100, 7]] = np.nan, np.inf, np.nan
    x[3, 2999] = -1e30
    x[4, [1, 1025]] = -0.0, 0.0
    x[5, [1025, 1]] = np.inf
    found = row_results("argmax", "f32_1_2048__warps4", x)
    np.testing.assert_array_equal(found, [0, 5, 7, 2999, 1, 1])
