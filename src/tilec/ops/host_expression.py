"""Integer arithmetic of the IR as expressions that a launcher evaluates: grids and `requires!`.

Each operation says itself what it is there (`OpRules.host`). Reads the IR as emitted, before MLIR's
own rewrites.

An integer of the IR has no sign. As an expression it is the signed number of its bits, so that
equal bits are equal numbers; an operation that means unsigned numbers converts (`as_unsigned`).
"""

from __future__ import annotations

from mlir import ir

from tilec.ops.registry import rules
from tilec.ops.rules import HostExpression


class NoHostExpressionError(Exception):
    """A value that a launcher cannot compute; `location` is where it is made."""

    def __init__(self, location: ir.Location, what: str) -> None:
        super().__init__(what)
        self.location = location


class UnsignedScalar(str):
    """The name of a scalar parameter of an unsigned type, of so many `bits`.

    What is cut off from a wider number is written alike (`("i8", name)`), and is not the number.
    """

    __slots__ = ("bits",)
    bits: int


def unsigned_scalar(kind: ir.Type, name: str) -> HostExpression:
    """The signed number of the bits of a parameter that has no sign."""
    scalar = UnsignedScalar(name)
    scalar.bits = _bits(kind)
    return (str(kind), scalar)


def host_expression(value: ir.Value) -> HostExpression:
    """The value in terms of what callers pass: extents and scalars, by name.

    Raises:   NoHostExpressionError if the program reads memory, its own index or the like for it
    """
    if isinstance(value.owner, ir.Block):
        op = value.owner.owner.opview
        found = rules()[op.operation.name].argument_host(op, value)
    else:
        op = value.owner.opview
        found = rules()[op.operation.name].host(op, value.result_number, host_expression)
    if found is None:
        raise NoHostExpressionError(op.location, f"`{op.operation.name}`")
    return found


def as_signed(
    kind: ir.Type, expression: HostExpression, *, unsigned: bool = False
) -> HostExpression:
    """The signed number of the low bits, as the IR's integer type `kind` keeps them.

    `unsigned` tells that the operands of `expression` are unsigned numbers.
    """
    if not _has_bits(kind):
        # `index` is exact, since launchers refuse extents for which it could wrap; but for shifts.
        shifted = isinstance(expression, tuple) and expression[0] == "shl"
        return ("i64", expression) if shifted else expression
    if isinstance(expression, bool | int):
        half = 1 << (_bits(kind) - 1)
        return (int(expression) + half) % (2 * half) - half
    if isinstance(expression, tuple) and _fits(kind, expression, unsigned=unsigned):
        return expression
    return (str(kind), expression)


def as_unsigned(kind: ir.Type, expression: HostExpression) -> HostExpression:
    """The unsigned number of the same bits. An `index` is below 2^63 and stays as it is."""
    if not _has_bits(kind):
        return expression
    match expression:
        case int():
            return int(expression) % (1 << _bits(kind))
        case ("select", condition, left, right):
            return ("select", condition, as_unsigned(kind, left), as_unsigned(kind, right))
        case (name, UnsignedScalar() as scalar) if name == str(kind):
            return scalar if scalar.bits <= _bits(kind) else (f"u{_bits(kind)}", scalar)
        case (name, operand) if name == str(kind):
            return (f"u{_bits(kind)}", operand)
    return (f"u{_bits(kind)}", expression)


def _has_bits(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType) and str(kind) != "i1"


def _bits(kind: ir.Type) -> int:
    return int(ir.IntegerType(kind).width)


def _fits(kind: ir.Type, expression: tuple[HostExpression, ...], *, unsigned: bool) -> bool:
    """Whether the result is always a signed number of its operands' type."""
    name, *operands = expression
    if name in ("add", "sub", "mul", "shl"):
        return False
    if name == "rem" and unsigned:
        return isinstance(operands[1], int) and 0 < operands[1] <= 1 << (_bits(kind) - 1)
    if name in ("div", "ceildiv"):
        # MIN / -1 does not fit, nor does a large unsigned number itself.
        return isinstance(operands[1], int) and operands[1] > (1 if unsigned else 0)
    return not unsigned
