"""Types of literals, names, tuples, arrays, operators and casts."""

from __future__ import annotations

from tilec.diagnostics import Label
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.bindings import Constant
from tilec.frontend.checker import Checker, expression_rule
from tilec.frontend.constants import binding_of, element_constant, extent, unknown_name
from tilec.frontend.host import is_host
from tilec.frontend.names_elsewhere import VALUES
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import check_array_length
from tilec.frontend.ways import Use
from tilec.types import (
    BOOL,
    USIZE,
    ArrayType,
    Dim,
    Element,
    PartType,
    TensorType,
    TileType,
    TupleType,
    Type,
    scalar,
)

MAX_TUPLE = 1024  # a tuple of tuples of tuples doubles with each


@expression_rule(ast.IntegerLiteral)
def integer_literal(checker: Checker, node: ast.IntegerLiteral) -> typed.Expression:
    return checker.number(node, node.value, node.suffix)


@expression_rule(ast.FloatLiteral)
def float_literal(checker: Checker, node: ast.FloatLiteral) -> typed.Expression:
    return checker.number(node, float(node.text), node.suffix)


@expression_rule(ast.BoolLiteral)
def bool_literal(checker: Checker, node: ast.BoolLiteral) -> typed.Expression:
    return typed.Literal(node.span, scalar(BOOL), node.value)


@expression_rule(ast.StringLiteral)
def string_literal(checker: Checker, node: ast.StringLiteral) -> typed.Expression:
    raise refusal("E0102", "a string is not a value", node.span, "only the message of a macro")


@expression_rule(ast.Path)
def path(checker: Checker, node: ast.Path) -> typed.Expression:
    if len(node.segments) == 2 and not any(s.arguments for s in node.segments):
        constant = element_constant(node, checker.environment)
        assert constant.element is not None, "a constant of an element type has that type"
        return typed.Literal(node.span, scalar(constant.element), constant.value)
    if len(node.segments) != 1 or node.segments[0].arguments is not None:
        last = node.segments[-1].name.text
        help = Use(()).text(VALUES[last]) if last in VALUES else None
        raise refusal(
            "E0203", "expected a value", node.span, "this is a function or a type", help=help
        )
    return _name(checker, node.segments[0].name)


def _name(checker: Checker, name: ast.Name) -> typed.Expression:
    local = checker.scope.find(name.text)
    if local is not None:
        return read(checker, local, name)
    match binding_of(name, checker.environment):
        case Constant(value=value, element=element):
            assert element is not None, "a named constant has a type"
            return typed.Literal(name.span, scalar(element), value)
        case Dim() as dim:
            return typed.DimValue(name.span, scalar(USIZE), dim)
        case Element():
            help = f"a type stands behind `::<`: `t.to::<{name.text}>()`"
            raise refusal("E0203", "expected a value", name.span, "this is a type", help=help)
    if checker.module.find(name.text):
        raise refusal("E0102", "a function is not a value", name.span, help="call it")
    if name.text in checker.module.missing:
        raise AlreadyReportedError
    if name.text in VALUES:
        raise unknown_name(name, set(), Use(()).text(VALUES[name.text]))
    known = checker.scope.names() | set(checker.environment.generics) | checker.module.names()
    raise unknown_name(name, known | {"true", "false"})


def read(checker: Checker, local: typed.Local, name: ast.Name) -> typed.Read:
    """The value of a variable. Raises CompileError E0203 if it may have none here."""
    if local in checker.scope.unset:
        raise refusal(
            "E0203",
            f"`{local.name}` may have no value here",
            name.span,
            "read here",
            Label(local.span, "declared without a value"),
        )
    if local.type is None:
        raise AlreadyReportedError
    return typed.Read(name.span, local.type, local)


@expression_rule(ast.Tuple)
def tuple_(checker: Checker, node: ast.Tuple) -> typed.Expression:
    items = tuple(_item(checker, item, "tuple") for item in node.items)
    type_ = TupleType(tuple(item.type for item in items))
    values = sum(map(_values_in, type_.items))
    if values > MAX_TUPLE:
        raise refusal(
            "E0203",
            f"a tuple holds at most {MAX_TUPLE} values",
            node.span,
            f"those inside of others included, these are {values}",
        )
    return typed.MakeTuple(node.span, type_, items)


def _values_in(type_: Type) -> int:
    match type_:
        case TupleType(items=items):
            return sum(map(_values_in, items))
        case ArrayType(length=length):
            return length
    return 1


@expression_rule(ast.Array)
def array(checker: Checker, node: ast.Array) -> typed.Expression:
    check_array_length(len(node.items), node.span)
    items = index_list(checker, node).items
    first = items[0]
    if isinstance(first.type, TileType) and not first.type.is_scalar:
        raise refusal("E0203", "an array holds scalars", first.span, f"this is `{first.type}`")
    for item in items[1:]:
        earlier = Label(first.span, f"this is `{first.type}`")
        expect(item.type, first.type, checker.inference, item.span, earlier)
    assert isinstance(first.type, TileType), "an array holds scalars"
    return typed.MakeTuple(node.span, ArrayType(first.type, len(items)), items)


def index_list(checker: Checker, node: ast.Array) -> typed.MakeTuple:
    """An array as the argument of an operation: each item has its own type."""
    items = tuple(_item(checker, item, "array") for item in node.items)
    for item in items:
        if not isinstance(item.type, TileType):
            apart = isinstance(item.type, ArrayType)
            raise refusal(
                "E0203",
                "an array holds scalars",
                item.span,
                f"this is `{item.type}`",
                help="take it apart: `let [i, j, k] = …;`" if apart else None,
            )
    return typed.MakeTuple(node.span, TupleType(tuple(item.type for item in items)), items)


def _item(checker: Checker, node: ast.Expression, holder: str) -> typed.Expression:
    item = checker.expression(node)
    if isinstance(item.type, (TensorType, PartType)):
        raise refusal(
            "E0102",
            "tuples and arrays hold scalars and tiles",
            node.span,
            f"this is `{item.type}`",
        )
    return item


@expression_rule(ast.ArrayRepeat)
def array_repeat(checker: Checker, node: ast.ArrayRepeat) -> typed.Expression:
    item = _item(checker, node.item, "array")
    length = extent(node.length, checker.environment)
    if not isinstance(item.type, TileType) or not item.type.is_scalar:
        raise refusal("E0203", "an array holds scalars", node.item.span, f"this is `{item.type}`")
    check_array_length(length, node.length.span)
    return _repeated(node, ArrayType(item.type, length), item)


def _repeated(node: ast.ArrayRepeat, type_: ArrayType, item: typed.Expression) -> typed.Expression:
    """`[item; N]`: the item is computed once."""
    if is_host(item):
        return typed.MakeTuple(node.span, type_, (item,) * type_.length)
    local = typed.Local("item", node.item.span, item.type)
    read = typed.Read(node.item.span, item.type, local)
    items = typed.MakeTuple(node.span, type_, (read,) * type_.length)
    once = typed.Let(node.item.span, typed.Bind(node.item.span, local), item)
    return typed.Block(node.span, type_, (once,), items)


@expression_rule(ast.Field)
def tuple_item(checker: Checker, node: ast.Field) -> typed.Expression:
    value = checker.expression(node.value)
    if not isinstance(value.type, TupleType) or node.index >= len(value.type.items):
        raise refusal(
            "E0203", f"no item `{node.index}` here", node.span, f"the value is `{value.type}`"
        )
    return typed.Item(node.span, value.type.items[node.index], value, node.index)


@expression_rule(ast.Index)
def array_item(checker: Checker, node: ast.Index) -> typed.Expression:
    value = checker.expression(node.value)
    if not isinstance(value.type, ArrayType):
        help = (
            "read one element of a tile: `.at([…])`"
            if isinstance(value.type, TileType)
            else "read a tile of a tensor: `.load::<…>([…])`"
            if isinstance(value.type, TensorType)
            else None
        )
        raise refusal(
            "E0203",
            "only arrays are indexed",
            node.value.span,
            f"this is `{value.type}`",
            help=help,
        )
    position = checker.expression(node.index)
    known = known_position(checker, position, value.type)
    if known is not None:
        return typed.Item(node.span, value.type.item, value, known)
    return typed.ItemAt(node.span, value.type.item, value, position)


def known_position(checker: Checker, position: typed.Expression, array: ArrayType) -> int | None:
    """An index into an array, if it is a constant. Raises CompileError E0202, E0203."""
    expect(position.type, scalar(USIZE), checker.inference, position.span)
    if not isinstance(position, typed.Literal):
        return None
    assert isinstance(position.value, int), "an index is an integer"
    if not 0 <= position.value < array.length:
        raise refusal(
            "E0203",
            "index outside of the array",
            position.span,
            f"it has {array.length} items",
        )
    return position.value


@expression_rule(ast.Range)
def range_(checker: Checker, node: ast.Range) -> typed.Expression:
    raise refusal("E0102", "a range is not a value", node.span, "only what a `for` runs over")


@expression_rule(ast.Closure)
def closure(checker: Checker, node: ast.Closure) -> typed.Expression:
    raise refusal(
        "E0102",
        "a closure is not a value",
        node.span,
        "only the combiner of `reduce` or `scan`",
        help="write a function: `fn name(…) -> … { … }`",
    )


@expression_rule(ast.Borrow)
def borrow(checker: Checker, node: ast.Borrow) -> typed.Expression:
    raise refusal("E0102", "a reference is not a value", node.span, "only an argument")
