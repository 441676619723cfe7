"""Conversions, bit casts, against ml_dtypes, exact arithmetic and the definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_use import Use, run, tile

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
    I16,
    I32,
    I64,
    TF32,
    U8,
    U16,
    U32,
    U64,
    USIZE,
    Element,
    ElementVariable,
    scalar,
)

INTEGERS = (I8, I16, I32, I64, U8, U16, U32, U64, USIZE)
FLOATS = (F16, BF16, F32, F64)


def limits(element: Element) -> tuple[int, int]:
    if element.is_signed:
        return -(1 << element.bits - 1), (1 << element.bits - 1) - 1
    return 0, (1 << element.bits) - 1


def converted(value: object, source: Element, target: Element) -> object:
    result = run("to", (scalar(source), value), generics=(target,))
    if target.is_integer:
        number = int(result)
        return number + (1 << target.bits) if number < 0 and not target.is_signed else number
    return float(result)


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_float_to_integer_truncates_and_saturates(target: Element) -> None:
    low, high = limits(target)
    for source in FLOATS:
        assert converted(math.nan, source, target) == 0
        assert converted(math.inf, source, target) == high
        assert converted(-math.inf, source, target) == low
        assert converted(3.75, source, target) == 3
        assert converted(-3.75, source, target) == max(-3, low)
    assert converted(float(high) * 4, F64, target) == high
    assert converted(2.0**63, F64, target) == min(high, 2**63)
    assert converted(2.0**31 - 1, F64, target) == min(high, 2**31 - 1)


@pytest.mark.parametrize("source", INTEGERS, ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_integers_keep_their_low_bits(source: Element, target: Element) -> None:
    for value in {*limits(source), 0, 1, 100, 127}:
        half = 1 << source.bits - 1
        bits = np.array((value + half) % (2 * half) - half, np.int64)
        expected = value % (1 << target.bits)
        if target.is_signed and expected >> target.bits - 1:
            expected -= 1 << target.bits
        assert converted(bits, source, target) == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_round_once_to_floats(value: int) -> None:
    assert converted(value, I64, F64) == float(value)
    for target, bits in ((F32, 24), (BF16, 8)):
        got = Fraction(converted(value, I64, target))  # type: ignore[arg-type]
        step = Fraction(2) ** max(0, abs(value).bit_length() - bits)
        assert abs(got - value) <= step / 2
        if abs(got - value) == step / 2:
            assert (got / step) % 2 == 0


def test_sixty_four_bits_round_to_nearest_even_where_float64_would_round_first() -> None:
    # 2^63 - 2^54 lies between two bf16; the number above the tie by one must go up.
    tie = (1 << 62) + (1 << 54)
    assert converted(tie, I64, BF16) == 2.0**62
    assert converted(tie + 1, I64, BF16) == 2.0**62 + 2.0**55
    assert converted(np.int64(-1), U64, F32) == 2.0**64


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_every_f16_and_bf16_goes_to_both_f8_as_saturating_nearest_even() -> None:
    for source, dtype in ((F16, np.float16), (BF16, ml_dtypes.bfloat16)):
        values = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(dtype)
        for target, f8 in ((F8E4M3, ml_dtypes.float8_e4m3fn), (F8E5M2, ml_dtypes.float8_e5m2)):
            got = run("to", (tile(source, 65536), values), generics=(target,))
            table = np.arange(256, dtype=np.uint8).view(f8).astype(np.float64)
            table = np.unique(table[np.isfinite(table)])
            exact = values.astype(np.float64)
            numbers = ~np.isnan(exact)
            assert np.isnan(got.astype(np.float64)[~numbers]).all()
            clipped = np.clip(exact[numbers], table[0], table[-1])
            found = got.astype(np.float64)[numbers]
            above = np.clip(np.searchsorted(table, clipped), 0, len(table) - 1)
            below = np.clip(above - 1, 0, None)
            nearest = np.minimum(abs(table[above] - clipped), abs(clipped - table[below]))
            np.testing.assert_array_equal(abs(found - clipped), nearest)
            ties = abs(table[above] - clipped) == abs(clipped - table[below])
            bits = got.view(np.uint8)[numbers][ties & (above != below)]
            assert (bits & 1 == 0).all()


def test_f32_ties_to_f8() -> None:
    assert converted(1.0625, F32, F8E4M3) == 1.0
    assert converted(float(np.float32(1.0625001)), F32, F8E4M3) == 1.125
    assert converted(1e9, F32, F8E5M2) == 57344
    assert converted(-math.inf, F32, F8E4M3) == -448
    assert converted(300, I32, F8E4M3) == 288


def test_f64_rounds_once_to_every_narrower_float() -> None:
    # Just above a tie of the target: rounding to f32 first would make it the tie.
    for target, bits in ((BF16, 8), (F16, 11), (F32, 24)):
        tie = 1 + 2.0**-bits
        assert converted(tie, F64, target) == 1.0
        assert converted(tie + 2.0**-45, F64, target) == 1 + 2.0 ** (1 - bits)


@settings(max_examples=60, deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_f32_to_tf32_is_nearest_even(value: float) -> None:
    got = converted(value, F32, TF32)
    if math.isinf(got):  # type: ignore[arg-type]
        return
    _, exponent = math.frexp(value)
    step = Fraction(2) ** max(exponent - 11, -136)
    error = abs(Fraction(got) - Fraction(value))  # type: ignore[arg-type]
    assert error <= step / 2
    if error == step / 2:
        assert (Fraction(got) / step) % 2 == 0  # type: ignore[arg-type]


def test_f16_and_bf16_meet_in_f32() -> None:
    assert converted(65504.0, F16, BF16) == 65536.0
    assert converted(2.0**-30, BF16, F16) == 0.0
    assert converted(1e30, BF16, F16) == math.inf


def test_bool_becomes_zero_or_one() -> None:
    assert converted(True, BOOL, I32) == 1
    assert converted(True, BOOL, USIZE) == 1
    assert converted(True, BOOL, BF16) == 1.0


def test_as_and_to_agree_on_scalars() -> None:
    got = run("as", (scalar(F32), 300.7), generics=(U8,), form=Form.OPERATOR)
    assert int(got) & 0xFF == 255
    assert int(run("as", (scalar(I32), -1), generics=(USIZE,), form=Form.OPERATOR)) == -1
    assert int(run("as", (scalar(U32), -1), generics=(USIZE,), form=Form.OPERATOR)) == 2**32 - 1
    literal = scalar(ElementVariable(is_float=False))
    assert float(run("as", (literal, 7), generics=(F32,), form=Form.OPERATOR)) == 7.0


def test_bits_are_kept() -> None:
    x = np.float32([1.0, -0.0, 2.0, 0.5])
    got = run("bits", (tile(F32, 4), x), generics=(U32,))
    np.testing.assert_array_equal(got.view(np.uint32), x.view(np.uint32))
    assert float(run("bits", (scalar(USIZE), 0x3FF0000000000000), generics=(F64,))) == 1.0
    assert int(run("bits", (scalar(F64), 1.0), generics=(USIZE,))) == 0x3FF0000000000000
    assert int(run("bits", (scalar(F16), 1.0), generics=(I16,))) == 0x3C00


def test_refusals() -> None:
    assert Use("to", tile(I32, 4), generics=(BOOL,)).refusal().help == "compare instead: `.ne(0)`"
    assert Use("to", tile(F32, 4), generics=(BOOL,)).refusal().help == "compare instead: `.ne(0.0)`"
    assert Use("to", tile(F16, 4), generics=(TF32,)).refusal().code == "E0203"
    assert Use("to", tile(F16, 4), generics=(3,)).refusal().code == "E0203"
    assert Use("to", tile(F16, 4), generics=(F32, F32)).refusal().code == "E0203"
    assert Use("bits", tile(F16, 4), generics=(F32,)).refusal().code == "E0203"
    found = Use("as", tile(F16, 4), generics=(F32,), form=Form.OPERATOR).refusal()
    assert found.code == "E0203" and found.help is not None and ".to::<f32>()" in found.help
