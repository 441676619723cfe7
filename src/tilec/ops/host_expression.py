"""Integer arithmetic of the IR as expressions that a launcher evaluates: grids and `requires!`.

Reads the IR as emitted, before MLIR's own rewrites. The emitter guards each division with selects,
so that the machine's is total; the launcher's is total by itself and wants to know of a zero
divisor, so guards are taken off again here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mlir import ir

# As `tilec.artifact.expression` has it: numbers, names, and tuples of an operation and its
# operands.
HostExpression: TypeAlias = "bool | int | float | str | tuple[HostExpression, ...]"

_PLAIN = {
    "arith.minsi": "min", "arith.maxsi": "max", "arith.minui": "min", "arith.maxui": "max",
    "arith.minnumf": "min", "arith.maxnumf": "max", "arith.negf": "neg",
    "arith.minimumf": "min", "arith.maximumf": "max", "math.absf": "abs", "math.absi": "abs",
    "arith.divsi": "div", "arith.divui": "div", "arith.remsi": "rem", "arith.remui": "rem",
    "arith.ceildivsi": "ceildiv", "arith.ceildivui": "ceildiv", "arith.select": "select",
}  # fmt: skip
_WRAPPING = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.shli": "shl",
    "arith.shrsi": "shr", "arith.shrui": "shr", "arith.andi": "bitand", "arith.ori": "bitor",
    "arith.xori": "bitxor",
}  # fmt: skip
_LOGICAL = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "ne"}
_DIVISIONS = ("div", "rem", "ceildiv")
# MLIR's numbers of arith.cmpi predicates: eq ne slt sle sgt sge ult ule ugt uge.
_INTEGER_PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")
_FIRST_UNSIGNED = 6
# Those of arith.cmpf that the language has: ordered ones, and `une` for `!=`.
_FLOAT_PREDICATES = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 6: "ne", 13: "ne"}


class NoHostExpressionError(Exception):
    """A value that a launcher cannot compute; `location` is where it is made."""

    def __init__(self, location: ir.Location, what: str) -> None:
        super().__init__(what)
        self.location = location


def host_expression(value: ir.Value, names: Mapping[ir.Value, str]) -> HostExpression:
    """The value in terms of what callers pass; `names` are those of the kernel's arguments.

    Raises:   NoHostExpressionError if the program reads memory, its own index or the like for it
    """
    if value in names:
        return names[value]
    if isinstance(value.owner, ir.Block):
        raise NoHostExpressionError(value.owner.owner.location, "a variable of the program")
    op = value.owner.opview
    name = op.operation.name
    if name == "arith.constant":
        return _constant(op)
    if name == "scf.if":
        return _branch(op, value, names)
    operands = [host_expression(v, names) for v in op.operands]
    if _is_unsigned(op):
        operands = [_as_unsigned(v, e) for v, e in zip(op.operands, operands, strict=True)]
    if name == "arith.select":
        return _select(op, operands)
    if name in _PLAIN:
        return (_PLAIN[name], *map(_unguarded, operands))
    if name in _WRAPPING:
        return _wrapping(value, name, operands)
    if name in ("arith.index_cast", "arith.extsi", "arith.extui", "arith.trunci"):
        return _kept(value, operands[0], op.operands[0].type)
    if name == "arith.cmpi":
        return (_INTEGER_PREDICATES[_predicate(op)], *operands)
    if name == "arith.cmpf" and _predicate(op) in _FLOAT_PREDICATES:
        return (_FLOAT_PREDICATES[_predicate(op)], *operands)
    raise NoHostExpressionError(op.location, f"`{name}`")


def _predicate(op: ir.OpView) -> int:
    return int(ir.IntegerAttr(op.attributes["predicate"]).value)


def _is_unsigned(op: ir.OpView) -> bool:
    name = op.operation.name
    return name.endswith("ui") or (name == "arith.cmpi" and _predicate(op) >= _FIRST_UNSIGNED)


def _as_unsigned(value: ir.Value, operand: HostExpression) -> HostExpression:
    """Signless numbers count from zero here; those of an index are below 2^63 anyway."""
    kind = str(value.type)
    return operand if kind in ("index", "i1") else (kind.replace("i", "u"), operand)


def _constant(op: ir.OpView) -> HostExpression:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.FloatAttr):
        return float(attribute.value)
    number = int(ir.IntegerAttr(attribute).value)
    return bool(number) if str(op.results[0].type) == "i1" else number


def _wrapping(value: ir.Value, name: str, operands: list[HostExpression]) -> HostExpression:
    if str(value.type) == "i1":
        if name == "arith.xori" and operands[1] is True:
            return ("not", operands[0])
        return (_LOGICAL[name], *operands)
    exact = (_WRAPPING[name], *operands)
    # `index` is exact: launchers refuse extents for which it could wrap.
    return exact if str(value.type) == "index" else (str(value.type), exact)


def _kept(value: ir.Value, operand: HostExpression, before: ir.Type) -> HostExpression:
    """A conversion between widths: only a narrowing one changes the number."""
    kinds = (before, value.type)
    old, new = (64 if str(t) == "index" else int(ir.IntegerType(t).width) for t in kinds)
    return operand if old <= new else (str(value.type), operand)


def _branch(op: ir.OpView, value: ir.Value, names: Mapping[ir.Value, str]) -> HostExpression:
    """`&&` and `||`, and `if` as a value."""
    number = list(op.results).index(value)
    blocks = [region.blocks[0] for region in op.regions]
    ends = [block.operations[len(block.operations) - 1] for block in blocks]
    condition = host_expression(op.operands[0], names)
    then, otherwise = (host_expression(end.operands[number], names) for end in ends)
    if otherwise is False:
        return ("and", condition, then)
    if then is True:
        return ("or", condition, otherwise)
    return ("select", condition, then, otherwise)


# ---- the guards of divisions --------------------------------------------------------------------


def _select(op: ir.OpView, operands: list[HostExpression]) -> HostExpression:
    match operands:
        case [("eq", divisor, 0 | -1), _, (name, _, other) as division] if (
            name in _DIVISIONS and other == divisor
        ):
            return division
    return ("select", *operands)


def _unguarded(expression: HostExpression) -> HostExpression:
    """The divisor behind `select(d == 0, 1, d)` and `select(d == -1, 1, …)`."""
    match expression:
        case ("select", ("eq", _, 0 | -1), 1, other):
            return _unguarded(other)
    return expression
