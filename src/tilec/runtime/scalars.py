"""Scalar arguments: what Python values a scalar parameter takes, and the bytes that are passed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tilec.artifact.expression import Value
from tilec.runtime.errors import ContractError

_INTEGERS = {f"{'i' if signed else 'u'}{bits}": (signed, bits)
             for bits in (8, 16, 32, 64) for signed in (True, False)}  # fmt: skip
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
# What rounds to infinity: the largest number of the type and half a unit in its last place.
_ROUNDS_TO_INFINITY = {
    "f16": 65520.0,
    "bf16": 2.0**128 - 2.0**119,
    "f32": 2.0**128 - 2.0**103,
    "f64": math.inf,
}
_USIZE_LIMIT = 2**63  # `usize` is a signed 64-bit number that callers give as one of 0 and up


# How numbers of Python and NumPy are compared. One of the caller's own class may say that it equals
# another one that it is not.
_EQUALITIES: frozenset[object] = frozenset(
    kind.__eq__ for kind in (int, float, *np.sctypeDict.values())
)


def may_be_looked_up(given: object) -> bool:
    """Whether a number that equals this one, and is of its type, is the same."""
    return type(given).__eq__ in _EQUALITIES


class Scalar(NamedTuple):
    """A scalar as it is passed (of the slot's width), and as expressions see it."""

    passed: np.generic
    value: Value


def scalar_of(name: str, element: str, given: object) -> Scalar:
    """The scalar that a Python or NumPy number gives for a parameter.

    Raises:   ContractError if it is of another kind, or out of the element's range
    """
    plain = given.item() if isinstance(given, np.generic) else given
    if element == "bool":
        return _truth(name, plain)
    if element == "usize" or element in _INTEGERS:
        return _integer(name, element, plain)
    return _float(name, element, plain)


def _truth(name: str, given: object) -> Scalar:
    if not isinstance(given, bool):
        raise ContractError(f"`{name}`: expected a `bool`, got {given!r}")
    return Scalar(np.bool_(given), given)


def _integer(name: str, element: str, given: object) -> Scalar:
    if isinstance(given, bool) or not isinstance(given, int):
        raise ContractError(f"`{name}`: expected an integer of type `{element}`, got {given!r}")
    signed, bits = _INTEGERS.get(element, (True, 64))
    low = -(2 ** (bits - 1)) if signed and element != "usize" else 0
    high = _USIZE_LIMIT if signed and bits == 64 else 2 ** (bits - signed)
    if not low <= given < high:
        raise ContractError(
            f"`{name}`: expected a number of type `{element}` ({low} to {high - 1}), got {given}"
        )
    kind: Callable[[int], np.generic] = getattr(np, f"{'int' if signed else 'uint'}{bits}")
    return Scalar(kind(given), given)


def _float(name: str, element: str, given: object) -> Scalar:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise ContractError(f"`{name}`: expected a number of type `{element}`, got {given!r}")
    try:
        number = float(given)
        fits = not _ROUNDS_TO_INFINITY[element] <= abs(number) < math.inf
    except OverflowError:  # an integer beyond any float
        fits = False
    if not fits:
        raise ContractError(f"`{name}`: {given!r} is out of the range of `{element}`")
    if element == "bf16":
        rounded = rounded_to_bf16(number)
        return Scalar(np.uint16(np.float32(rounded).view(np.uint32) >> 16), rounded)
    passed = _FLOATS[element](number)
    return Scalar(passed, float(passed))


def rounded_to_bf16(number: float) -> float:
    """The nearest bf16, ties to even; once, not through f32.

    Assumes:  the number is not so large that it rounds to infinity, unless it is infinity
    """
    if not math.isfinite(number) or number == 0.0:
        return number
    exponent = max(math.frexp(number)[1] - 8, -133)  # 8 bits of significand; subnormals below
    rounded = math.ldexp(round(math.ldexp(number, -exponent)), exponent)
    return math.copysign(rounded, number)
