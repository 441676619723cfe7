"""Extents and preconditions as integer sets: what of an expression isl can take.

Division and remainder are only taken of what is not negative, where truncation and floor agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilec.ops.rules import HostExpression


class NotAffineError(Exception):
    """An expression that is no affine one."""


@dataclass(frozen=True)
class Affine:
    """isl's text of an expression; `counts` tells that it is never negative."""

    text: str
    counts: bool


_COMPARISONS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def affine(expression: HostExpression, variables: Mapping[str, Affine]) -> Affine:
    """An integer expression. Raises NotAffineError."""
    match expression:
        case bool() | float():
            raise NotAffineError
        case int():
            return Affine(str(expression), expression >= 0)
        case str() if expression in variables:
            return variables[expression]
        case ("add" | "sub" as name, a, b):
            left, right = affine(a, variables), affine(b, variables)
            sign = "+" if name == "add" else "-"
            counts = name == "add" and left.counts and right.counts
            return Affine(f"({left.text} {sign} {right.text})", counts)
        case ("mul", a, int(factor)) | ("mul", int(factor), a):
            inner = affine(a, variables)
            return Affine(f"({factor} * {inner.text})", inner.counts and factor >= 0)
        case ("div" | "rem" | "ceildiv" as name, a, int(divisor)) if divisor > 0:
            return _divided(name, affine(a, variables), divisor)
    raise NotAffineError


def _divided(name: str, value: Affine, divisor: int) -> Affine:
    if not value.counts:
        raise NotAffineError
    if name == "rem":
        return Affine(f"({value.text} mod {divisor})", True)
    added = divisor - 1 if name == "ceildiv" else 0
    return Affine(f"floor(({value.text} + {added}) / {divisor})", True)


def condition(expression: HostExpression, variables: Mapping[str, Affine]) -> str:
    """A condition in isl's text. Raises NotAffineError."""
    match expression:
        case True:
            return "0 = 0"
        case False:
            return "0 = 1"
        case ("and" | "or" as name, a, b):
            return f"({condition(a, variables)} {name} {condition(b, variables)})"
        case ("not", a):
            return f"not ({condition(a, variables)})"
        case (str(name), a, b) if name in _COMPARISONS:
            left, right = affine(a, variables), affine(b, variables)
            return f"({left.text} {_COMPARISONS[name]} {right.text})"
    raise NotAffineError
