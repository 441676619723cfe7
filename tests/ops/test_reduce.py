"""Reductions and matrix products, against NumPy and the definitions."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from mlir import ir
from one_use import Use, run, tile

from tilec.ops.build import compared, make
from tilec.ops.call import Form
from tilec.types import (
    BF16,
    BOOL,
    F8E4M3,
    F8E5M2,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    TF32,
    U8,
    U16,
    USIZE,
    Element,
    scalar,
)

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("name", ["sum", "prod", "min", "max"])
def test_an_axis_stays_with_extent_one(name: str, axis: int) -> None:
    x = RANDOM.integers(-3, 4, (2, 48, 4)).astype(np.int32)
    got = run(name, (tile(I32, 2, 48, 4), x), generics=(axis,))
    expected = getattr(np, name)(x, axis=axis, keepdims=True).astype(np.int32)
    np.testing.assert_array_equal(got, expected)
    whole = run(f"{name}_all", (tile(I32, 2, 48, 4), x))
    assert whole.shape == () and whole == getattr(np, name)(x).astype(np.int32)


def test_sums_wrap_in_their_own_type() -> None:
    x = np.full(512, 200, np.uint8)
    assert int(run("sum_all", (tile(U8, 512), x))) & 0xFF == 512 * 200 % 256


def test_unsigned_extremes() -> None:
    x = np.array([1, 200, 127, 128], np.uint8)
    assert int(run("max_all", (tile(U8, 4), x))) & 0xFF == 200
    assert int(run("min_all", (tile(U8, 4), x))) == 1
    assert int(run("argmax_all", (tile(U8, 4), x))) == 1


def test_narrow_floats_are_summed_in_f32() -> None:
    ones = np.ones(4096, ml_dtypes.bfloat16)
    assert float(run("sum_all", (tile(BF16, 4096), ones))) == 4096
    x = np.full(2048, 1 + 2.0**-10, np.float16)
    assert float(run("sum", (tile(F16, 2048), x), generics=(0,))[0]) == 2050


def test_sums_of_nothing_but_negative_zeros_keep_the_sign() -> None:
    assert np.signbit(run("sum_all", (tile(F32, 4), np.float32([-0.0] * 4))))


def test_nan_in_extremes() -> None:
    x = np.float32([[1, math.nan, 3, 2], [math.nan] * 4])
    kind = tile(F32, 2, 4)
    np.testing.assert_array_equal(run("max", (kind, x), generics=(1,))[:, 0], [3, math.nan])
    np.testing.assert_array_equal(run("min", (kind, x), generics=(1,))[:, 0], [1, math.nan])
    assert np.isnan(run("maximum", (kind, x), generics=(1,))).all()
    assert np.isnan(run("minimum_all", (kind, x)))


@pytest.mark.parametrize(
    ("values", "largest", "smallest"),
    [
        ([1, 5, 5, 2], 1, 0),
        ([math.nan, 5, 1, 1], 0, 2),
        ([5, math.nan, math.nan, 1], 1, 3),
        ([5, 1, 2, math.nan], 3, 1),
        ([math.nan] * 4, 0, 0),
        ([-math.inf] * 4, 0, 0),
        ([math.inf] * 4, 0, 0),
        ([math.inf, math.nan, -math.inf, 0], 1, 2),
        ([0.0, -0.0, 0.0, -0.0], 0, 0),
    ],
)
def test_argmax_counts_nan_as_largest_and_takes_the_first(
    values: list[float], largest: int, smallest: int
) -> None:
    for element in (F16, BF16, F32, F64):
        kind = tile(element, 4)
        x = np.array(values, np.float64)
        got = run("argmax", (kind, x), generics=(0,))
        assert got.dtype == np.int32 and list(got) == [largest]
        assert int(run("argmin_all", (kind, x))) == smallest


@pytest.mark.parametrize("element", [I8, I64, U16, USIZE], ids=str)
def test_argmax_of_integers_is_inside_even_at_their_limits(element: Element) -> None:
    for value in (0, -1, 1 << element.bits - 1):
        half = 1 << element.bits - 1
        same = (value + half) % (2 * half) - half
        x = np.full(16, same, np.int64)
        assert int(run("argmax_all", (tile(element, 16), x))) == 0
        assert int(run("argmin_all", (tile(element, 16), x))) == 0


def test_argmax_along_each_axis() -> None:
    x = RANDOM.standard_normal((4, 48, 2)).astype(np.float32)
    for axis in range(3):
        got = run("argmax", (tile(F32, 4, 48, 2), x), generics=(axis,))
        np.testing.assert_array_equal(got, np.argmax(x, axis, keepdims=True))
    assert int(run("argmax_all", (tile(F32, 4, 48, 2), x))) == np.argmax(x)


def test_any_and_all() -> None:
    x = np.array([[True, False], [True, True]])
    kind = tile(BOOL, 2, 2)
    assert list(run("any", (kind, x), generics=(1,))[:, 0]) == [True, True]
    assert list(run("all", (kind, x), generics=(1,))[:, 0]) == [False, True]
    assert bool(run("any", (kind, x))) and not bool(run("all", (kind, x)))
    assert bool(run("any_all", (kind, x))) and not bool(run("all_all", (kind, x)))


def test_scalars_are_their_own_totals() -> None:
    assert float(run("sum_all", (scalar(F32), 3))) == 3
    assert int(run("argmax_all", (scalar(F32), 3))) == 0


def test_reductions_refuse() -> None:
    assert Use("sum", tile(BOOL, 4), generics=(0,)).refusal().code == "E0203"
    assert Use("sum", tile(F32, 4), generics=(1,)).refusal().code == "E0203"
    assert Use("sum", tile(F32, 4), generics=()).refusal().code == "E0203"
    found = Use("sum", tile(F32, 4)).refusal()
    assert found.help == "`.sum::<0>()`, or `.sum_all()` of all elements"
    assert Use("sum", scalar(F32), generics=(0,)).refusal().code == "E0203"
    assert Use("any", tile(I32, 4), generics=(0,)).refusal().code == "E0203"
    assert Use("sum_all", tile(F8E4M3, 4)).refusal().code == "E0203"


def _affine(pair):  # type: ignore[no-untyped-def]
    """Not commutative, but associative: the later of two numbers that is not zero."""
    first, second = pair
    zero = make("arith.constant", second.type, value=ir.IntegerAttr.get(second.type, 0))
    return make("arith.select", second.type, compared("eq", second, zero), first, second)


def _branching(pair):  # type: ignore[no-untyped-def]
    """The larger, by a branch."""
    first, second = pair
    op = ir.Operation.create(
        "scf.if", results=[first.type], operands=[compared("sgt", first, second)], regions=2
    )
    for region, value in zip(op.regions, (first, second), strict=True):
        with ir.InsertionPoint(region.blocks.append()):
            ir.Operation.create("scf.yield", operands=[value])
    return op.results[0]


def test_a_combiner_keeps_the_order() -> None:
    x = np.array([[1, 2, 0, 3, 0, 0, 0, 0], [0] * 8], np.int32)
    got = run(
        "reduce", (tile(I32, 2, 8), x), (scalar(I32), 9), generics=(1,),
        closure=lambda types: types[0], body=_affine,
    )  # fmt: skip
    np.testing.assert_array_equal(got[:, 0], [3, 9])


def test_a_combiner_may_branch() -> None:
    x = np.array([[1, 5, 2, 3], [-1, -2, -3, -4]], np.int32)
    got = run(
        "reduce", (tile(I32, 2, 4), x), (scalar(I32), -2), generics=(1,),
        closure=lambda types: types[0], body=_branching,
    )  # fmt: skip
    np.testing.assert_array_equal(got[:, 0], [5, -1])


def test_combiners_are_refused_where_they_give_something_else() -> None:
    kinds = tile(I32, 8), scalar(I32)
    found = Use("reduce", *kinds, generics=(0,), closure=lambda types: scalar(F32)).refusal()
    assert found.code == "E0202"
    found = Use("reduce", *kinds, generics=(0,), closure=lambda types: tile(I32, 4)).refusal()
    assert found.code == "E0203"
    assert Use("reduce", *kinds, generics=(0,)).refusal().code == "E0203"


# ---- dot -------------------------------------------------------------------------------------

PRODUCTS = [
    (F16, F32), (F16, F16), (BF16, F32), (F8E4M3, F32), (F8E5M2, F32), (F32, F32), (F64, F64),
    (I8, I32), (U8, I32),
]  # fmt: skip


@pytest.mark.parametrize(("element", "total"), PRODUCTS, ids=str)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_dot(element: Element, total: Element, batch: tuple[int, ...]) -> None:
    a = RANDOM.integers(-4, 5, (*batch, 4, 16)).astype(np.float64)
    b = RANDOM.integers(-4, 5, (*batch, 16, 8)).astype(np.float64)
    if element == U8:
        a, b = a + 251, abs(b)
    c = RANDOM.integers(-9, 9, (*batch, 4, 8)).astype(np.float64)
    stored = (a.astype(np.int64).astype(np.int8), b) if element == U8 else (a, b)
    kinds = (tile(element, *a.shape), tile(element, *b.shape), tile(total, *c.shape))
    got = run("dot", *zip(kinds, (*stored, c), strict=True), form=Form.FUNCTION)
    np.testing.assert_array_equal(got.astype(np.float64), a @ b + c)
    if total != F16:
        got = run("dot", *zip(kinds[:2], stored, strict=True))
        np.testing.assert_array_equal(got.astype(np.float64), a @ b)


def test_tf32_and_mixed_f8_are_multiplied() -> None:
    kinds = tile(TF32, 16, 16), tile(TF32, 16, 16), tile(F32, 16, 16)
    assert Use("dot", *kinds, form=Form.FUNCTION).type() == kinds[2]
    eye = np.eye(16)
    np.testing.assert_array_equal(run("dot", (kinds[0], eye), (kinds[1], eye)), eye)
    kinds = tile(F8E4M3, 16, 16), tile(F8E5M2, 16, 16), tile(F32, 16, 16)
    np.testing.assert_array_equal(run("dot", (kinds[0], eye), (kinds[1], eye)), eye)


def test_dot_refuses() -> None:
    def code(*kinds):  # type: ignore[no-untyped-def]
        return Use("dot", *kinds, form=Form.FUNCTION).refusal().code

    square = tile(F32, 64, 64)
    assert code(tile(BF16, 64, 32), tile(BF16, 64, 64), square) == "E0301"
    assert code(tile(BF16, 64), tile(BF16, 64), square) == "E0301"
    assert code(tile(BF16, 64, 64), tile(BF16, 64, 64), tile(F32, 64, 32)) == "E0301"
    assert code(tile(BF16, 64, 64), tile(BF16, 64, 64), tile(BF16, 64, 64)) == "E0202"
    assert code(tile(BF16, 64, 64), tile(F16, 64, 64), square) == "E0202"
    assert code(tile(I8, 64, 64), tile(U8, 64, 64), tile(I32, 64, 64)) == "E0202"
    assert code(tile(I32, 64, 64), tile(I32, 64, 64), tile(I32, 64, 64)) == "E0203"
    found = Use("dot", tile(BF16, 64, 32), tile(BF16, 64, 32), square, form=Form.FUNCTION).refusal()
    assert found.help == "transpose the second: `.t()`"
