"""Emission of statements: variables, blocks, branches, guards, `while`, preconditions."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import scf

from tilec.frontend import typed
from tilec.frontend.emit_values import zero
from tilec.frontend.emitter import (
    Emitter,
    emits_expression,
    emits_statement,
    flatten,
    mlir_types,
    structured,
)
from tilec.frontend.patterns import bound_values
from tilec.ir.views import is_view
from tilec.ops.call import Value


@emits_expression(typed.Block)
def block(emitter: Emitter, node: typed.Block) -> Value:
    statements(emitter, node.statements)
    return emitter.expression(node.tail) if node.tail is not None else ()


def statements(emitter: Emitter, nodes: tuple[typed.Statement, ...]) -> None:
    """Statements one after another; what follows a guard goes into its other branch."""
    for position, node in enumerate(nodes):
        if isinstance(node, typed.Guard):
            with emitter.at(node.span):
                _guard(emitter, node, nodes[position + 1 :])
            return
        emitter.statement(node)


@emits_statement(typed.Evaluate)
def evaluate(emitter: Emitter, node: typed.Evaluate) -> None:
    emitter.expression(node.value)


@emits_statement(typed.Let)
def let(emitter: Emitter, node: typed.Let) -> None:
    if node.value is not None:
        value = emitter.expression(node.value)
        _name(emitter, node, value)
        emitter.values.update(bound_values(node.pattern, value))
        return
    assert isinstance(node.pattern, typed.Bind), "checked"
    local = node.pattern.local
    if local.type is not None:  # else it is never assigned, and so never read
        # Assigned before it is read: the number does not matter, but loops need one.
        emitter.values[local] = zero(emitter.inference.final_type(local.type))


def _name(emitter: Emitter, node: typed.Let, value: Value) -> None:
    """Put the name of a view into the location of the operation that makes it, for messages."""
    if not isinstance(node.pattern, typed.Bind) or isinstance(value, tuple):
        return
    assert node.value is not None, "asked only with a value"
    if not is_view(value) or isinstance(value.owner, ir.Block):
        return
    made_here = emitter.at(node.value.span)
    # A name for a view that is there already is not the view's own.
    if value.owner.location == made_here:
        value.owner.location = ir.Location.name(node.pattern.local.name, made_here)


@emits_statement(typed.Assign)
def assign(emitter: Emitter, node: typed.Assign) -> None:
    value = emitter.expression(node.value)
    emitter.values[node.local] = _replaced(emitter.values[node.local], node.path, value)


def _replaced(whole: Value, path: tuple[int, ...], value: Value) -> Value:
    """The value with one of its items replaced."""
    if not path:
        return value
    assert isinstance(whole, tuple), "a path leads into a tuple or array"
    inner = _replaced(whole[path[0]], path[1:], value)
    return (*whole[: path[0]], inner, *whole[path[0] + 1 :])


@emits_statement(typed.Require)
def require(emitter: Emitter, node: typed.Require) -> None:
    condition = emitter.scalar(node.condition)
    ir.Operation.create(
        "tile.assume" if node.assume else "tile.assert",
        operands=[condition],
        attributes={"text": ir.StringAttr.get(node.text)},
    )


# ---- branches ----------------------------------------------------------------------------------


@emits_expression(typed.If)
def if_(emitter: Emitter, node: typed.If) -> Value:
    condition = emitter.scalar(node.condition)
    carried = emitter.carried(node.then, node.otherwise)
    type_ = emitter.type_of(node)
    own = mlir_types(type_)
    results = [*own, *(value.type for value in emitter.flat(carried))]
    has_else = bool(results) or node.otherwise is not None
    op = scf.IfOp(condition, results, has_else=has_else)
    _branch(emitter, op.then_block, node.then, carried)
    if has_else:
        _branch(emitter, op.else_block, node.otherwise, carried)
    found = list(op.results)
    emitter.rebind(carried, found[len(own) :])
    return structured(type_, found[: len(own)])


def _branch(
    emitter: Emitter,
    into: ir.Block,
    node: typed.Block | None,
    carried: list[typed.Local],
) -> None:
    with emitter.branch(into) as inner:
        value = inner.expression(node) if node is not None else ()
        scf.yield_([*flatten(value), *inner.flat(carried)])


def _guard(emitter: Emitter, node: typed.Guard, rest: tuple[typed.Statement, ...]) -> None:
    """`if c { a; return; } b`: a in one branch, b in the other. A kernel has no results."""
    condition = emitter.scalar(node.condition)
    op = scf.IfOp(condition, [], has_else=True)
    branches = (
        (op.then_block, node.then, node.then_returns),
        (op.else_block, node.otherwise, node.otherwise_returns),
    )
    for into, body, returns in branches:
        with emitter.branch(into) as inner:
            if body is not None:
                inner.expression(body)
            if not returns:
                statements(inner, rest)
            scf.yield_([])


# ---- while -------------------------------------------------------------------------------------


@emits_statement(typed.While)
def while_(emitter: Emitter, node: typed.While) -> None:
    carried = emitter.carried(node.condition, node.body)
    initial = emitter.flat(carried)
    types = [value.type for value in initial]
    op = scf.WhileOp(types, initial)
    locations = [op.location] * len(types)
    before = op.before.blocks.append(*types, arg_locs=locations)
    after = op.after.blocks.append(*types, arg_locs=locations)
    with emitter.branch(before) as inner:
        inner.rebind(carried, list(before.arguments))
        condition = inner.scalar(node.condition)
        scf.condition(condition, inner.flat(carried))
    with emitter.branch(after) as inner:
        inner.rebind(carried, list(after.arguments))
        inner.expression(node.body)
        scf.yield_(inner.flat(carried))
    emitter.rebind(carried, list(op.results))
