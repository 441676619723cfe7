"""Which numbers a scalar parameter takes, and as what: the same on the CPU and from launchers.

Integers within their type, `usize` from 0 up; truth values; floats that do not round to infinity,
and infinities and NaN themselves.
"""

from __future__ import annotations

import math

_INTEGERS = {f"{'i' if signed else 'u'}{bits}": (signed, bits)
             for bits in (8, 16, 32, 64) for signed in (True, False)}  # fmt: skip
# What rounds to infinity: the largest number of the type and half a unit in its last place.
_ROUNDS_TO_INFINITY = {
    "f16": 65520.0,
    "bf16": 2.0**128 - 2.0**119,
    "f32": 2.0**128 - 2.0**103,
    "f64": math.inf,
}

# Each integer type's numbers: the first one, and the one after the last. A `usize` is a signed
# number of 64 bits that callers give as one of 0 and up.
INTEGER_RANGES = {
    "usize": (0, 2**63),
    **{
        name: (-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed))
        for name, (signed, bits) in _INTEGERS.items()
    },
}


def fault_of_scalar(element: str, given: object) -> str | None:
    """What is wrong with a number of Python as one of a type, after `name: `; None if nothing."""
    if element == "bool":
        return None if isinstance(given, bool) else f"expected a `bool`, got {given!r}"
    if element in INTEGER_RANGES:
        return _fault_of_integer(element, given)
    if isinstance(given, bool) or not isinstance(given, int | float):
        return f"expected a number of type `{element}`, got {given!r}"
    return None if _is_in_range(element, given) else f"{given!r} is out of the range of `{element}`"


def _fault_of_integer(element: str, given: object) -> str | None:
    if isinstance(given, bool) or not isinstance(given, int):
        return f"expected an integer of type `{element}`, got {given!r}"
    low, end = INTEGER_RANGES[element]
    if low <= given < end:
        return None
    return f"expected a number of type `{element}` ({low} to {end - 1}), got {given}"


def _is_in_range(element: str, given: int | float) -> bool:
    try:
        return not _ROUNDS_TO_INFINITY[element] <= abs(float(given)) < math.inf
    except OverflowError:  # an integer beyond any float
        return False


def rounded_to_bf16(number: float) -> float:
    """The nearest bf16, ties to even; once, not through f32.

    Assumes:  the number is not so large that it rounds to infinity, unless it is infinity
    """
    if not math.isfinite(number) or number == 0.0:
        return number
    exponent = max(math.frexp(number)[1] - 8, -133)  # 8 bits of significand; subnormals below
    rounded = math.ldexp(round(math.ldexp(number, -exponent)), exponent)
    return math.copysign(rounded, number)
