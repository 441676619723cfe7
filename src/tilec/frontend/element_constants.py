"""The constants of element types: `T::MAX`, `f32::NEG_INFINITY`, …"""

from __future__ import annotations

import math

from tilec.types import Element

# Largest finite value and distance from 1 to the next number, of each float type.
_FLOATS: dict[str, tuple[float, float]] = {
    "f16": (65504.0, 2.0**-10),
    "bf16": ((2 - 2.0**-7) * 2.0**127, 2.0**-7),
    "f32": ((2 - 2.0**-23) * 2.0**127, 2.0**-23),
    "f64": ((2 - 2.0**-52) * 2.0**1023, 2.0**-52),
    "f8e4m3": (448.0, 2.0**-3),
    "f8e5m2": (57344.0, 2.0**-2),
}

NAMES = ("MIN", "MAX", "EPSILON", "INFINITY", "NEG_INFINITY", "NAN")


def constants_of(element: Element) -> dict[str, int | float]:
    """Every constant that an element type has, by name.

    `usize` has those of the signed 64-bit number that it is; `f8e4m3` has no infinity.
    """
    if element.is_integer:
        low = -(1 << (element.bits - 1)) if element.is_signed else 0
        return {"MIN": low, "MAX": low + (1 << element.bits) - 1}
    if element.name not in _FLOATS:
        return {}
    largest, epsilon = _FLOATS[element.name]
    values = {"MIN": -largest, "MAX": largest, "EPSILON": epsilon, "NAN": math.nan}
    if element.name != "f8e4m3":
        values |= {"INFINITY": math.inf, "NEG_INFINITY": -math.inf}
    return values
