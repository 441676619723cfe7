"""Types of statements and blocks: `let`, assignment, `if`, blocks as values, guards."""

from __future__ import annotations

from dataclasses import replace

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.checker import Checker, expression_rule, statement_rule
from tilec.frontend.host import is_host
from tilec.frontend.patterns import bind_pattern, poison, settle
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.frontend.typecheck_helpers import is_fresh
from tilec.frontend.typecheck_operations import Use, operate
from tilec.frontend.typecheck_operators import condition
from tilec.frontend.typecheck_values import known_position
from tilec.ops.call import Form
from tilec.types import UNIT, ArrayType, Own, PartType, TensorType, TileType, Type


@expression_rule(ast.Block)
def block(checker: Checker, node: ast.Block) -> typed.Block:
    outer = checker.in_unsafe
    checker.in_unsafe = outer or node.unsafe_span is not None
    try:
        with checker.scope.block():
            statements = checked_statements(checker, node.statements)
            tail = checker.expression(node.tail) if node.tail is not None else None
    finally:
        checker.in_unsafe = outer
    return typed.Block(node.span, tail.type if tail else UNIT, statements, tail)


def checked_statements(
    checker: Checker, nodes: tuple[ast.Statement, ...]
) -> tuple[typed.Statement, ...]:
    """The statements one after another; what is wrong in one is reported, and the next is read."""
    found = []
    for node in nodes:
        first_literal = len(checker.literals)
        try:
            found.append(checker.statement(node))
        except CompileError as error:
            checker.report(error)
            settle(checker, node, first_literal)
            if isinstance(node, ast.Let):
                poison(checker, node.pattern)
    return tuple(found)


@statement_rule(ast.ExpressionStatement)
def expression_statement(checker: Checker, node: ast.ExpressionStatement) -> typed.Statement:
    match node.value:
        case ast.For() | ast.While() | ast.MacroCall():
            return checker.statement(node.value)
    return typed.Evaluate(node.span, checker.expression(node.value))


# ---- let and assignment ------------------------------------------------------------------------


@statement_rule(ast.Let)
def let(checker: Checker, node: ast.Let) -> typed.Statement:
    declared = resolve_type(node.type, checker.environment) if node.type else None
    if node.value is None:
        return _declaration(checker, node, declared)
    value = checker.expression(node.value)
    if declared is not None:
        _expect_declared(checker, value, declared, node)
    if isinstance(value.type, PartType):
        value = _taken(value)
    pattern = bind_pattern(checker, node.pattern, value.type, host=is_host(value))
    return typed.Let(node.span, pattern, value)


def _expect_declared(
    checker: Checker, value: typed.Expression, declared: Type, node: ast.Let
) -> None:
    assert node.type is not None, "asked only with a type"
    label = Label(node.type.span, "declared here")
    expect(value.type, declared, checker.inference, value.span, label)


def _taken(value: typed.Expression) -> typed.Expression:
    """A part bound to a new name: it leaves the old one."""
    assert isinstance(value.type, PartType), "asked only of a part"
    if is_fresh(value) or value.type.borrowed is Own.SHARED:
        return value
    return typed.Move(value.span, value.type, value)


def _declaration(checker: Checker, node: ast.Let, declared: Type | None) -> typed.Statement:
    if not isinstance(node.pattern, ast.BindingPattern):
        raise refusal("E0203", "a pattern needs a value", node.span, help="write `= …`")
    if isinstance(declared, (TensorType, PartType)):
        raise refusal("E0103", "a view is declared with its value", node.span, help="write `= …`")
    name = node.pattern.name
    local = typed.Local(name.text, name.span, declared, node.pattern.mutable)
    checker.scope.declare(local, has_value=False)
    return typed.Let(node.span, typed.Bind(node.pattern.span, local), None)


@statement_rule(ast.Assign)
def assign(checker: Checker, node: ast.Assign) -> typed.Statement:
    local, path, current = _place(checker, node)
    value = checker.expression(node.value)
    if node.operator != "=":
        assert current is not None, "a compound assignment reads its place"
        use = Use(node.operator[:-1], node.span, node.operator_span, Form.OPERATOR)
        value = operate(checker, use, (current, value))
    if isinstance(value.type, (TensorType, PartType)):
        raise refusal(
            "E0103",
            "views and parts are not assigned in this version of tilec",
            node.span,
            f"this is `{value.type}`",
            help="bind it to another name: `let v = …`",
        )
    if current is None and local.type is None:
        local.type = value.type
    type_ = current.type if current else local.type
    assert type_ is not None, "known by now"
    label = Label(local.span, "declared here")
    if not path and _is_tile(value.type) and not _is_tile(type_):
        raise _tile_for_scalar(checker, node, value.type, type_, label)
    expect(value.type, type_, checker.inference, node.value.span, label)
    checker.scope.assign(local)
    return typed.Assign(node.span, local, path, value)


def _is_tile(type_: Type) -> bool:
    return isinstance(type_, TileType) and not type_.is_scalar


def _tile_for_scalar(
    checker: Checker, node: ast.Assign, actual: Type, expected: Type, declared: Label
) -> CompileError:
    """E0301, E0203 for a variable that starts as a scalar and is assigned a tile."""
    if not isinstance(expected, TileType):
        expect(actual, expected, checker.inference, node.value.span, declared)
    actual = checker.inference.final_type(actual)
    assert isinstance(actual, TileType), "asked of tiles"
    shape = ", ".join(map(str, (actual.element, *actual.shape)))
    return refusal(
        "E0301",
        "expected a scalar",
        node.value.span,
        f"expected `{checker.inference.final_type(expected)}`, got `{actual}`",
        declared,
        help=f"start with a tile, `Tile::<{shape}>::zeros()`, or add up the elements, `.sum_all()`",
    )


def _place(
    checker: Checker, node: ast.Assign
) -> tuple[typed.Local, tuple[int, ...], typed.Expression | None]:
    """What is assigned: the variable, the way to its item, and its value before (if it is read)."""
    root, path = _root(checker, node.target)
    local = checker.scope.find(root.text)
    if local is None:
        _expect_declared_name(checker, root)
        raise refusal("E0203", "only variables are assigned", root.span, "this is none")
    _expect_assignable(checker, local, node, root)
    if node.operator == "=" and not path:
        if local.type is None and local not in checker.scope.unset:
            raise AlreadyReportedError
        return local, (), None
    return local, path, checker.expression(node.target)


def _expect_declared_name(checker: Checker, name: ast.Name) -> None:
    """E0201 for the name of a variable that nothing declares."""
    try:
        checker.expression(ast.Path(name.span, (ast.Segment(name.span, name),)))
    except CompileError as error:
        help = f"declare it before: `let mut {name.text} = …;`"
        found = (replace(d, help=d.help or help) for d in error.diagnostics)
        raise CompileError(*found) from None


def _root(checker: Checker, target: ast.Expression) -> tuple[ast.Name, tuple[int, ...]]:
    match target:
        case ast.Path(segments=(ast.Segment(name=name, arguments=None),)):
            return name, ()
        case ast.Field(value=value, index=index):
            root, path = _root(checker, value)
            return root, (*path, index)
        case ast.Index(value=value, index=index_node):
            root, path = _root(checker, value)
            array = checker.expression(value)
            if isinstance(array.type, ArrayType):
                position = checker.expression(index_node)
                known = known_position(checker, position, array.type)
                if known is not None:
                    return root, (*path, known)
                raise refusal(
                    "E0103",
                    "an item is assigned at a constant index",
                    index_node.span,
                    "known only when the kernel runs",
                    help="a tile holds many values: `select(iota::<i32, 16>().eq(i), value, t)`",
                )
    raise refusal(
        "E0102",
        "only a variable, or an item of one, is assigned",
        target.span,
        "this is an expression",
        help=_way_to_assign(checker, target),
    )


def _way_to_assign(checker: Checker, target: ast.Expression) -> str | None:
    """How what is indexed is written, which is no array."""
    if not isinstance(target, ast.Index):
        return None
    text = checker.text(target.value.span)
    match checker.expression(target.value).type:
        case PartType():
            return f"a part is written at once: `{text}.store(…)`"
        case TensorType(own=Own.ATOMIC):
            return f"elements are updated by methods: `{text}.fetch_add([…], …)`"
        case TensorType():
            return f"a tensor is written by tiles: `{text}.store([…], …)`"
        case TileType(shape=shape) if shape:
            return f"a tile is chosen anew: `{text} = select(condition, value, {text})`"
    return None


def _expect_assignable(
    checker: Checker, local: typed.Local, node: ast.Assign, root: ast.Name
) -> None:
    if checker.closure_depth is not None and (
        checker.scope.depth_of(root.text) < checker.closure_depth
    ):
        raise refusal(
            "E0102",
            "a combiner assigns nothing outside of it",
            node.span,
            "assigned here",
            Label(local.span, "declared outside"),
        )
    if local.mutable or local in checker.scope.fresh:
        return
    raise refusal(
        "E0203",
        f"`{local.name}` is assigned but not declared `mut`",
        node.span,
        "assigned here",
        Label(local.span, "declared here"),
        help=f"write it by `{local.name}.store(…)`"
        if isinstance(local.type, PartType)
        else f"declare it as `mut {local.name}`",
    )


# ---- if ----------------------------------------------------------------------------------------


@expression_rule(ast.If)
def if_(checker: Checker, node: ast.If) -> typed.Expression:
    tested, then, otherwise = branches(checker, node)
    type_ = _value_type(checker, node, then, otherwise)
    return typed.If(node.span, type_, tested, then, otherwise)


def branches(
    checker: Checker,
    node: ast.If,
    *,
    then_returns: bool = False,
    otherwise_returns: bool = False,
) -> tuple[typed.Expression, typed.Block, typed.Block | None]:
    """Condition and branches; a branch that returns has no say in what has a value after."""
    errors: list[CompileError] = []
    parts: list[typed.Expression | None] = []
    try:
        parts.append(condition(checker, node.condition))
    except CompileError as error:
        errors.append(error)
    before = checker.scope.snapshot()
    after = []
    for branch, returns in ((node.then, then_returns), (node.otherwise, otherwise_returns)):
        checker.scope.restore(before)
        try:
            with checker.conditional():
                parts.append(_branch(checker, branch))
        except CompileError as error:
            errors.append(error)
        if not returns:
            after.append(checker.scope.snapshot())
    if after:
        checker.scope.join(*after)
    if errors:
        raise CompileError(*(d for error in errors for d in error.diagnostics))
    tested, then, otherwise = parts
    assert tested is not None and isinstance(then, typed.Block), "both were read"
    assert otherwise is None or isinstance(otherwise, typed.Block), "a branch is a block"
    return tested, then, otherwise


def _branch(checker: Checker, node: ast.Expression | None) -> typed.Expression | None:
    if node is None:
        return None
    value = checker.expression(node)
    if isinstance(value, typed.Block):
        return value
    # `else if`: a block whose value it is.
    return typed.Block(node.span, value.type, (), value)


def _value_type(
    checker: Checker, node: ast.If, then: typed.Block, otherwise: typed.Block | None
) -> Type:
    if otherwise is None:
        if then.type == UNIT:
            return UNIT
        raise refusal(
            "E0203", "an `if` without `else` has no value", node.span, help="write `else { … }`"
        )
    if (then.type == UNIT) != (otherwise.type == UNIT) and not then.tail:
        place = otherwise.tail or otherwise
        raise refusal("E0203", "the branches have different types", place.span, "and this a value")
    label = Label((then.tail or then).span, "the other branch")
    expect(otherwise.type, then.type, checker.inference, (otherwise.tail or otherwise).span, label)
    if isinstance(then.type, (TensorType, PartType)):
        raise refusal(
            "E0103",
            "a view is not chosen at run time in this version of tilec",
            node.span,
            f"this is `{then.type}`",
        )
    return then.type
