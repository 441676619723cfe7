"""Arithmetic, bits, comparisons and functions, against the definitions of docs/language.md."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from one_use import Use, run, tile

from tilec.ops.call import Form
from tilec.ops.elementwise import FUNCTIONS
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


def wrap(value: int, element: Element) -> int:
    """The number of an integer type with the low bits of `value`."""
    low = value % (1 << element.bits)
    if element.is_signed and low >> element.bits - 1:
        low -= 1 << element.bits
    return low


def limits(element: Element) -> tuple[int, int]:
    if element.is_signed:
        return -(1 << element.bits - 1), (1 << element.bits - 1) - 1
    return 0, (1 << element.bits) - 1


def numbers(element: Element) -> np.ndarray:
    """All pairs of edges and a few more, as two rows of Python integers."""
    low, high = limits(element)
    edges = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, 100, high // 2, high // 2 + 1}
    if element.is_signed:
        edges |= {-1, -2, -7, -100}
    pairs = [(a, b) for a in sorted(edges) for b in sorted(edges)]
    pairs += [(0, 0)] * (256 - len(pairs) % 256)
    return np.array(pairs, dtype=object).T


def stored(values: np.ndarray, element: Element) -> np.ndarray:
    """Python integers as the execution holds them: signed numbers of the same bits."""
    half = 1 << element.bits - 1
    return np.array([(int(v) + half) % (2 * half) - half for v in values]).astype(
        f"i{element.bits // 8}"
    )


def binary(name: str, element: Element, form: Form = Form.OPERATOR) -> np.ndarray:
    a, b = numbers(element)
    kind = tile(element, len(a))
    result = run(name, (kind, stored(a, element)), (kind, stored(b, element)), form=form)
    if result.dtype == np.bool_:
        return result
    return np.array([wrap(int(r), element) for r in result], dtype=object)


def divided(a: int, b: int, element: Element) -> int:
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return wrap(quotient if (a < 0) == (b < 0) else -quotient, element)


@pytest.mark.parametrize("element", INTEGERS, ids=str)
class TestIntegers:
    def test_sums_differences_and_products_wrap(self, element: Element) -> None:
        a, b = numbers(element)
        for name, exact in (("+", a + b), ("-", a - b), ("*", a * b)):
            assert list(binary(name, element)) == [wrap(v, element) for v in exact]

    def test_division_truncates_and_is_total(self, element: Element) -> None:
        a, b = numbers(element)
        quotients = [divided(x, y, element) for x, y in zip(a, b, strict=True)]
        assert list(binary("/", element)) == quotients
        rests = [wrap(x - q * y, element) for x, y, q in zip(a, b, quotients, strict=True)]
        assert list(binary("%", element)) == rests

    def test_quotient_and_remainder_make_the_number_again(self, element: Element) -> None:
        a, b = numbers(element)
        quotient, rest = binary("/", element), binary("%", element)
        for x, y, q, r in zip(a, b, quotient, rest, strict=True):
            assert wrap(q * y + r, element) == x

    def test_rem_euclid_is_never_negative(self, element: Element) -> None:
        a, b = numbers(element)
        expected = [x if y == 0 else x % abs(y) for x, y in zip(a, b, strict=True)]
        assert list(binary("rem_euclid", element, Form.METHOD)) == expected

    def test_shifts_mask_their_count(self, element: Element) -> None:
        a, b = numbers(element)
        counts = [y % element.bits for y in b]
        left = [wrap(x << n, element) for x, n in zip(a, counts, strict=True)]
        assert list(binary("<<", element)) == left
        right = [x >> n for x, n in zip(a, counts, strict=True)]
        assert list(binary(">>", element)) == right

    def test_bits(self, element: Element) -> None:
        a, b = numbers(element)
        assert list(binary("&", element)) == list(a & b)
        assert list(binary("|", element)) == list(a | b)
        assert list(binary("^", element)) == list(a ^ b)
        kind = tile(element, len(a))
        inverted = run("!", (kind, stored(a, element)), form=Form.OPERATOR)
        assert [wrap(int(v), element) for v in inverted] == [wrap(~x, element) for x in a]

    def test_comparisons_know_the_sign(self, element: Element) -> None:
        a, b = numbers(element)
        for name, holds in (
            ("eq", a == b), ("ne", a != b), ("lt", a < b), ("le", a <= b), ("gt", a > b),
            ("ge", a >= b),
        ):  # fmt: skip
            assert list(binary(name, element, Form.METHOD)) == list(holds)

    def test_extremes_know_the_sign(self, element: Element) -> None:
        a, b = numbers(element)
        assert list(binary("min", element, Form.METHOD)) == list(np.minimum(a, b))
        assert list(binary("max", element, Form.METHOD)) == list(np.maximum(a, b))

    def test_mul_hi_is_the_high_half(self, element: Element) -> None:
        a, b = numbers(element)
        assert list(binary("mul_hi", element, Form.METHOD)) == list((a * b) >> element.bits)

    def test_abs_wraps_at_the_least(self, element: Element) -> None:
        a, _ = numbers(element)
        got = run("abs", (tile(element, len(a)), stored(a, element)))
        assert [wrap(int(v), element) for v in got] == [wrap(abs(x), element) for x in a]

    def test_scalars_divide_up(self, element: Element) -> None:
        for a, b in ((7, 2), (8, 2), (0, 5), (5, 0), (limits(element)[1], 1), (1, 100)):
            got = run("div_ceil", (scalar(element), a), (scalar(element), b))
            assert wrap(int(got), element) == (0 if b == 0 else -(-a // b))

    def test_logarithm_and_powers_of_two(self, element: Element) -> None:
        for n in (1, 2, 3, 4, 63, 64, limits(element)[1]):
            value = stored(np.array([n], dtype=object), element)[0]
            assert int(run("ilog2", (scalar(element), value))) == n.bit_length() - 1
            power = bool(run("is_power_of_two", (scalar(element), value)))
            assert power == (n & (n - 1) == 0)
        assert int(run("ilog2", (scalar(element), 0))) == 0
        assert not run("is_power_of_two", (scalar(element), 0))


def test_signed_division_by_constants_needs_no_guard() -> None:
    for a in (-7, -8, 7, -(2**31)):
        assert run("/", (scalar(I32), a), (scalar(I32), 2), form=Form.OPERATOR) == int(a / 2)
    assert run("%", (scalar(I32), -7), (scalar(I32), 2), form=Form.OPERATOR) == -1


def test_shift_counts_may_have_another_type() -> None:
    got = run("<<", (scalar(U8), 1), (scalar(I64), 9), form=Form.OPERATOR)
    assert int(got) == 2


@settings(max_examples=40, deadline=None)
@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1))
def test_any_two_numbers_divide_as_defined(a: int, b: int) -> None:
    kind = scalar(I32)
    quotient = int(run("/", (kind, a), (kind, b), form=Form.OPERATOR))
    rest = int(run("%", (kind, a), (kind, b), form=Form.OPERATOR))
    assert quotient == divided(a, b, I32)
    assert wrap(quotient * b + rest, I32) == a


# ---- floats ----------------------------------------------------------------------------------

FLOATS = {F16: np.float16, BF16: ml_dtypes.bfloat16, F32: np.float32, F64: np.float64}
SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.25, 1e-3, 65504.0, 1e30, math.inf, -math.inf, math.nan]


def pairs(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtype)
    a, b = np.meshgrid(values, values)
    return np.resize(a, 128), np.resize(b, 128)


@pytest.mark.parametrize("element", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["+", "-", "*", "/"])
def test_float_arithmetic_rounds_once(element: Element, name: str) -> None:
    a, b = pairs(FLOATS[element])
    kind = tile(element, 128)
    got = run(name, (kind, a), (kind, b), form=Form.OPERATOR)
    wide = {F64: np.float64}.get(element, np.float32)
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        exact = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[name].astype(FLOATS[element])
    got, exact = got.astype(np.float64), exact.astype(np.float64)
    np.testing.assert_array_equal(got, exact)
    numbers = ~np.isnan(exact)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(exact[numbers]))


def test_negation_turns_the_sign_of_zero() -> None:
    assert np.signbit(run("-", (scalar(F32), 0.0), form=Form.OPERATOR))


def test_remainder_of_floats_has_the_sign_of_the_dividend() -> None:
    kind = tile(F32, 4)
    a, b = np.float32([7.5, -7.5, 7.5, -7.5]), np.float32([2, 2, -2, -2])
    got = run("%", (kind, a), (kind, b), form=Form.OPERATOR)
    np.testing.assert_array_equal(got, [1.5, -1.5, 1.5, -1.5])
    got = run("rem_euclid", (kind, a), (kind, b))
    np.testing.assert_array_equal(got, [1.5, 0.5, 1.5, 0.5])


def test_min_and_max_give_the_number_and_minimum_nan() -> None:
    kind = tile(F32, 4)
    a = np.float32([math.nan, 1, math.nan, -0.0])
    b = np.float32([2, math.nan, math.nan, 0.0])
    np.testing.assert_array_equal(run("min", (kind, a), (kind, b)), [2, 1, math.nan, 0])
    np.testing.assert_array_equal(run("max", (kind, a), (kind, b)), [2, 1, math.nan, 0])
    assert np.signbit(run("min", (kind, a), (kind, b))[3])
    assert not np.signbit(run("max", (kind, a), (kind, b))[3])
    for name in ("minimum", "maximum"):
        got = run(name, (kind, a), (kind, b))
        assert np.isnan(got[:3]).all() and got[3] == 0


def test_clamp_keeps_nan() -> None:
    kind, edge = tile(F32, 4), scalar(F32)
    x = np.float32([math.nan, -5, 0.5, 5])
    got = run("clamp", (kind, x), (edge, 0), (edge, 1))
    np.testing.assert_array_equal(got, [math.nan, 0, 0.5, 1])


def test_comparisons_with_nan() -> None:
    for name, expected in (("eq", False), ("ne", True), ("lt", False), ("ge", False)):
        assert bool(run(name, (scalar(F32), math.nan), (scalar(F32), math.nan))) is expected


@settings(max_examples=60, deadline=None)
@given(
    st.floats(width=32, allow_nan=False),
    st.floats(width=32, allow_nan=False),
    st.floats(width=32, allow_nan=False),
)
def test_mul_add_rounds_once(a: float, b: float, c: float) -> None:
    from fractions import Fraction

    got = run("mul_add", (scalar(F32), a), (scalar(F32), b), (scalar(F32), c))
    if not np.isfinite([a, b, c]).all():
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, np.float32(np.float64(a) * b + c))
        return
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = float(got)
    if not math.isfinite(near):
        assert abs(exact) >= Fraction(2) ** 128 - Fraction(2) ** 103
        return
    # Nothing of f32 is nearer.
    for side in (-np.inf, np.inf):
        with np.errstate(over="ignore"):
            other = float(np.nextafter(np.float32(near), np.float32(side)))
        if math.isfinite(other):
            assert abs(exact - Fraction(near)) <= abs(exact - Fraction(other))


@settings(max_examples=30, deadline=None)
@given(*[st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100)] * 3)
def test_mul_add_of_f64_is_exact_and_rounded(a: float, b: float, c: float) -> None:
    from fractions import Fraction

    got = float(run("mul_add", (scalar(F64), a), (scalar(F64), b), (scalar(F64), c)))
    assert got == float(Fraction(a) * Fraction(b) + Fraction(c))


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        # The product is a number, though float64 does not hold it.
        (1e200, 1e200, -math.inf, -math.inf),
        (-1e200, 1e200, math.inf, math.inf),
        (1e200, 1e200, -1e300, math.inf),
        (math.inf, 1.0, -math.inf, math.nan),
        (math.inf, 0.0, 1.0, math.nan),
        (1e200, 1e200, math.nan, math.nan),
    ],
)
def test_mul_add_of_f64_where_something_is_infinite(
    a: float, b: float, c: float, expected: float
) -> None:
    with np.errstate(all="ignore"):
        got = float(run("mul_add", (scalar(F64), a), (scalar(F64), b), (scalar(F64), c)))
    np.testing.assert_equal(got, expected)


REFERENCE = {
    "exp": math.exp, "exp2": lambda x: 2.0**x, "exp_m1": math.expm1, "ln": math.log,
    "log2": math.log2, "log10": math.log10, "ln_1p": math.log1p, "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x), "sin": math.sin, "cos": math.cos, "tan": math.tan,
    "asin": math.asin, "acos": math.acos, "atan": math.atan, "sinh": math.sinh,
    "cosh": math.cosh, "tanh": math.tanh, "erf": math.erf, "floor": math.floor,
    "ceil": math.ceil, "trunc": math.trunc, "round": lambda x: math.floor(x + 0.5),
    "atan2": math.atan2, "powf": math.pow,
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
@pytest.mark.parametrize("element", FLOATS, ids=str)
def test_functions_are_those_of_mathematics(function, element: Element) -> None:  # type: ignore[no-untyped-def]
    dtype = FLOATS[element]
    x = np.array([0.0625, 0.25, 0.5, 0.75, 0.875, 0.9375, 0.125, 0.375], np.float64)
    arguments = [x.astype(dtype), x[::-1].copy().astype(dtype)][: function.count]
    kind = tile(element, 8)
    got = run(function.name, *((kind, a) for a in arguments)).astype(np.float64)
    exact = [
        REFERENCE[function.name](*map(float, xs))
        for xs in zip(*(a.astype(np.float64) for a in arguments), strict=True)
    ]
    # f16 and bf16: f32's half unit and their own.
    step = {F16: 2.0**-11, BF16: 2.0**-8, F32: 2.0**-24, F64: 2.0**-51}[element]
    np.testing.assert_allclose(got, exact, rtol=1.01 * step, atol=0)


def test_round_goes_away_from_zero() -> None:
    x = np.float64([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 2.0**52 + 1, -0.25])
    got = run("round", (tile(F64, 8), x))
    np.testing.assert_array_equal(got, [1, -1, 2, 3, -3, 0, 2.0**52 + 1, 0])


def test_sigmoid_on_both_sides() -> None:
    x = np.float32([0, 100, -100, -30, math.inf, -math.inf, 2, -2])
    got = run("sigmoid", (tile(F32, 8), x)).astype(np.float64)
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(got, exact, rtol=2.0**-22, atol=1e-45)


def test_powi_takes_an_i32() -> None:
    assert run("powi", (scalar(F32), 2.0), (scalar(ElementVariable(is_float=False)), -2)) == 0.25
    assert Use("powi", scalar(F32), scalar(I64)).refusal().code == "E0202"


def test_nan_and_infinity_are_told_apart() -> None:
    x = [math.nan, math.inf, -math.inf, 1.0]
    assert list(run("is_nan", (tile(BF16, 4), np.array(x).astype(ml_dtypes.bfloat16)))) == [
        True, False, False, False,
    ]  # fmt: skip
    assert list(run("is_inf", (tile(F64, 4), x))) == [False, True, True, False]


# ---- refusals --------------------------------------------------------------------------------


def refusal(name: str, *types, form: Form = Form.OPERATOR, **rest):  # type: ignore[no-untyped-def]
    return Use(name, *types, form=form, **rest).refusal()


def test_mixed_elements_are_refused_with_the_conversion() -> None:
    found = refusal("+", tile(F16, 256), tile(F32, 256))
    assert found.code == "E0202"
    assert found.help == "convert one of them: `.to::<f32>()`"
    assert [label.text for label in found.labels] == ["this is `f32`", "this is `f16`"]


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    assert refusal("+", tile(F32, 128), tile(F32, 256)).code == "E0301"
    found = refusal("*", tile(F32, 4, 8), tile(F32, 8))
    assert found.code == "E0301" and found.help is not None and "expand" in found.help


def test_extents_of_one_and_scalars_broadcast() -> None:
    a, b = np.arange(4.0), np.arange(8.0)
    kinds = tile(F32, 4, 1), tile(F32, 1, 8)
    got = run("+", (kinds[0], a[:, None]), (kinds[1], b[None]), form=Form.OPERATOR)
    np.testing.assert_array_equal(got, a[:, None] + b[None])
    got = run(
        "*", (tile(F32, 4), a), (scalar(ElementVariable(is_float=True)), 2.5), form=Form.OPERATOR
    )
    np.testing.assert_array_equal(got, a * 2.5)


def test_integer_literals_never_become_floats() -> None:
    found = refusal("*", tile(F32, 4), scalar(ElementVariable(is_float=False)))
    assert found.code == "E0202" and found.help is not None and "with a point" in found.help
    found = refusal("*", tile(I32, 4), scalar(ElementVariable(is_float=True)))
    assert found.code == "E0202"


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%"])
def test_bool_and_storage_types_do_no_arithmetic(name: str) -> None:
    for element in (BOOL, F8E4M3, F8E5M2, TF32):
        assert refusal(name, tile(element, 4), tile(element, 4)).code == "E0203"


def test_bool_combines_by_bits() -> None:
    kind = tile(BOOL, 4)
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert list(run("&", (kind, a), (kind, b), form=Form.OPERATOR)) == list(a & b)
    assert list(run("^", (kind, a), (kind, b), form=Form.OPERATOR)) == list(a ^ b)
    assert list(run("!", (kind, a), form=Form.OPERATOR)) == list(~a)
    assert list(run("eq", (kind, a), (kind, b))) == list(a == b)
    assert Use("lt", kind, kind).refusal().code == "E0203"


def test_operators_compare_scalars_only() -> None:
    found = refusal("<", tile(F32, 4), tile(F32, 4))
    assert found.code == "E0203" and found.help == "tiles are compared by methods: `a.lt(b)`"
    assert bool(run("<", (scalar(U8), 127), (scalar(U8), 128), form=Form.OPERATOR))


def test_functions_take_floats() -> None:
    found = Use("exp", tile(I32, 4)).refusal()
    assert found.code == "E0203" and found.help == "convert it first: `.to::<f32>()`"
    assert Use("exp", tile(F32, 4), tile(F32, 4)).refusal().code == "E0203"


def test_unsigned_numbers_have_no_negation() -> None:
    assert refusal("-", scalar(U32)).code == "E0203"
    assert int(run("-", (scalar(I8), -128), form=Form.OPERATOR)) == -128
    assert int(run("-", (scalar(USIZE), 1), form=Form.OPERATOR)) == -1


def test_div_ceil_is_for_scalars() -> None:
    assert Use("div_ceil", tile(I32, 4), tile(I32, 4)).refusal().code == "E0203"
