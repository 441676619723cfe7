"""Emission of expressions: literals, variables, operations, tuples, calls, moves and borrows."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import func

from tilec.frontend import typed
from tilec.frontend.emitter import (
    Emitter,
    emits_expression,
    flatten,
    mlir_types,
    structured,
)
from tilec.frontend.patterns import bound_values
from tilec.ops.build import constant, integer, make
from tilec.ops.call import Emission, Receiver, Value
from tilec.types import BOOL, USIZE, ArrayType, Element, Extent, TileType, Type


@emits_expression(typed.Literal)
def literal(emitter: Emitter, node: typed.Literal) -> Value:
    type_ = emitter.type_of(node)
    assert isinstance(type_, TileType) and isinstance(type_.element, Element), "a known scalar"
    return constant(type_.element, node.value)


@emits_expression(typed.DimValue)
def dim_value(emitter: Emitter, node: typed.DimValue) -> Value:
    return emitter.dims[node.dim]


@emits_expression(typed.Read)
def read(emitter: Emitter, node: typed.Read) -> Value:
    return emitter.values[node.local]


@emits_expression(typed.Operate)
def operate(emitter: Emitter, node: typed.Operate) -> Value:
    operands = tuple(emitter.expression(argument) for argument in node.arguments)
    closure = node.closure

    def combine(values: tuple[Value, ...]) -> Value:
        assert closure is not None, "only an operation with a closure asks for it"
        for pattern, value in zip(closure.parameters, values, strict=True):
            emitter.values.update(bound_values(pattern, value))
        return emitter.expression(closure.body)

    return node.operation.emit(
        Emission(
            node.name,
            tuple(emitter.type_of(argument) for argument in node.arguments),
            operands,
            emitter.type_of(node),
            node.generics,
            combine if closure else None,
            node.in_unsafe,
        )
    )


@emits_expression(typed.MakeTuple)
def make_tuple(emitter: Emitter, node: typed.MakeTuple) -> Value:
    return tuple(emitter.expression(item) for item in node.items)


@emits_expression(typed.Item)
def item(emitter: Emitter, node: typed.Item) -> Value:
    value = emitter.expression(node.value)
    assert isinstance(value, tuple), "an item is of a tuple or array"
    return value[node.position]


@emits_expression(typed.ItemAt)
def item_at(emitter: Emitter, node: typed.ItemAt) -> Value:
    items = emitter.expression(node.value)
    position = emitter.scalar(node.position)
    assert isinstance(items, tuple), "an item is of an array"
    found = zero(emitter.type_of(node))
    for number, value in enumerate(items):
        here = make(
            "arith.cmpi",
            ir.IntegerType.get_signless(1),
            position,
            constant(USIZE, number),
            predicate=integer(0),
        )
        found = make("arith.select", value.type, here, value, found)
    return found


def zero(type_: Type) -> Value:
    """The value of a type in which every number is zero."""
    match type_:
        case TileType(element=Element() as element, shape=shape):
            return constant(element, False if element == BOOL else 0, shape)
        case ArrayType():
            return (zero(type_.item),) * type_.length
    assert hasattr(type_, "items"), f"no zero of {type_}"
    return tuple(zero(one) for one in type_.items)


# ---- && and || ---------------------------------------------------------------------------------


@emits_expression(typed.ShortCircuit)
def short_circuit(emitter: Emitter, node: typed.ShortCircuit) -> Value:
    left = emitter.scalar(node.left)
    if _is_plain(node.right):
        # Arithmetic is total and reads nothing: evaluating the right side always is the same.
        name = "arith.andi" if node.operator == "&&" else "arith.ori"
        return make(name, left.type, left, emitter.scalar(node.right))
    carried = emitter.carried(node.right)
    before = emitter.flat(carried)
    op = ir.Operation.create(
        "scf.if", results=[left.type, *(v.type for v in before)], operands=[left], regions=2
    )
    blocks = [region.blocks.append() for region in op.regions]
    decided, undecided = reversed(blocks) if node.operator == "&&" else blocks
    with ir.InsertionPoint(decided):
        _yield(constant(BOOL, node.operator == "||"), *before)
    with emitter.branch(undecided) as inner:
        value = inner.scalar(node.right)
        _yield(value, *inner.flat(carried))
    result, *after = op.results
    emitter.rebind(carried, after)
    return result


def _yield(*values: ir.Value) -> None:
    ir.Operation.create("scf.yield", operands=list(values))


def _is_plain(node: typed.Expression) -> bool:
    """Whether a value is arithmetic on what is there already: no memory, no control flow."""
    match node:
        case typed.Literal() | typed.DimValue() | typed.Read():
            return True
        case typed.ShortCircuit(left=left, right=right):
            return _is_plain(left) and _is_plain(right)
        case typed.Item(value=value):
            return _is_plain(value)
        case typed.Operate(operation=operation, arguments=arguments, closure=None):
            return operation.receiver in (None, Receiver.TILE) and all(map(_is_plain, arguments))
    return False


# ---- helpers and parts -------------------------------------------------------------------------


@emits_expression(typed.CallHelper)
def call_helper(emitter: Emitter, node: typed.CallHelper) -> Value:
    arguments = [extent_value(emitter, extent) for extent in node.extents]
    for argument in node.arguments:
        arguments += flatten(emitter.expression(argument))
    result = node.function.inference.final_type(node.function.result)
    callee = ir.FlatSymbolRefAttr.get(node.function.symbol)
    call = func.CallOp(mlir_types(result), callee, arguments)
    return structured(result, list(call.results))


def extent_value(emitter: Emitter, extent: Extent) -> ir.Value:
    """The number that an extent is, as an index."""
    return constant(USIZE, extent) if isinstance(extent, int) else emitter.dims[extent]


@emits_expression(typed.Move)
def move(emitter: Emitter, node: typed.Move) -> Value:
    part = emitter.scalar(node.value)
    return make("tile.move", part.type, part)


@emits_expression(typed.Borrow)
def borrow(emitter: Emitter, node: typed.Borrow) -> Value:
    part = emitter.scalar(node.value)
    mutable = ir.BoolAttr.get(node.mutable)
    return make("tile.borrow", part.type, part, mutable=mutable)
