"""What a launcher can compute: expressions over extents, scalar parameters and constants."""

from __future__ import annotations

from tilec.frontend import typed
from tilec.ops.call import Form
from tilec.types import TileType

# Methods on scalars that launchers know; every operator is known.
_METHODS = frozenset(
    (
        "div_ceil", "ilog2", "is_power_of_two", "min", "max", "abs", "clamp", "rem_euclid", "to",
        "eq", "ne", "lt", "le", "gt", "ge",
    )
)  # fmt: skip


def is_host(value: typed.Expression) -> bool:
    """Whether a launcher can compute a value before anything runs."""
    if not isinstance(value.type, TileType) or not value.type.is_scalar:
        return False
    match value:
        case typed.Literal() | typed.DimValue():
            return True
        case typed.Read(local=local):
            return local.host
        case typed.ShortCircuit(left=left, right=right):
            return is_host(left) and is_host(right)
        case typed.Operate(operation=operation, name=name, arguments=arguments):
            known = operation.form is Form.OPERATOR or (
                operation.form is Form.METHOD and name in _METHODS
            )
            return known and all(map(is_host, arguments))
    return False
