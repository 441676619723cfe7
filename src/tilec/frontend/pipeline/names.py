"""Names in a pipeline: `let` and assignment, of scalars and of tensors."""

from __future__ import annotations

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.bindings import Constant
from tilec.frontend.constants import evaluate
from tilec.frontend.pipeline.tensors import is_temporary, moved, temporary, view_of
from tilec.frontend.pipeline.trace import View
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.types import Element, TileType


def let(tracer: Tracer, node: ast.Let) -> None:
    if node.value is None:
        raise refusal(
            "E0804", "a variable of a pipeline has a value", node.span, help="write `= …`"
        )
    if node.type is not None and not isinstance(node.pattern, ast.BindingPattern):
        raise refusal("E0804", "this has no type of its own", node.type.span, help="drop it")
    _bind(tracer, node.pattern, node.value, node.type)


def _bind(
    tracer: Tracer, pattern: ast.Pattern, value: ast.Expression, type_: ast.TypeNode | None = None
) -> None:
    match pattern:
        case ast.BindingPattern():
            _bind_one(tracer, pattern, value, type_)
        case ast.WildcardPattern():
            _value(tracer, ast.Name(pattern.span, "_"), value)
        case ast.TuplePattern(items=items) if isinstance(value, ast.Tuple) and len(
            value.items
        ) == len(items):
            names = [_name_of(item) for item in items]
            values = [_value(tracer, n, one) for n, one in zip(names, value.items, strict=True)]
            for item, one, written in zip(items, values, value.items, strict=True):
                _declare(tracer, item, one, tracer.constant(written))
        case _:
            raise refusal(
                "E0804",
                "a pattern of a pipeline is a name, or a tuple of names for a tuple of values",
                pattern.span,
            )


def _name_of(pattern: ast.Pattern) -> ast.Name:
    name = pattern.name if isinstance(pattern, ast.BindingPattern) else None
    return name or ast.Name(pattern.span, "_")


def _bind_one(
    tracer: Tracer,
    pattern: ast.BindingPattern,
    node: ast.Expression,
    type_: ast.TypeNode | None,
) -> None:
    # Before the value: afterwards the name may hide what it is made of.
    constant = tracer.constant(node)
    value = _value(tracer, pattern.name, node)
    if type_ is not None:
        declared = resolve_type(type_, tracer.environment)
        if isinstance(value, View):
            raise refusal(
                "E0804", "the type of a tensor is that of its value", type_.span, help="drop it"
            )
        label = Label(type_.span, "declared here")
        expect(value.type, declared, tracer.checker.inference, node.span, label)
        if constant is not None and isinstance(declared, TileType):
            element = tracer.checker.inference.known(declared.element)
            constant = _evaluated(tracer, node, element)
    _declare(tracer, pattern, value, constant)


def _evaluated(tracer: Tracer, node: ast.Expression, element: Element) -> Constant | None:
    """The constant as a value of an element type; None if it is none."""
    try:
        return evaluate(node, tracer.environment, element)
    except CompileError:
        return None


def _value(tracer: Tracer, name: ast.Name, node: ast.Expression) -> View | typed.Expression:
    """What a name is to stand for. Raises CompileError."""
    if isinstance(node, ast.Call) and is_temporary(node):
        return temporary(tracer, node, name)
    view = view_of(tracer, node)
    if view is not None:
        return moved(tracer, node, view)
    if isinstance(node, ast.Call) and _is_launched(tracer, node):
        raise refusal(
            "E0203",
            "a launch has no value",
            node.span,
            "it writes to the tensors that it is given",
            help="write `let mut t = Tensor::<…>::uninit();`, and lend it: `&mut t`",
        )
    local = tracer.local_of(node)
    if local is not None and local.type is None:
        raise AlreadyReportedError
    return tracer.scalar(node)


def _is_launched(tracer: Tracer, node: ast.Call) -> bool:
    if len(node.function.segments) != 1:
        return False
    found = tracer.checker.module.find(node.function.segments[0].name.text)
    if found is None or not isinstance(found[1], ast.Function):
        return False
    return any(a.name.text in ("kernel", "pipeline") for a in found[1].attributes)


def _declare(
    tracer: Tracer,
    pattern: ast.Pattern,
    value: View | typed.Expression,
    constant: Constant | None,
) -> None:
    match pattern:
        case ast.WildcardPattern():
            return
        case ast.BindingPattern(name=name, mutable=mutable) if isinstance(value, View):
            tracer.bind(name, value, mutable=mutable)
        case ast.BindingPattern(name=name, mutable=mutable):
            assert isinstance(value, typed.Expression), "a view or a scalar"
            tracer.declare(name, value, constant, mutable=mutable)
        case _:
            raise refusal("E0804", "a tuple of a pipeline holds names only", pattern.span)


def assign(tracer: Tracer, node: ast.Assign) -> None:
    match node.target, node.value:
        case ast.Tuple(items=targets), ast.Tuple(items=values) if node.operator == "=" and len(
            targets
        ) == len(values):
            constants = [tracer.constant(value) for value in values]
            named = [_assigned(tracer, target, node) for target in targets]
            made = [
                _value(tracer, ast.Name(local.span, local.name), value)
                for local, value in zip(named, values, strict=True)
            ]
            for local, target, value, constant in zip(named, targets, made, constants, strict=True):
                _give(tracer, local, target, value, constant)
            return
    local = _assigned(tracer, node.target, node)
    written = node.value
    if node.operator != "=":
        operator = node.operator[:-1]
        written = ast.Binary(node.span, operator, node.operator_span, node.target, node.value)
    constant = tracer.constant(written)
    value = _value(tracer, ast.Name(local.span, local.name), written)
    _give(tracer, local, node.target, value, constant)


def _assigned(tracer: Tracer, target: ast.Expression, node: ast.Assign) -> typed.Local:
    local = tracer.local_of(target)
    if local is None:
        if isinstance(target, ast.Path):
            tracer.checker.expression(target)
        raise refusal("E0102", "only variables are assigned", target.span, "this is none")
    if local.type is None:
        raise AlreadyReportedError
    if not local.mutable:
        raise refusal(
            "E0203",
            f"`{local.name}` is assigned but not declared `mut`",
            node.span,
            "assigned here",
            Label(local.span, "declared here"),
            help=f"declare it as `mut {local.name}`",
        )
    return local


def _give(
    tracer: Tracer,
    local: typed.Local,
    target: ast.Expression,
    value: View | typed.Expression,
    constant: Constant | None,
) -> None:
    name = ast.Name(local.span, local.name)
    label = Label(local.span, "declared here")
    if not isinstance(value, View):
        if local in tracer.views:
            raise refusal("E0203", "mismatched types", target.span, "this is a tensor", label)
        assert local.type is not None, "seen before"
        expect(value.type, local.type, tracer.checker.inference, value.span, label)
        tracer.declare(name, value, constant, mutable=True, again=True)
        return
    before = tracer.views.get(local)
    if before is None:
        raise refusal("E0203", "mismatched types", target.span, "this is a scalar", label)
    same = [a.form == b.form for a, b in zip(before.extents, value.extents, strict=False)]
    expected = f"expected `{before}`, got `{value}`"
    if before.tensor.element != value.tensor.element:
        raise refusal("E0202", "element types differ", target.span, expected, label)
    if len(before.axes) != len(value.axes):
        raise refusal("E0303", "ranks of tensors differ", target.span, expected, label)
    if not all(same):
        raise refusal("E0301", "extents of tensors differ", target.span, expected, label)
    if before.held is not value.held:
        raise refusal("E0203", "mismatched types", target.span, expected, label)
    tracer.views[local] = value
    tracer.moved.pop(local, None)
