"""Quotients as unknowns that are defined by what they leave."""

from __future__ import annotations

from tilec.integers.formula import Formula, at_least, both, either, less
from tilec.integers.polynomial import Polynomial


def is_floor(quotient: Polynomial, a: Polynomial, b: Polynomial) -> Formula:
    """`quotient = floor(a / b)` for b >= 1."""
    rest = a - quotient * b
    return both(at_least(rest, 0), less(rest, b))


def is_ceiling(quotient: Polynomial, a: Polynomial, b: Polynomial) -> Formula:
    """`quotient = ceil(a / b)` for b >= 1."""
    over = quotient * b - a
    return both(at_least(over, 0), less(over, b))


def is_truncated(quotient: Polynomial, a: Polynomial, b: Polynomial) -> Formula:
    """`quotient = a / b` toward zero for b >= 1."""
    return either(
        both(at_least(a, 0), is_floor(quotient, a, b)),
        both(at_least(-a, 1), is_ceiling(quotient, a, b)),
    )
