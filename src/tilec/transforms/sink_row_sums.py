"""Sinks the exchange between lanes that a row sum takes out of the loop that accumulates it.

Before:   l = 0; for … { r = sum of t along its columns; l = l * c + r }; use l
After:    l = 0, a column for each lane
          for … { r = sums over the columns of one lane; l = l * c + r }; use the sum of l

Four lanes hold a row of an accumulator (`layout/wgmma.py`), so that summing over the columns of
each takes no shuffles. This rounds in another order than the source, which only `fast_math` allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ir.rewrite import loop_with
from tilec.layout.wgmma import GROUP_COLUMNS, ROW_LANES
from tilec.ops.build import broadcast_along, constant, regroup, shape_of
from tilec.ops.lower_control import terminator_of
from tilec.ops.reduce import reduced
from tilec.types import F32


@dataclass(frozen=True)
class _Sum:
    """A variable of a loop that accumulates row sums: its number, the operations between it and
    what is yielded, in order, and the reductions that they use."""

    number: int
    ops: tuple[ir.OpView, ...]
    reductions: tuple[ir.OpView, ...]


def sink_row_sums(loop: ir.OpView) -> ir.OpView | None:
    """The loop that replaces this one; None if it accumulates no row sums, and stays.

    Assumes:  the rows that are summed lie as those of its products
    """
    found = [one for n in range(len(loop.results)) if (one := _sum_of(loop, n)) is not None]
    if not found:
        return None
    for one in found:
        _widen(one)
    return _with_lanes(loop, [one.number for one in found])


# ---- which variables are row sums ----------------------------------------------------------------


def _sum_of(loop: ir.OpView, number: int) -> _Sum | None:
    [body] = loop.regions[0].blocks
    carried, handed = body.arguments[number + 1], terminator_of(body).operands[number]
    shape = shape_of(carried)
    if len(shape) != 2 or shape[1] != 1 or not _is_zero(list(loop.operands)[3 + number]):
        return None
    if not isinstance(ir.RankedTensorType(carried.type).element_type, ir.F32Type):
        return None
    ops: list[ir.OpView] = []
    reductions: list[ir.OpView] = []
    if not _is_linear(handed, carried, body, ops, reductions) or not reductions:
        return None
    # Nothing else may use a value that is no longer the sum of a whole row.
    own = [*ops, *reductions, terminator_of(body)]
    used = [carried, *(op.results[0] for op in own[:-1])]
    if any(use.owner.opview not in own for value in used for use in value.uses):
        return None
    if any(len(list(value.uses)) > 1 for value in used):
        return None
    return _Sum(number, tuple(ops), tuple(reductions))


def _is_linear(
    value: ir.Value,
    carried: ir.Value,
    body: ir.Block,
    ops: list[ir.OpView],
    reductions: list[ir.OpView],
) -> bool:
    """Whether a value is a linear combination of the variable and of row sums."""
    if value == carried:
        return True
    if isinstance(value.owner, ir.Block) or value.owner.operation.block != body:
        return False
    op = value.owner.opview
    match op.operation.name:
        case "tensor.expand_shape" if _reduction(op) is not None:
            reductions += [op.operands[0].owner.opview, op]
            return True
        case "arith.addf":
            taken = list(op.operands)
        case "arith.mulf" | "math.fma":
            taken = [*_scaled(op, carried, body), *list(op.operands)[2:]]
        case _:
            return False
    if not taken or not all(_is_linear(v, carried, body, ops, reductions) for v in taken):
        return False
    ops.append(op)
    return True


def _scaled(op: ir.OpView, carried: ir.Value, body: ir.Block) -> list[ir.Value]:
    """The operand of a multiplication that is linear, if the other one is a scale."""
    factors = list(op.operands)[:2]
    sums = [value for value in factors if _is_linear(value, carried, body, [], [])]
    return sums if len(sums) == 1 else []


def _reduction(op: ir.OpView) -> ir.OpView | None:
    """The row sum, from zero, that an operation reshapes."""
    value = op.operands[0]
    if isinstance(value.owner, ir.Block) or value.owner.name != "linalg.reduce":
        return None
    reduce = value.owner.opview
    [block] = reduce.regions[0].blocks
    kinds = [inner.operation.name for inner in block.operations]
    axes = list(ir.DenseI64ArrayAttr(reduce.attributes["dimensions"]))
    shape = shape_of(reduce.operands[0])
    if kinds != ["arith.addf", "linalg.yield"] or axes != [1] or len(shape) != 2:
        return None
    return reduce if shape[1] % GROUP_COLUMNS == 0 and _is_zero(reduce.operands[1]) else None


def _is_zero(value: ir.Value) -> bool:
    if isinstance(value.owner, ir.Block):
        return False
    if value.owner.name == "tensor.splat":
        return _is_zero(value.owner.operands[0])
    if value.owner.name != "arith.constant":
        return False
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        return attribute.is_splat and bool(attribute.get_splat_value().value == 0)
    return isinstance(attribute, ir.FloatAttr) and attribute.value == 0


# ---- the rewrite ---------------------------------------------------------------------------------


def _widen(one: _Sum) -> None:
    """Has the operations compute a column for each lane."""
    lanes: dict[ir.Value, ir.Value] = {}
    for reduce, expand in zip(one.reductions[::2], one.reductions[1::2], strict=True):
        tile = reduce.operands[0]
        rows, columns = shape_of(tile)
        near = GROUP_COLUMNS // ROW_LANES
        with reduce.location, ir.InsertionPoint(reduce):
            parts = regroup(tile, F32, (rows, columns // GROUP_COLUMNS, ROW_LANES, near))
            for axis in (3, 1):
                [parts] = reduced([parts], [_zero()], [axis], _added)
        lanes[expand.results[0]] = parts
    for op in one.ops:
        for place, value in enumerate(op.operands):
            if value in lanes:
                op.operands[place] = lanes[value]
    made = {op.results[0] for op in one.ops}
    [carried] = [v for op in one.ops for v in op.operands if isinstance(v.owner, ir.Block)]
    for op in one.ops:
        rows = shape_of(op.results[0])[0]
        kind = ir.RankedTensorType.get((rows, ROW_LANES), ir.F32Type.get())
        for place, value in enumerate(op.operands):
            if shape_of(value) == (rows, 1) and value not in made and value != carried:
                with op.location, ir.InsertionPoint(op):
                    wide = broadcast_along(regroup(value, F32, (rows,)), kind, [1])
                op.operands[place] = wide
        op.results[0].set_type(kind)
    for op in reversed(one.reductions):
        op.operation.erase()


def _zero() -> ir.Value:
    """The identity of addition: unlike 0.0 it keeps -0.0."""
    return constant(F32, -0.0)


def _added(sofar: Sequence[ir.Value], item: Sequence[ir.Value]) -> Sequence[ir.Value]:
    return [arith.addf(sofar[0], item[0])]


def _with_lanes(loop: ir.OpView, numbers: Sequence[int]) -> ir.OpView:
    """The loop with a column for each lane in these variables, and their sums after it."""
    starts = list(loop.operands)[3:]
    with loop.location, ir.InsertionPoint(loop):
        for number in numbers:
            starts[number] = constant(F32, 0.0, (shape_of(starts[number])[0], ROW_LANES))
    made = loop_with(loop, starts)
    with loop.location, ir.InsertionPoint.after(made.operation):
        for number, (old, new) in enumerate(zip(loop.results, made.results, strict=True)):
            whole = new
            if number in numbers:
                [rows] = reduced([new], [_zero()], [1], _added)
                whole = regroup(rows, F32, shape_of(old))
            old.replace_all_uses_with(whole)
    loop.operation.erase()
    return made
