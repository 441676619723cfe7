"""Expressions of grids and `requires!`: their values, their text, their faults."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emit.limits import LIMITS, TOO_LARGE
from tilec.artifact.expression import (
    OPERATIONS,
    DivisionByZero,
    ExpressionError,
    TooLarge,
    divides_by_zero,
    evaluate,
    evaluate_exactly,
    holds,
    names_in,
    text_of,
)

integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-10, 10)


@pytest.mark.parametrize(
    ("operation", "a", "b", "value"),
    [
        ("div", -7, 2, -3), ("div", 7, -2, -3), ("div", 7, 0, 0), ("div", 6, 3, 2),
        ("rem", -7, 2, -1), ("rem", 7, -2, 1), ("rem", 7, 0, 7), ("rem", -7, 0, -7),
        ("ceildiv", 1025, 1024, 2), ("ceildiv", 1024, 1024, 1), ("ceildiv", 0, 1024, 0),
        ("ceildiv", -7, 2, -3), ("ceildiv", 5, 0, 0),
        ("min", 3, -4, -4), ("max", 3, -4, 3), ("shl", 3, 2, 12), ("shr", -8, 1, -4),
        ("bitand", 12, 10, 8), ("bitor", 12, 10, 14), ("bitxor", 12, 10, 6),
        ("eq", 1, 1, True), ("ne", 1, 1, False), ("le", 1, 1, True), ("gt", 1, 1, False),
    ],
)  # fmt: skip
def test_operations_have_the_values_of_the_language(operation, a, b, value):
    assert evaluate((operation, "a", "b"), {"a": a, "b": b}) == value


@pytest.mark.parametrize(
    ("operation", "a", "b", "value"),
    [
        ("min", math.nan, 1.0, 1.0), ("min", 1.0, math.nan, 1.0), ("max", math.nan, 1.0, 1.0),
        ("max", 1.0, math.nan, 1.0), ("min", math.nan, math.nan, math.nan),
        ("min", 0.0, -0.0, -0.0), ("min", -0.0, 0.0, -0.0), ("min", 0.0, 0.0, 0.0),
        ("max", 0.0, -0.0, 0.0), ("max", -0.0, 0.0, 0.0), ("max", -0.0, -0.0, -0.0),
        ("max", -math.inf, -2.0, -2.0),
    ],
)  # fmt: skip
def test_the_least_and_greatest_of_floats_are_those_of_the_language(operation, a, b, value):
    found = evaluate((operation, "a", "b"), {"a": a, "b": b})
    assert repr(found) == repr(value)


@given(integers, integers)
def test_quotient_and_remainder_make_up_the_number(a, b):
    whole = ("add", ("mul", ("div", "a", "b"), "b"), ("rem", "a", "b"))
    assert evaluate(whole, {"a": a, "b": b}) == a


@given(integers, integers.filter(bool))
def test_division_truncates_toward_zero(a, b):
    quotient = evaluate(("div", a, b), {})
    assert abs(quotient) == abs(a) // abs(b)
    assert quotient == 0 or (quotient < 0) == ((a < 0) != (b < 0))


@given(integers, st.sampled_from([8, 16, 32, 64]))
def test_conversions_keep_the_low_bits(value, bits):
    signed, unsigned = (evaluate((f"{sign}{bits}", value), {}) for sign in "iu")
    assert (signed - value) % 2**bits == 0 and -(2 ** (bits - 1)) <= signed < 2 ** (bits - 1)
    assert (unsigned - value) % 2**bits == 0 and 0 <= unsigned < 2**bits


def test_a_requirement_that_divides_by_zero_does_not_hold():
    requirement = ("eq", ("rem", "H", "HK"), 0)
    assert holds(requirement, {"H": 8, "HK": 2})
    assert not holds(requirement, {"H": 8, "HK": 3})
    assert not holds(requirement, {"H": 0, "HK": 0})
    with pytest.raises(DivisionByZero):
        evaluate(requirement, {"H": 0, "HK": 0}, total=False)


@pytest.mark.parametrize(
    ("expression", "always"),
    [
        (("eq", ("rem", "N", 0), "N"), True),
        (("ceildiv", 4, 0), True),
        (("or", ("eq", ("div", "N", 0), 0), True), True),
        (("select", "p", ("div", 1, 0), ("rem", 1, 0)), True),
        (("div", "N", "M"), False),
        (("and", ("gt", "N", 4), ("eq", ("div", "N", 0), 0)), False),
        (("select", "p", ("div", 1, 0), 1), False),
        (("div", 0, 4), False),
    ],
)
def test_what_always_divides_by_zero_is_told_from_what_may_not(expression, always):
    assert divides_by_zero(expression) == always


@pytest.mark.parametrize(
    "guarded",
    [
        ("and", ("ne", "b", 0), ("eq", ("rem", "a", "b"), 0)),
        ("not", ("or", ("eq", "b", 0), ("ne", ("rem", "a", "b"), 0))),
        ("select", ("eq", "b", 0), False, ("eq", ("rem", "a", "b"), 0)),
    ],
)
def test_what_is_not_needed_is_not_evaluated(guarded):
    assert not evaluate(guarded, {"a": 4, "b": 0}, total=False)
    assert evaluate(guarded, {"a": 4, "b": 2}, total=False)


@pytest.mark.parametrize(("expression", "n", "m", "value"), LIMITS)
def test_what_does_not_fit_in_64_bits_has_no_value(expression, n, m, value):
    values = {"n": n, "m": m}
    if value is not TOO_LARGE:
        assert evaluate(expression, values) == value
        return
    with pytest.raises(TooLarge, match="is too large to compute, where "):
        evaluate(expression, values)
    assert not holds(("eq", expression, expression), values)
    assert isinstance(evaluate_exactly(expression, values), int)


def test_floats_are_compared():
    assert holds(("gt", "eps", 0.0), {"eps": 1e-5})
    assert not holds(("gt", "eps", 0.0), {"eps": math.nan})
    with pytest.raises(ExpressionError, match="of floats"):
        evaluate(("add", "eps", 1), {"eps": 1e-5})


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (("ceildiv", "N", 1024), "N.div_ceil(1024)"),
        (("eq", ("rem", "N", 128), 0), "N % 128 == 0"),
        (("mul", ("add", "a", 1), "b"), "(a + 1) * b"),
        (("sub", "a", ("sub", "b", "c")), "a - (b - c)"),
        (("sub", ("sub", "a", "b"), "c"), "a - b - c"),
        (("and", ("or", "a", "b"), ("not", ("lt", "c", -1))), "(a || b) && !(c < -1)"),
        (("lt", ("eq", "a", "b"), True), "(a == b) < true"),
        (("min", ("neg", "a"), 4), "(-a).min(4)"),
        (("i32", ("add", "n", 1)), "((n + 1) as i32)"),
        (("select", "p", 1, 2), "(if p { 1 } else { 2 })"),
        (("abs", "n"), "n.abs()"),
    ],
)
def test_text_reads_as_the_program_would(expression, text):
    assert text_of(expression) == text


def test_names_are_those_mentioned():
    assert list(names_in(("add", "N", ("mul", 2, ("min", "M", "N"))))) == ["N", "M", "N"]


@pytest.mark.parametrize(
    "data", [(), ("unknown", 1, 2), ("add", 1), ("neg", 1, 2), (3, 4), (("add", 1, 2), 1)]
)
def test_what_is_no_expression_is_refused(data):
    for reader in (lambda x: evaluate(x, {}), text_of, lambda x: list(names_in(x))):
        with pytest.raises(ExpressionError):
            reader(data)


def test_a_name_without_a_value_is_refused():
    with pytest.raises(ExpressionError, match="`M` has no value"):
        evaluate(("add", "M", 1), {"N": 1})


def test_every_operation_evaluates_and_prints():
    for name, operation in OPERATIONS.items():
        expression = (name, *[3] * operation.arity)
        assert isinstance(evaluate(expression, {}), (bool, int))
        assert "3" in text_of(expression)
