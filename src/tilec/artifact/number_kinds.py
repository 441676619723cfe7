"""Which expressions are floats, and which compute with floats what launchers do not."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tilec.artifact.expression import OPERATIONS, TAKES_FLOATS, Expression
from tilec.artifact.signature import Parameter, number_kind


def real_names(parameters: Iterable[Parameter]) -> frozenset[str]:
    """The scalars that are floats."""
    return frozenset(
        p.name for p in parameters if not p.is_tensor and number_kind(p.element) == "real"
    )


def fault_of_number(
    expression: Expression, reals: Collection[str], *, may_be_real: bool = True
) -> str | None:
    """What is wrong with an expression whose operations and names are known."""
    try:
        is_real = _is_real(expression, reals)
    except _RealOperandError as error:
        return f"computes `{OPERATIONS[str(error)].symbol}` of floats"
    return "is a float" if is_real and not may_be_real else None


class _RealOperandError(Exception):
    """An operation of integers is given a float; the message is its name."""


def _is_real(expression: Expression, reals: Collection[str]) -> bool:
    if isinstance(expression, str):
        return expression in reals
    if not isinstance(expression, tuple):
        return isinstance(expression, float)
    name, *operands = expression
    are_real = [_is_real(operand, reals) for operand in operands]
    match name:
        case "and" | "or" | "eq" | "ne" | "lt" | "le" | "gt" | "ge":
            return False
        case "select":
            return any(are_real[1:])
        case str() if any(are_real) and name not in TAKES_FLOATS:
            raise _RealOperandError(name)
    return any(are_real)
