"""What to write where one element type is and another is expected."""

from __future__ import annotations

from tilec.ops.call import GenericValue
from tilec.types import (
    BOOL,
    F32,
    STORAGE_ONLY,
    TF32,
    USIZE,
    Element,
    ElementLike,
    ElementVariable,
)


def conversion(
    actual: ElementLike,
    expected: ElementLike,
    *,
    is_scalar: bool = False,
    literal: GenericValue | None = None,
) -> str | None:
    """The help for a value that is of one type where another is expected; None if there is none.

    `literal` is the number, where the value is a literal.
    """
    if isinstance(actual, ElementVariable):
        return _as_literal(actual, expected, literal)
    if not isinstance(expected, Element):
        return None
    if expected == BOOL:
        return (
            f"compare it: `!= {zero(actual)}`" if is_scalar else f"compare it: {not_zero(actual)}"
        )
    if is_scalar and USIZE in (expected, actual) and expected not in STORAGE_ONLY:
        return f"convert it: `as {expected}`"
    return f"convert it: {converted(actual, expected)}"


def conversion_of_one(
    left: ElementLike,
    right: ElementLike,
    literals: tuple[GenericValue | None, GenericValue | None] = (None, None),
) -> str | None:
    """The help for two operands that must be of one type."""
    for own, other, literal in ((left, right, literals[0]), (right, left, literals[1])):
        if isinstance(own, ElementVariable):
            return _as_literal(own, other, literal)
    assert isinstance(left, Element) and isinstance(right, Element), "no literals"
    return f"convert one of them: {converted(None, _wider(left, right))}"


def _wider(left: Element, right: Element) -> Element:
    """The type of the two that computes, and holds more."""
    computing = [e for e in (left, right) if e != BOOL and e not in STORAGE_ONLY] or [F32]
    return max(computing, key=lambda element: (element.is_float, element.bits))


def converted(actual: ElementLike | None, target: Element) -> str:
    """The conversion as it is written."""
    through = TF32 in (actual, target) and F32 not in (actual, target) and actual is not None
    return f"`{'.to::<f32>()' if through else ''}.to::<{target}>()`"


def not_zero(element: ElementLike) -> str:
    """The comparison that tells whether a number is not zero."""
    return f"`.ne({zero(element)})`"


def zero(element: ElementLike) -> str:
    return "0.0" if element.is_float else "0"


def _as_literal(
    variable: ElementVariable, expected: ElementLike, literal: GenericValue | None
) -> str | None:
    if expected == BOOL:
        return "`true` and `false` are no numbers: write one of them, or compare"
    if variable.is_integer and expected.is_float:
        what = "an integer literal is never a float"
        return f"{what}: write {'it with a point' if literal is None else f'`{literal}.0`'}"
    if variable.is_float and expected.is_integer:
        what = "a float literal is never an integer"
        if isinstance(literal, float) and literal.is_integer():
            return f"{what}: write `{int(literal)}`"
        if literal is not None and isinstance(expected, Element):
            return f"{what}: convert the other, {converted(expected, F32)}"
        return f"{what}: write it without a point"
    return None
