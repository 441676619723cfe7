"""Whether a condition holds wherever others do: enough for the forms that `requires!` has.

An answer of "yes" is right; "no" may only mean that it is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tilec.artifact.expression import Expression, holds, must_fit, names_in

_FLIPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_UNBOUNDED = float("inf")


@dataclass(frozen=True)
class _Range:
    """What `of` lies in: bounds, and whether they belong to it."""

    of: Expression
    low: int | float = -_UNBOUNDED
    has_low: bool = False
    high: int | float = _UNBOUNDED
    has_high: bool = False


def implied(condition: Expression, known: Iterable[Expression]) -> bool:
    """Whether the condition holds wherever all that is known holds."""
    facts = [fact for one in known for fact in _conjuncts(one)]
    return all(_follows(part, facts) for part in _conjuncts(condition))


def renamed(expression: Expression, names: Mapping[str, Expression]) -> Expression:
    """The expression with other names, or what else stands for them, where there is something."""
    if isinstance(expression, str):
        return names.get(expression, expression)
    if isinstance(expression, tuple):
        return (expression[0], *(renamed(operand, names) for operand in expression[1:]))
    return expression


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, tuple) and condition[0] == "and":
        yield from _conjuncts(condition[1])
        yield from _conjuncts(condition[2])
    elif condition is not True:
        yield condition


def _follows(condition: Expression, facts: list[Expression]) -> bool:
    if condition in facts or _other_way(condition) in facts:
        return True
    if isinstance(condition, tuple) and condition[0] == "or":
        _, first, second = condition
        # What stands first is evaluated, and a `requires!` that has no value does not hold.
        return _follows(first, facts) or (not _may_fail(first) and _follows(second, facts))
    if not any(names_in(condition)):
        return holds(condition, {})
    return any(_is_multiple(fact, condition) or _is_narrower(fact, condition) for fact in facts)


def _other_way(condition: Expression) -> Expression:
    """`M == N` of `N == M`."""
    match condition:
        case ("eq", one, other):
            return "eq", other, one
    return condition


def _may_fail(condition: Expression) -> bool:
    """Whether it may divide by zero, or be too large to compute."""
    if not isinstance(condition, tuple):
        return False
    name, *operands = condition
    if name in ("div", "rem", "ceildiv"):
        # By -1 the least number has a quotient that does not fit.
        divisor = operands[1]
        fails = not isinstance(divisor, int) or divisor < 1
    else:
        fails = isinstance(name, str) and must_fit(name, is_converted=False)
    return fails or any(map(_may_fail, operands))


def _is_multiple(fact: Expression, condition: Expression) -> bool:
    """`N % 64 == 0`, of which `N % 32 == 0` follows."""
    one, other = _divisor(fact), _divisor(condition)
    return bool(one and other and one[0] == other[0] and one[1] % other[1] == 0)


def _divisor(condition: Expression) -> tuple[Expression, int] | None:
    match condition:
        case ("eq", ("rem", dividend, int(divisor)), 0) if divisor > 0:
            return dividend, divisor
        case _:
            return None


def _is_narrower(fact: Expression, condition: Expression) -> bool:
    """`N <= 64`, of which `N < 100` follows."""
    one, other = _range(fact), _range(condition)
    if one is None or other is None or one.of != other.of:
        return False
    above = one.low > other.low or (one.low == other.low and (other.has_low or not one.has_low))
    below = one.high < other.high or (
        one.high == other.high and (other.has_high or not one.has_high)
    )
    return above and below


def _range(condition: Expression) -> _Range | None:
    match condition:
        case (str(name), int() | float() as bound, (str() | tuple()) as of) if name in _FLIPPED:
            return _range((_FLIPPED[name], of, bound))
        case ("lt", of, int() | float() as bound):
            return _Range(of, high=bound)
        case ("le", of, int() | float() as bound):
            return _Range(of, high=bound, has_high=True)
        case ("gt", of, int() | float() as bound):
            return _Range(of, low=bound)
        case ("ge", of, int() | float() as bound):
            return _Range(of, low=bound, has_low=True)
        case ("eq", of, int() | float() as bound):
            return _Range(of, bound, True, bound, True)
        case _:
            return None
