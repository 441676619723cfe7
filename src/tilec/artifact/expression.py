"""Integer expressions over extents and scalars: grids and `requires!`, as launchers evaluate them.

An expression is plain data, the same in Python (tuples) and in JSON (arrays):

    5                         a number (`true`, `false` and floats are numbers too)
    "N"                       the value of a `Dim` or of a scalar parameter
    ("ceildiv", "N", 1024)    an operation of `OPERATIONS`, then its operands

Arithmetic is that of docs/language.md: division truncates and is total (`x / 0` is 0, `x % 0` is
`x`). An operation whose result does not fit in 64 bits has none: nothing is launched where `usize`
would wrap. Where a program computes in another type, the result is put through that type's
operation, which keeps the low bits of what has any number of them (`("i32", …)`). Floats occur as
scalars and literals, and only in comparisons, `min`, `max`, `neg`, `abs` and `select`. `and`, `or`
and `select` evaluate only what they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, Union

Value: TypeAlias = Union[bool, int, float]  # noqa: UP007  (evaluated at run time on Python 3.10)
Expression: TypeAlias = "bool | int | float | str | tuple[Expression, ...]"


class ExpressionError(ValueError):
    """The data is no expression, or does not evaluate."""


class DivisionByZero(ExpressionError):  # noqa: N818  (named as Rust and Python name it)
    """A `requires!` divides by zero, and so does not hold."""


class TooLarge(ExpressionError):  # noqa: N818  (a value, not a fault of the expression)
    """A number does not fit in 64 bits."""


@dataclass(frozen=True)
class Operation:
    """One operation: how many operands it has, and how it is written."""

    arity: int
    symbol: str
    precedence: int = 0  # of a binary operator, as in Rust; 0: written as a method
    apply: Callable[..., Value] | None = None  # None: decides itself which operands it evaluates


def truncated_quotient(a: int, b: int) -> int:
    """`a / b` toward zero; 0 where `b` is 0."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder(a: int, b: int) -> int:
    """What `truncated_quotient` leaves: `a` where `b` is 0, else of the sign of `a`."""
    return a - truncated_quotient(a, b) * b


def ceiling_quotient(a: int, b: int) -> int:
    """`a / b` rounded up; 0 where `b` is 0."""
    return -(-a // b) if b else 0


def least(a: int | float, b: int | float) -> int | float:
    """The smaller one, as `min` of the language: the number where one is NaN, -0.0 below 0.0."""
    if a != a or b < a:
        return b
    return -(-a - b) if a == b == 0 else a


def greatest(a: int | float, b: int | float) -> int | float:
    """The larger one, as `max` of the language."""
    if a != a or b > a:
        return b
    return a + b if a == b == 0 else a


def _kept_bits(bits: int, signed: bool) -> Callable[[int], int]:
    def keep(value: int) -> int:
        low = value & ((1 << bits) - 1)
        return low - (1 << bits) if signed and low >> (bits - 1) else low

    return keep


_CONVERSIONS = {
    f"{'i' if signed else 'u'}{bits}": _kept_bits(bits, signed)
    for bits in (8, 16, 32, 64)
    for signed in (True, False)
}

OPERATIONS: dict[str, Operation] = {
    "mul": Operation(2, "*", 9, lambda a, b: a * b),
    "div": Operation(2, "/", 9, truncated_quotient),
    "rem": Operation(2, "%", 9, remainder),
    "add": Operation(2, "+", 8, lambda a, b: a + b),
    "sub": Operation(2, "-", 8, lambda a, b: a - b),
    "shl": Operation(2, "<<", 7, lambda a, b: a << (b & 63)),
    "shr": Operation(2, ">>", 7, lambda a, b: a >> (b & 63)),
    "bitand": Operation(2, "&", 6, lambda a, b: a & b),
    "bitxor": Operation(2, "^", 5, lambda a, b: a ^ b),
    "bitor": Operation(2, "|", 4, lambda a, b: a | b),
    "eq": Operation(2, "==", 3, lambda a, b: a == b),
    "ne": Operation(2, "!=", 3, lambda a, b: a != b),
    "lt": Operation(2, "<", 3, lambda a, b: a < b),
    "le": Operation(2, "<=", 3, lambda a, b: a <= b),
    "gt": Operation(2, ">", 3, lambda a, b: a > b),
    "ge": Operation(2, ">=", 3, lambda a, b: a >= b),
    "and": Operation(2, "&&", 2),
    "or": Operation(2, "||", 1),
    "ceildiv": Operation(2, "div_ceil", 0, ceiling_quotient),
    "min": Operation(2, "min", 0, least),
    "max": Operation(2, "max", 0, greatest),
    "abs": Operation(1, "abs", 0, abs),
    "neg": Operation(1, "-", 0, lambda a: -a),
    "not": Operation(1, "!", 0, lambda a: not a),
    "select": Operation(3, "select"),
    **{name: Operation(1, name, 0, keep) for name, keep in _CONVERSIONS.items()},
}

_DIVIDING = frozenset({"div", "rem", "ceildiv"})
# Those whose results may have more bits than their operands.
_GROWING = frozenset({"add", "sub", "mul", "div", "ceildiv", "neg", "abs", "shl"})
# Those that launchers evaluate of floats, beside `and`, `or` and `select`, which choose.
TAKES_FLOATS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "min", "max", "neg", "abs"})
# Readers take several calls a level, and have Python's thousand in all.
DEEPEST = 100

_HALF = 1 << 63

_PREFIX = 10
_POSTFIX = 11


def evaluate(expression: Expression, values: Mapping[str, Value], *, total: bool = True) -> Value:
    """The value of an expression where each name has the value that `values` gives it.

    Raises:   ExpressionError for a name without a value, an unknown operation, a wrong operand
              count, arithmetic on floats; TooLarge; DivisionByZero unless `total`
    """
    return _value(expression, values, total, is_exact=False)


def evaluate_exactly(expression: Expression, values: Mapping[str, Value]) -> Value:
    """As `evaluate`, of numbers that no program computes: they may be of any size."""
    return _value(expression, values, True, is_exact=True)


def must_fit(name: str, *, is_converted: bool) -> bool:
    """Whether the result of an operation is to fit in 64 bits; `is_converted`: it is what a
    conversion is of."""
    return name in _GROWING and not is_converted


# Those of two numbers of 64 bits that need more than 127.
WIDEST = frozenset({"mul", "shl"})


def is_conversion(name: str) -> bool:
    """Whether an operation keeps the low bits of a number."""
    return name in _CONVERSIONS


def _value(
    expression: Expression,
    values: Mapping[str, Value],
    total: bool,
    *,
    is_exact: bool,
    is_converted: bool = False,
) -> Value:
    if isinstance(expression, str):
        if expression not in values:
            raise ExpressionError(f"`{expression}` has no value")
        return values[expression]
    if not isinstance(expression, tuple):
        return expression
    name, operation, operands = _parts(expression)

    def value(operand: Expression) -> Value:
        return _value(operand, values, total, is_exact=is_exact, is_converted=is_conversion(name))

    if operation.apply is None:
        return _chosen(name, operands, value)
    arguments = [*map(value, operands)]
    if name not in TAKES_FLOATS and any(isinstance(x, float) for x in arguments):
        raise ExpressionError(f"`{operation.symbol}` of floats is not evaluated by launchers")
    if name in _DIVIDING and not total and arguments[1] == 0:
        raise DivisionByZero(f"`{text_of(expression)}` divides by zero")
    result = operation.apply(*arguments)
    if is_exact or not must_fit(name, is_converted=is_converted) or isinstance(result, float):
        return result
    if not -_HALF <= result < _HALF:
        raise TooLarge(too_large(expression, values))
    return result


def holds(requirement: Expression, values: Mapping[str, Value]) -> bool:
    """Whether a `requires!` is met; not if it divides by zero or is too large to compute."""
    try:
        return bool(evaluate(requirement, values, total=False))
    except (DivisionByZero, TooLarge):
        return False


def divides_by_zero(expression: Expression) -> bool:
    """Whether it divides by the number 0 whatever the names in it are."""
    if not isinstance(expression, tuple):
        return False
    name, _, operands = _parts(expression)
    if name in ("and", "or"):
        return divides_by_zero(operands[0])
    if name == "select":
        return divides_by_zero(operands[0]) or all(map(divides_by_zero, operands[1:]))
    by_zero = name in _DIVIDING and not isinstance(operands[1], str | tuple) and operands[1] == 0
    return by_zero or any(map(divides_by_zero, operands))


def names_in(expression: Expression) -> Iterator[str]:
    """The names that an expression mentions, from the left, repeats included."""
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, tuple):
        for operand in _parts(expression)[2]:
            yield from names_in(operand)


def values_in(expression: Expression, values: Mapping[str, Value]) -> str:
    """What the names in an expression are, to follow what is said of it."""
    names = dict.fromkeys(names_in(expression))
    return f", where {', '.join(f'{n} = {values[n]}' for n in names)}" if names else ""


def too_large(expression: Expression, values: Mapping[str, Value]) -> str:
    """What launchers say of a number that they cannot compute, be it all of it or a part."""
    return f"`{text_of(expression)}` is too large to compute{values_in(expression, values)}"


def is_too_deep(expression: Expression) -> bool:
    """Whether its operations are more than DEEPEST deep in each other."""
    waiting = [(expression, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > DEEPEST:
            return True
        if isinstance(one, tuple):
            waiting += ((operand, depth + 1) for operand in one[1:])
    return False


def text_of(expression: Expression) -> str:
    """The expression as a `.tile` program would write it."""
    return _text(expression)[0]


def _parts(expression: tuple[Expression, ...]) -> tuple[str, Operation, tuple[Expression, ...]]:
    name = expression[0] if expression else None
    operation = OPERATIONS.get(name) if isinstance(name, str) else None
    if operation is None or not isinstance(name, str):
        raise ExpressionError(f"expected an operation, got {name!r}")
    operands = expression[1:]
    if len(operands) != operation.arity:
        raise ExpressionError(f"`{name}` has {operation.arity} operands, got {len(operands)}")
    return name, operation, operands


def _chosen(
    name: str, operands: tuple[Expression, ...], value: Callable[[Expression], Value]
) -> Value:
    first = bool(value(operands[0]))
    if name == "select":
        return value(operands[1 if first else 2])
    if first == (name == "or"):
        return first
    return bool(value(operands[1]))


def _text(expression: Expression) -> tuple[str, int]:
    """The text, and the precedence of what binds it."""
    if isinstance(expression, bool):
        return ("true" if expression else "false"), _POSTFIX
    if isinstance(expression, (int, float)):
        return str(expression), (_PREFIX if expression < 0 else _POSTFIX)
    if isinstance(expression, str):
        return expression, _POSTFIX
    name, operation, operands = _parts(expression)
    if name == "select":
        condition, yes, no = (_text(x)[0] for x in operands)
        return f"(if {condition} {{ {yes} }} else {{ {no} }})", _POSTFIX
    if operation.precedence:
        # Comparisons do not associate, so that both sides of one are bound tighter.
        left = operation.precedence + (operation.precedence == 3)
        return (
            f"{_bound(operands[0], left)} {operation.symbol} "
            f"{_bound(operands[1], operation.precedence + 1)}"
        ), operation.precedence
    if name in ("neg", "not"):
        return f"{operation.symbol}{_bound(operands[0], _PREFIX)}", _PREFIX
    if is_conversion(name):
        return f"({_bound(operands[0], _PREFIX)} as {name})", _POSTFIX
    rest = ", ".join(_text(x)[0] for x in operands[1:])
    return f"{_bound(operands[0], _POSTFIX)}.{operation.symbol}({rest})", _POSTFIX


def _bound(expression: Expression, precedence: int) -> str:
    text, own = _text(expression)
    return text if own >= precedence else f"({text})"
