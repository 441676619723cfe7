"""Scalar arguments: what Python values a scalar parameter takes, and the bytes that are passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilec.artifact.expression import Value
from tilec.artifact.scalar_range import INTEGER_RANGES, fault_of_scalar, rounded_to_bf16
from tilec.runtime.errors import ContractError

_INTEGERS: dict[str, Callable[[int], np.generic]] = {
    name: np.int64 if name == "usize" else getattr(np, f"{'u' * (low == 0)}int{name[1:]}")
    for name, (low, _) in INTEGER_RANGES.items()
}
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}

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


def scalar_of(name: str, element: str, given: Any) -> Scalar:
    """The scalar that a Python or NumPy number gives for a parameter.

    Raises:   ContractError if it is of another kind, or out of the element's range
    """
    plain = given.item() if isinstance(given, np.generic) else given
    fault = fault_of_scalar(element, plain)
    if fault is not None:
        raise ContractError(f"`{name}`: {fault}")
    if isinstance(plain, bool):
        return Scalar(np.bool_(plain), plain)
    if element in INTEGER_RANGES:
        return Scalar(_INTEGERS[element](plain), plain)
    number = float(plain)
    if element == "bf16":
        rounded = rounded_to_bf16(number)
        return Scalar(np.uint16(np.float32(rounded).view(np.uint32) >> 16), rounded)
    passed = _FLOATS[element](number)
    return Scalar(passed, float(passed))
