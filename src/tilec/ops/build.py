"""Making operations of the IR: one builder for all, and the shapes and constants emission needs.

Everything is put at the current insertion point and carries the current location.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from mlir import ir

from tilec.ir.types import element_type, tile_type
from tilec.types import BOOL, Element, Kind, TileType

Number: TypeAlias = int | float | bool


def make(
    name: str,
    result: ir.Type | None,
    *operands: ir.Value,
    **attributes: ir.Attribute,
) -> ir.Value:
    """One operation with one result (or none: then what is returned is nothing to be used)."""
    results = [] if result is None else [result]
    op = ir.Operation.create(
        name, results=results, operands=list(operands), attributes=dict(attributes)
    )
    return op.results[0] if result is not None else None


def make_with_body(
    name: str,
    results: Sequence[ir.Type],
    operands: Sequence[ir.Value],
    body: Callable[[ir.Block], Sequence[ir.Value]],
    arguments: Sequence[ir.Type],
    terminator: str = "linalg.yield",
    **attributes: ir.Attribute,
) -> ir.Operation:
    """One operation with one single-block region, whose terminator hands over what `body` gives."""
    op = ir.Operation.create(
        name,
        results=list(results),
        operands=list(operands),
        attributes=dict(attributes),
        regions=1,
    )
    location = op.location
    block = op.regions[0].blocks.append(*arguments, arg_locs=[location] * len(arguments))
    with ir.InsertionPoint(block):
        ir.Operation.create(terminator, operands=list(body(block)))
    return op


# ---- attributes ------------------------------------------------------------------------------


def integer(value: int, bits: int = 64) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), value)


def integers(values: Sequence[int]) -> ir.Attribute:
    """`array<i64: …>`, as linalg and tensor operations take it."""
    return ir.DenseI64ArrayAttr.get(list(values))


def segments(*sizes: int) -> ir.Attribute:
    """How many operands each operand of the declaration has."""
    return ir.DenseI32ArrayAttr.get(list(sizes))


def integer_list(values: Sequence[int]) -> ir.Attribute:
    """`[1, 2]`, as our own operations take it."""
    return ir.ArrayAttr.get([integer(value) for value in values])


def number(element: Element, value: Number) -> ir.Attribute:
    """A number as an attribute of an element type; integers by their low bits."""
    kind = element_type(element)
    if element.is_float:
        return ir.FloatAttr.get(kind, float(value))
    if element.kind is Kind.BOOL:
        return ir.IntegerAttr.get(kind, int(bool(value)))
    return ir.IntegerAttr.get(kind, wrapped(int(value), element.bits))


def wrapped(value: int, bits: int) -> int:
    """The signed number with the low bits of `value`."""
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


# ---- types and constants ---------------------------------------------------------------------


def shape_of(value: ir.Value) -> tuple[int, ...]:
    """The extents of a tile value; none for a scalar."""
    if isinstance(value.type, ir.RankedTensorType):
        return tuple(value.type.shape)
    return ()


def like(value: ir.Value, element: Element) -> ir.Type:
    """The type of a tile of another element and the shape of `value`."""
    return tile_type(TileType(element, shape_of(value)))


def constant(element: Element, value: Number, shape: Sequence[int] = ()) -> ir.Value:
    """A tile (or scalar) full of one number."""
    attribute = number(element, value)
    kind = tile_type(TileType(element, tuple(shape)))
    if shape:
        attribute = ir.DenseElementsAttr.get_splat(kind, attribute)
    return make("arith.constant", kind, value=attribute)


def constant_like(value: ir.Value, element: Element, number: Number) -> ir.Value:
    return constant(element, number, shape_of(value))


def known_integer(value: ir.Value) -> int | None:
    """The number that an integer value is everywhere, if it is a constant."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return None
    op = owner.operation
    if op.name in ("tensor.splat", "linalg.broadcast", "tensor.collapse_shape"):
        return known_integer(op.operands[0])
    if op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return int(attribute.value) if isinstance(attribute, ir.IntegerAttr | ir.BoolAttr) else None


# ---- shapes ----------------------------------------------------------------------------------


def spread(value: ir.Value, element: Element, shape: Sequence[int]) -> ir.Value:
    """A scalar or tile stretched to a shape that it broadcasts to."""
    own = shape_of(value)
    if own == tuple(shape):
        return value
    result = tile_type(TileType(element, tuple(shape)))
    if not own:
        return make("tensor.splat", result, value)
    stretched = [a for a, (old, new) in enumerate(zip(own, shape, strict=True)) if old != new]
    kept = [extent for a, extent in enumerate(own) if a not in stretched]
    return broadcast_along(regroup(value, element, kept), result, stretched)


def broadcast_along(value: ir.Value, result: ir.Type, axes: Sequence[int]) -> ir.Value:
    """`linalg.broadcast`: the tile repeated along these new axes of the result."""
    empty = make("tensor.empty", result)
    element = ir.RankedTensorType(result).element_type
    return make_with_body(
        "linalg.broadcast",
        [result],
        [value, empty],
        lambda block: [block.arguments[0]],
        [element, element],
        dimensions=integers(axes),
    ).results[0]


def regroup(value: ir.Value, element: Element, shape: Sequence[int]) -> ir.Value:
    """The same elements in the same order under another shape (its rank may be 0, as a tensor)."""
    own, shape = shape_of(value), tuple(shape)
    if own == shape:
        return value
    groups = common_groups(own, shape)
    if groups is None:
        total = 1
        for extent in own:
            total *= extent
        return regroup(regroup(value, element, (total,)), element, shape)
    result = ir.RankedTensorType.get(shape, element_type(element))
    listed = ir.ArrayAttr.get([integer_list(group) for group in groups])
    if len(shape) < len(own):
        return make("tensor.collapse_shape", result, value, reassociation=listed)
    return make(
        "tensor.expand_shape",
        result,
        value,
        reassociation=listed,
        static_output_shape=integers(shape),
    )


def common_groups(left: tuple[int, ...], right: tuple[int, ...]) -> list[list[int]] | None:
    """For each axis of the shorter shape, the axes of the longer one that it is made of.

    None if the shorter one cannot be had by joining neighbours of the longer one.
    """
    short, long = (left, right) if len(left) < len(right) else (right, left)
    if len(short) == len(long):
        return None
    if not short:
        return []
    groups: list[list[int]] = []
    axis = 0
    for place, extent in enumerate(short):
        group, product = [axis], long[axis] if axis < len(long) else 0
        axis += 1
        left_over = len(short) - place - 1
        while axis < len(long) - left_over and (
            product < extent or _belongs(long, axis, short, place)
        ):
            product *= long[axis]
            group.append(axis)
            axis += 1
        if product != extent:
            return None
        groups.append(group)
    return groups if axis == len(long) else None


def _belongs(long: tuple[int, ...], axis: int, short: tuple[int, ...], place: int) -> bool:
    """Whether a unit axis goes to the group before it: unless the next group starts with it."""
    if long[axis] != 1:
        return False
    rest = short[place + 1 :]
    return not rest or rest[0] != 1


def transposed(value: ir.Value, element: Element, order: Sequence[int]) -> ir.Value:
    """`linalg.transpose`: axis `i` of the result is axis `order[i]` of the tile."""
    if list(order) == list(range(len(order))):
        return value
    own = shape_of(value)
    result = tile_type(TileType(element, tuple(own[a] for a in order)))
    kind = element_type(element)
    return make_with_body(
        "linalg.transpose",
        [result],
        [value, make("tensor.empty", result)],
        lambda block: [block.arguments[0]],
        [kind, kind],
        permutation=integers(order),
    ).results[0]


# ---- choosing --------------------------------------------------------------------------------

# The numbers that MLIR has for the predicates that we use (arith's CmpIPredicate, CmpFPredicate).
_INTEGER_PREDICATES = {
    "eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8,
    "uge": 9,
}  # fmt: skip
_FLOAT_PREDICATES = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "une": 13, "uno": 14}


def compared(predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.cmpi` or `arith.cmpf`, by the name of the predicate."""
    if predicate in _INTEGER_PREDICATES:
        number = integer(_INTEGER_PREDICATES[predicate])
        return make("arith.cmpi", like(a, BOOL), a, b, predicate=number)
    number = integer(_FLOAT_PREDICATES[predicate])
    return make("arith.cmpf", like(a, BOOL), a, b, predicate=number)


def chosen(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    """`arith.select`: `a` where the condition holds, else `b`."""
    return make("arith.select", a.type, condition, a, b)


def number_of(op: ir.OpView, name: str) -> int:
    """An integer attribute of an operation."""
    return int(ir.IntegerAttr(op.attributes[name]).value)
