"""The type in which functions take a number that instances have in several types."""

from __future__ import annotations

from collections.abc import Iterable

# As what a number is given: a float of 16 bits is rounded by the launcher.
_REALS = {"f16": "f32", "bf16": "f32", "f32": "f32", "f64": "f64"}
_WHOLES = frozenset({"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "usize"})


def scalar_for(elements: Iterable[str]) -> str | None:
    """The element type that numbers of all these types are given in.

    None where they are of several kinds: truth values, whole numbers, floats.
    """
    every = frozenset(elements)
    if every == {"bool"}:
        return "bool"
    if every <= _REALS.keys():
        given = {_REALS[element] for element in every}
        return given.pop() if len(given) == 1 else "f64"
    if every <= _WHOLES:
        return next(iter(every)) if len(every) == 1 else "i64"
    return None
