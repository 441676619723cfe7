"""Types of calls: methods, functions, `Tile::<…>::zeros()`, helpers."""

from __future__ import annotations

from dataclasses import replace

from tilec.frontend import ast, typed
from tilec.frontend.checker import Checker, expression_rule
from tilec.frontend.constants import unknown_name
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import tile_of
from tilec.frontend.typecheck_helpers import call_helper, expect_mutable
from tilec.frontend.typecheck_operations import (
    Use,
    generic_values,
    operate,
    receiver_of,
)
from tilec.frontend.typecheck_unknown import (
    function_of_module,
    function_of_path,
    is_foreign_function,
    unknown_function,
)
from tilec.frontend.typecheck_values import index_list
from tilec.ops import operations
from tilec.ops.call import Form
from tilec.types import Own, PartType, TensorType

_OF_THE_GRID = ("program_id", "num_programs")


@expression_rule(ast.MethodCall)
def method_call(checker: Checker, node: ast.MethodCall) -> typed.Expression:
    foreign = function_of_module(checker, node)
    if foreign is not None:
        raise foreign
    receiver = checker.expression(node.receiver)
    kind = receiver_of(receiver.type)
    if kind is None:
        raise refusal("E0203", f"`{receiver.type}` has no methods", node.method.span, "called here")
    generics, spans = generic_values(checker, node.generics)
    use = Use(node.method.text, node.span, node.method.span, Form.METHOD, kind, generics, spans)
    arguments, combiner = _arguments(checker, node.arguments)
    return operate(checker, use, (receiver, *arguments), combiner)


@expression_rule(ast.Call)
def call(checker: Checker, node: ast.Call) -> typed.Expression:
    segments = node.function.segments
    foreign = function_of_path(checker, node) if len(segments) > 1 else None
    if foreign is not None:
        raise foreign
    if len(segments) == 2:
        return _associated(checker, node, segments[0], segments[1])
    if len(segments) != 1:
        raise refusal("E0201", "unknown function", node.function.span, "not found in this scope")
    segment = segments[0]
    name = segment.name
    local = checker.scope.find(name.text)
    if local is not None:
        if local.type is None:
            raise AlreadyReportedError
        raise refusal("E0203", f"`{name.text}` is not a function", name.span, f"`{local.type}`")
    found = checker.module.find(name.text)
    if found is not None:
        module, item = found
        if isinstance(item, ast.Function):
            return call_helper(checker, node, module, item)
        raise refusal("E0203", f"`{name.text}` is not a function", name.span, "a constant")
    if name.text in checker.module.missing:
        raise AlreadyReportedError
    if name.text in _OF_THE_GRID and checker.kernel.has_parts:
        raise refusal(
            "E0203",
            f"`{name.text}` is for kernels with `grid = […]`",
            node.span,
            "this kernel's grid is that of its parts",
            help="ask the part: `part.id(axis)`",
        )
    is_known = name.text in operations.names(Form.FUNCTION, None)
    if not is_known and is_foreign_function(name.text):
        raise unknown_function(checker, node)  # its arguments may be foreign, too
    generics, spans = generic_values(checker, segment.arguments)
    use = Use(name.text, node.span, name.span, Form.FUNCTION, None, generics, spans)
    arguments, combiner = _arguments(checker, node.arguments)
    if not is_known:
        raise unknown_function(checker, node)
    return operate(checker, use, arguments, combiner)


def _associated(
    checker: Checker, node: ast.Call, owner: ast.Segment, function: ast.Segment
) -> typed.Expression:
    """`Tile::<T, …>::zeros()`."""
    name = owner.name.text
    if name == "Tensor" and function.name.text == "uninit":
        raise refusal("E0203", "a temporary tensor is for pipelines", node.span, "made here")
    if name != "Tile":
        known = {"Tile"}
        if checker.scope.has(name) or checker.module.find(name) or name in ("Tensor", "Part"):
            raise refusal("E0203", f"`{name}` has no functions", node.function.span)
        raise unknown_name(owner.name, known)
    if function.arguments is not None:
        raise refusal("E0203", "the turbofish stands after `Tile`", function.span)
    if owner.arguments is None:
        raise refusal(
            "E0203",
            "a tile has an element type",
            owner.span,
            help=f"write `{_maker(function.name.text)}`",
        )
    tile = tile_of(owner.arguments, checker.environment, owner.span)
    generics, spans = generic_values(checker, owner.arguments)
    assert generics is not None and len(generics) == tile.rank + 1, "checked by `tile_of`"
    use = Use(function.name.text, node.span, function.name.span, Form.TILE, None, generics, spans)
    arguments, combiner = _arguments(checker, node.arguments)
    return operate(checker, use, arguments, combiner)


def _maker(name: str) -> str:
    made = operations.lookup(name, Form.TILE, None, True)
    return made.signature if made else f"Tile::<T, …>::{name}(…)"


def _arguments(
    checker: Checker, nodes: tuple[ast.Expression, ...]
) -> tuple[tuple[typed.Expression, ...], ast.Closure | None]:
    """The arguments of an operation; a closure among them is kept apart."""
    closures = [node for node in nodes if isinstance(node, ast.Closure)]
    if len(closures) > 1:
        raise refusal("E0203", "expected one closure", closures[1].span, "a second one")
    values = tuple(_argument(checker, n) for n in nodes if not isinstance(n, ast.Closure))
    return values, closures[0] if closures else None


def _argument(checker: Checker, node: ast.Expression) -> typed.Expression:
    if isinstance(node, ast.Array):
        return index_list(checker, node)
    if isinstance(node, ast.Borrow):
        return _lent(checker, node)
    value = checker.expression(node)
    if isinstance(value.type, PartType) and value.type.borrowed is None:
        raise refusal(
            "E0203",
            "an operation borrows a part",
            node.span,
            "this would give it away",
            help="lend it: `&part`",
        )
    return value


def _lent(checker: Checker, node: ast.Borrow) -> typed.Expression:
    value = checker.expression(node.value)
    match value.type:
        case PartType():
            if node.mutable:
                expect_mutable(value, node)
            own = Own.MUT if node.mutable else Own.SHARED
            return replace(value, type=replace(value.type, borrowed=own))
        case TensorType():
            raise refusal(
                "E0203", "this is a reference already", node.span, help="pass it without `&`"
            )
    raise refusal("E0102", "a tile is passed by value", node.span, help="pass it without `&`")
