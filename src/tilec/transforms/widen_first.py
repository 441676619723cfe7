"""Bytes that become 16-bit integers do so before what is done to their bits, not after.

Before:   extui (x >> 4), extui (x & 15): each made of bytes, then widened
After:    extui x, once; then `>>` and `&` of what is two in a register, as what follows is

    w = extui x; (w >> 4), (w & 15)

Sound: a byte with zeros above it has zeros there after it is shifted right, or after `&`, `|` and
`^` with another one.
"""

from __future__ import annotations

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.build import known_integer

_ON_BITS = ("arith.andi", "arith.ori", "arith.xori", "arith.shrui")


def widen_first(function: ir.OpView) -> None:
    """Rewrites the function in place; needs a current context and location."""
    made: dict[ir.Value, ir.Value] = {}
    for op in list(operations(function)):
        if op.operation.name != "arith.extui" or not _are_bytes_to_halves(op):
            continue
        wide = _widened(op.operands[0], op, made)
        op.results[0].replace_all_uses_with(wide)
        before = op.operands[0]
        op.operation.erase()
        _erase_unused(before)


def _erase_unused(value: ir.Value) -> None:
    """What was done to bytes, where that is done to halves now."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name not in _ON_BITS:
        return
    if any(True for _ in value.uses):
        return
    before = owner.operands[0]
    owner.operation.erase()
    _erase_unused(before)


def _are_bytes_to_halves(op: ir.OpView) -> bool:
    source, target = op.operands[0].type, op.results[0].type
    if not isinstance(source, ir.RankedTensorType):
        return False
    return str(source.element_type) == "i8" and str(target.element_type) == "i16"


def _widened(value: ir.Value, user: ir.OpView, made: dict[ir.Value, ir.Value]) -> ir.Value:
    """The value as 16 bits; made where it is, for all who ask."""
    if value in made:
        return made[value]
    kind = ir.RankedTensorType(value.type)
    target = ir.RankedTensorType.get(kind.shape, ir.IntegerType.get_signless(16), kind.encoding)
    owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if (
        owner is not None
        and owner.name in _ON_BITS
        and known_integer(owner.operands[1]) is not None
    ):
        left = _widened(owner.operands[0], owner.opview, made)
        with owner.location, ir.InsertionPoint.after(owner):
            number = (known_integer(owner.operands[1]) or 0) & 0xFF
            element = ir.IntegerAttr.get(ir.IntegerType.get_signless(16), number)
            constant = ir.Operation.create(
                "arith.constant",
                results=[target],
                attributes={"value": ir.DenseElementsAttr.get_splat(target, element)},
            )
            done = ir.Operation.create(
                owner.name, results=[target], operands=[left, constant.results[0]]
            )
            # What it is made of stands before it.
            constant.move_before(done)
        made[value] = done.results[0]
        return made[value]
    where = ir.InsertionPoint.at_block_begin(value.owner) if owner is None else None
    with user.location, where or ir.InsertionPoint.after(owner):
        done = ir.Operation.create("arith.extui", results=[target], operands=[value])
    made[value] = done.results[0]
    return made[value]
