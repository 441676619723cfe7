"""Scans, against NumPy and the definitions."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mlir import ir
from one_use import Use, run, tile

from tilec.ops.build import make
from tilec.ops.call import Receiver
from tilec.types import BF16, F16, F32, I8, I32, U8, U16, Element, TupleType, scalar

RANDOM = np.random.default_rng(11)


def backwards(x: np.ndarray, axis: int, scan: Any) -> np.ndarray:
    return np.flip(scan(np.flip(x, axis), axis), axis)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("extent", [1, 2, 48])
def test_sums_and_products_along_every_axis(extent: int, axis: int) -> None:
    x = RANDOM.integers(-3, 4, (2, extent, 4)).astype(np.int32)
    kind = tile(I32, 2, extent, 4)
    for name, scan in (("cumsum", np.cumsum), ("cumprod", np.cumprod)):

        def wanted(values: np.ndarray, along: int, scan: Any = scan) -> np.ndarray:
            return np.asarray(scan(values, axis=along, dtype=np.int32))

        got = run(name, (kind, x), generics=(axis,))
        np.testing.assert_array_equal(got, wanted(x, axis))
        got = run(f"{name}_rev", (kind, x), generics=(axis,))
        np.testing.assert_array_equal(got, backwards(x, axis, wanted))


@pytest.mark.parametrize(("element", "dtype"), [(I8, np.int8), (U8, np.uint8), (U16, np.uint16)])
def test_extremes_of_integers(element: Element, dtype: type) -> None:
    x = RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, 80).astype(dtype)
    for name, ufunc in (("cummax", np.maximum), ("cummin", np.minimum)):
        got = run(name, (tile(element, 80), x), generics=(0,)).view(dtype)
        np.testing.assert_array_equal(got, ufunc.accumulate(x))


def test_integer_sums_wrap() -> None:
    got = run("cumsum", (tile(U8, 4), np.full(4, 100, np.uint8)), generics=(0,)).view(np.uint8)
    assert list(got) == [100, 200, 44, 144]


def test_extremes_ignore_nan_until_there_is_a_number() -> None:
    x = np.float32([math.nan, 1, math.nan, 3])
    nan = math.nan
    kind = tile(F32, 4)
    np.testing.assert_array_equal(run("cummax", (kind, x), generics=(0,)), [nan, 1, 1, 3])
    np.testing.assert_array_equal(run("cummin", (kind, x), generics=(0,)), [nan, 1, 1, 1])
    np.testing.assert_array_equal(run("cummax_rev", (kind, x[::-1]), generics=(0,)), [3, 1, 1, nan])


def test_narrow_floats_are_summed_in_f32_and_rounded_once_an_element() -> None:
    ones = np.ones(1024, ml_dtypes.bfloat16)
    got = run("cumsum", (tile(BF16, 1024), ones), generics=(0,))
    np.testing.assert_array_equal(got, np.arange(1, 1025).astype(ml_dtypes.bfloat16))
    x = np.full(64, 1 + 2.0**-10, np.float16)
    got = run("cumprod", (tile(F16, 64), x), generics=(0,))
    exact = (1 + 2.0**-10) ** np.arange(1, 65)
    np.testing.assert_array_equal(got, exact.astype(np.float16))


def test_sums_of_negative_zeros_keep_the_sign() -> None:
    got = run("cumsum", (tile(F32, 4), np.float32([-0.0, -0.0, 0.0, -0.0])), generics=(0,))
    assert list(np.signbit(got)) == [True, True, False, False]


def _affine(first: Any, second: Any) -> Any:
    """x -> a x + b, then x -> c x + d."""
    (a, b), (c, d) = first, second
    kind = a.type
    cb = make("arith.muli", kind, c, b)
    return make("arith.muli", kind, a, c), make("arith.addi", kind, cb, d)


def _affine_maps(a: np.ndarray, b: np.ndarray, start: tuple[int, int]) -> list[tuple[int, int]]:
    found, (p, q) = [], start
    for c, d in zip(a.tolist(), b.tolist(), strict=True):
        p, q = p * c, c * q + d
        found.append((p, q))
    return found


@pytest.mark.parametrize("reverse", [False, True])
def test_pairs_are_combined_in_the_order_of_the_axis(reverse: bool) -> None:
    a = RANDOM.choice([-1, 1], 48).astype(np.int32)
    b = RANDOM.integers(-9, 10, 48).astype(np.int32)
    pair = TupleType((scalar(I32), scalar(I32)))
    use = Use(
        "scan_rev" if reverse else "scan",
        TupleType((tile(I32, 48), tile(I32, 48))),
        pair,
        generics=(0,),
        receiver=Receiver.TUPLE,
        closure=lambda types: types[0],
        body=lambda pair: _affine(*pair),
    )
    got = use.run((a, b), (-1, 7))
    step = -1 if reverse else 1
    wanted = np.array(_affine_maps(a[::step], b[::step], (-1, 7)))[::step]
    np.testing.assert_array_equal(np.stack(got, axis=1), wanted)


def test_each_row_starts_from_its_own() -> None:
    x = RANDOM.integers(-9, 10, (4, 16)).astype(np.int32)
    start = np.int32([[1], [2], [3], [4]])

    def add(pair: tuple[ir.Value, ir.Value]) -> ir.Value:
        return make("arith.addi", pair[0].type, *pair)

    use = Use(
        "scan", tile(I32, 4, 16), tile(I32, 4, 1), generics=(1,), body=add,
        closure=lambda types: types[0],
    )  # fmt: skip
    np.testing.assert_array_equal(use.run(x, start), x.cumsum(1) + start)
