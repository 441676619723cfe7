"""`a & b` as arithmetic on whole numbers, which is what proofs follow.

The bits of `x` from bit k on, w of them, are `floor(x / 2^k) - 2^w floor(x / 2^(k + w))`, for
numbers below zero too, in two's complement. `a | b` and `a ^ b` follow by `a + b - (a & b)` and
`a + b - 2 (a & b)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import gcd

from mlir import ir

from tilec.integers.formula import both, equal, within
from tilec.integers.number import Number, always, by_cases, combined
from tilec.integers.polynomial import ONE
from tilec.ops.abstract import Reasoning

# A constant with more runs of ones than this is not followed.
_RUNS = 3


def bits_of_both(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number | None:
    """`a & b`; None if that is not followed."""
    a, b = (reasoning.few_values(x) for x in (a, b))
    if _are_constants(a) or _are_constants(b):
        value, mask = (b, a) if not _are_constants(b) else (a, b)
        found = [_masked(reasoning, op, value, case.value.constant) for case in mask.cases]
        if any(x is None for x in found):
            return None
        by_mask = {c.value: x for c, x in zip(mask.cases, found, strict=True) if x is not None}
        return by_cases(lambda m: by_mask[m], mask)
    if a == b:
        return a
    if _share_no_bit(reasoning, a, b) or _share_no_bit(reasoning, b, a):
        return always(0)
    for value, other in ((a, b), (b, a)):
        if _is_one_less(reasoning, other, value):
            return reasoning.tested_for_power(value, op)
    for value, power in ((a, b), (b, a)):
        if reasoning.is_power_of_two(power):
            return _bit(reasoning, op, value, power)
        above = combined(lambda x: x + 1, power)
        if reasoning.is_power_of_two(above):
            return _rest(reasoning, op, value, above)
    return None


def _are_constants(value: Number) -> bool:
    return all(case.value.is_constant for case in value.cases)


def _masked(reasoning: Reasoning, op: ir.OpView, value: Number, mask: int) -> Number | None:
    """`value & mask`, by the runs of ones in the mask."""
    if value.known is not None:
        return always(value.known & mask)
    if mask < 0:
        others = _masked(reasoning, op, value, ~mask)
        return None if others is None else combined(lambda x, y: x - y, value, others)
    runs = list(_runs(mask))
    if len(runs) > _RUNS:
        return None
    found = always(0)
    for low, width in runs:
        bits = _rest(reasoning, op, _above(reasoning, op, value, 1 << low), always(1 << width))
        found = reasoning.few(combined(lambda x, y, low=low: x + y.scaled(1 << low), found, bits))
    return found


def _runs(mask: int) -> Iterator[tuple[int, int]]:
    """The first bit and the length of each run of ones."""
    place = 0
    while mask >> place:
        if not mask >> place & 1:
            place += 1
            continue
        ones = ~(mask >> place)
        width = (ones & -ones).bit_length() - 1
        yield place, width
        place += width


def _above(reasoning: Reasoning, op: ir.OpView, value: Number, power: int) -> Number:
    return value if power == 1 else reasoning.quotient(value, always(power), "floor", op)


def _bit(reasoning: Reasoning, op: ir.OpView, value: Number, power: Number) -> Number:
    """`value & 2^k`: that bit, if it is set."""
    digit = reasoning.quotient(value, power, "floor", op)
    last = _rest(reasoning, op, digit, always(2))
    # By cases, so that no product of unknowns is in it.
    return by_cases(lambda x: reasoning.choose(equal(x, 1), power, always(0)), last)


def _rest(reasoning: Reasoning, op: ir.OpView, value: Number, power: Number) -> Number:
    """The bits of a value below a power of two."""
    quotient = reasoning.quotient(value, power, "floor", op)
    return reasoning.few(combined(lambda x, q, p: x - q * p, value, quotient, power))


def _share_no_bit(reasoning: Reasoning, high: Number, low: Number) -> bool:
    """Whether every value of `high` is a multiple of a power of two that `low` is below."""
    factor = reduce(gcd, (c for case in high.cases for _, c in case.value.terms), 0)
    power = factor & -factor
    fits = (both(*case.when, within(case.value, 0, power - 1)) for case in low.cases)
    return power > 1 and len(low.cases) == 1 and all(map(reasoning.decide, fits))


def _is_one_less(reasoning: Reasoning, value: Number, than: Number) -> bool:
    """Whether it is `than - 1`, unless that wraps, and then `than` is no power of two."""
    left, right = value.only, than.only
    return left is not None and right is not None and right - reasoning.exact(left) == ONE
