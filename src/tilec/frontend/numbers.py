"""Compile-time arithmetic, as the machine does it (docs/language.md, Numbers).

Values are Python numbers; `element` says how they wrap and round. An element of None is an
unsuffixed literal: exact until it meets a type.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilec.types import Element

Number = int | float | bool


def wrapped(value: Number, element: Element | None) -> Number:
    """The value as the element type holds it: integers keep the low bits, floats round once."""
    if element is None or isinstance(value, bool):
        return value
    if element.is_integer:
        assert isinstance(value, int), f"{value} is no {element}"
        low = value & ((1 << element.bits) - 1)
        negative = element.is_signed and low >> (element.bits - 1)
        return low - (1 << element.bits) if negative else low
    return rounded(float(value), element)


def rounded(value: float, element: Element) -> float:
    """The nearest float of a type, ties to even; f8 saturates."""
    if element.name == "f64" or math.isnan(value) or math.isinf(value):
        return value
    import ml_dtypes  # loaded only by programs with float constants
    import numpy as np

    types = {
        "f16": np.float16, "f32": np.float32, "tf32": np.float32, "bf16": ml_dtypes.bfloat16,
        "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    }  # fmt: skip
    if element.bits == 8:
        largest = float(ml_dtypes.finfo(types[element.name]).max)
        value = max(-largest, min(largest, value))
    with np.errstate(over="ignore"):
        return float(np.float64(value).astype(types[element.name]))


def divide(left: Number, right: Number, element: Element | None) -> Number:
    """Truncating and total for integers (`x / 0` is 0), IEEE for floats."""
    if isinstance(left, float) or isinstance(right, float):
        return _float_divide(float(left), float(right))
    if right == 0:
        return 0
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: Number, right: Number, element: Element | None) -> Number:
    """`a - a / b * b` for integers (`x % 0` is x), C's `fmod` for floats."""
    if isinstance(left, float) or isinstance(right, float):
        finite = right != 0 and not math.isinf(left)
        return math.fmod(left, right) if finite else math.nan
    return left - int(divide(left, right, element)) * right


def _float_divide(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def shift_left(left: int, right: int, element: Element | None) -> int:
    return left << (right & ((element.bits if element else 64) - 1))


def shift_right(left: int, right: int, element: Element | None) -> int:
    return left >> (right & ((element.bits if element else 64) - 1))


Arithmetic = Callable[[Number, Number, "Element | None"], Number]

ARITHMETIC: dict[str, Arithmetic] = {
    "+": lambda a, b, _: a + b,
    "-": lambda a, b, _: a - b,
    "*": lambda a, b, _: a * b,
    "/": divide,
    "%": remainder,
}
BITWISE: dict[str, Callable[[int, int], int]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def converted(value: Number, source: Element | None, target: Element) -> Number:
    """`value as target`: float to integer truncates, saturates, and maps NaN to 0."""
    if target.name == "bool" or isinstance(value, bool):
        return bool(value) if target.name == "bool" else wrapped(_number(value, target), target)
    if isinstance(value, float) and target.is_integer:
        low = -(1 << (target.bits - 1)) if target.is_signed else 0
        high = low + (1 << target.bits) - 1
        if math.isnan(value):
            return 0
        return (
            max(low, min(high, int(value)))
            if math.isfinite(value)
            else (high if value > 0 else low)
        )
    return wrapped(_number(value, target), target)


def _number(value: Number, target: Element) -> Number:
    return float(value) if target.is_float else int(value)


def div_ceil(left: int, right: int) -> int:
    """The quotient rounded up; `x.div_ceil(0)` is 0, as `x / 0` is."""
    return 0 if right == 0 else -(-left // right)


def ilog2(value: int) -> int:
    """The position of the highest bit; of what is not positive, 0."""
    return max(value.bit_length() - 1, 0) if value > 0 else 0
