"""Type checking of one kernel instance and of the helpers that it calls.

Each instance is checked by itself, with its types and constants known; extents stay symbolic.
"""

from __future__ import annotations

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import (  # noqa: F401  (these register their rules)
    ast,
    typecheck_calls,
    typecheck_loops,
    typecheck_macros,
    typed,
)
from tilec.frontend.agreement import expect
from tilec.frontend.attributes import Attributes
from tilec.frontend.bindings import Constant, Environment
from tilec.frontend.checker import Checker, KernelState
from tilec.frontend.host import is_host
from tilec.frontend.instantiate import Instance, is_dim
from tilec.frontend.modules import Module, Program
from tilec.frontend.patterns import bind_pattern
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.frontend.typecheck_statements import kernel_body
from tilec.frontend.typecheck_values import convert
from tilec.types import UNIT, USIZE, Dim, Own, PartType, TensorType, TileType, Type


def check_kernel(
    program: Program,
    module: Module,
    kernel: ast.Function,
    attributes: Attributes,
    instance: Instance,
) -> tuple[typed.KernelInstance | None, list[Diagnostic], list[ast.Function]]:
    """The typed kernel (None if anything is wrong), what is wrong, and the helpers it reaches."""
    environment = Environment(module, instance.generics)
    state = KernelState(program, instance.symbol, _has_parts(kernel), check_helper)
    state.active.append(kernel)
    checker = Checker(state, kernel, environment, is_kernel=True)
    try:
        made = _kernel(checker, attributes, instance)
    except CompileError as error:
        checker.report(error)
        made = None
    checker.finish()
    return (None if state.diagnostics else made), state.diagnostics, state.reached


def _has_parts(kernel: ast.Function) -> bool:
    """Whether a parameter is written as a part, so that even a wrong one decides the grid."""
    return any(
        isinstance(p.type, ast.PathType) and p.type.name.text == "Part" for p in kernel.parameters
    )


def _kernel(checker: Checker, attributes: Attributes, instance: Instance) -> typed.KernelInstance:
    kernel = checker.function
    parameters = _parameters(checker)
    _check_shape(checker, attributes)
    grid = _grid(checker, attributes)
    body = kernel_body(checker, kernel.body)
    return typed.KernelInstance(
        symbol=instance.symbol,
        name=kernel.name.text,
        span=kernel.name.span,
        file=checker.module.source.name,
        documentation=kernel.documentation,
        generics=tuple(
            (name, value.value if isinstance(value, Constant) else value)
            for name, value in instance.values
        ),
        hints=attributes.hints,
        dims=tuple(Dim(g.name.text) for g in kernel.generics if is_dim(g)),
        parameters=parameters,
        grid=grid,
        body=body,
        inference=checker.inference,
        helpers=tuple(checker.kernel.helpers.values()),
    )


# ---- parameters --------------------------------------------------------------------------------


def _parameters(checker: Checker) -> tuple[typed.Local, ...]:
    """The parameters of a kernel, declared; what is wrong with one does not hide the others."""
    found: list[typed.Local] = []
    for parameter in checker.function.parameters:
        try:
            found.append(_parameter(checker, parameter))
        except CompileError as error:
            checker.report(error)
            if isinstance(parameter.pattern, ast.BindingPattern):
                name = parameter.pattern.name
                checker.scope.declare(typed.Local(name.text, name.span, None))
    _check_dims(checker, found)
    return tuple(found)


def _parameter(checker: Checker, parameter: ast.Parameter) -> typed.Local:
    pattern = parameter.pattern
    if not isinstance(pattern, ast.BindingPattern):
        raise refusal("E0203", "a parameter of a kernel has a name", pattern.span)
    type_ = resolve_type(parameter.type, checker.environment)
    _check_parameter_type(type_, parameter)
    earlier = checker.scope.find(pattern.name.text)
    if earlier is not None:
        raise refusal(
            "E0205",
            f"the name `{pattern.name.text}` is defined twice",
            pattern.name.span,
            "defined again",
            Label(earlier.span, "defined first"),
        )
    host = isinstance(type_, TileType) and not pattern.mutable
    local = typed.Local(pattern.name.text, pattern.name.span, type_, pattern.mutable, host)
    checker.scope.declare(local)
    return local


def _check_parameter_type(type_: Type, parameter: ast.Parameter) -> None:
    match type_:
        case TensorType() | PartType(borrowed=None):
            return
        case TileType(shape=()):
            return
    raise refusal(
        "E0203",
        "a kernel takes tensors, parts and scalars",
        parameter.type.span,
        f"this is `{type_}`",
    )


def _check_dims(checker: Checker, parameters: list[typed.Local]) -> None:
    """E0701 for each `Dim` that no tensor binds."""
    if len(parameters) < len(checker.function.parameters):
        return
    bound = set()
    for local in parameters:
        tensor = local.type.tensor if isinstance(local.type, PartType) else local.type
        if isinstance(tensor, TensorType):
            bound |= {extent for extent in tensor.extents if isinstance(extent, Dim)}
    for generic in checker.function.generics:
        if is_dim(generic) and Dim(generic.name.text) not in bound:
            checker.report(
                refusal(
                    "E0701",
                    f"no tensor binds the extent `{generic.name.text}`",
                    generic.span,
                    "has no value",
                    help="name it as an extent of a parameter",
                )
            )


# ---- the kernel itself -------------------------------------------------------------------------


def _check_shape(checker: Checker, attributes: Attributes) -> None:
    """That the kernel has one grid and returns nothing."""
    kernel = checker.function
    if kernel.result is not None and resolve_type(kernel.result, checker.environment) != UNIT:
        checker.report(
            refusal("E0203", "a kernel returns nothing", kernel.result.span, "expected no type")
        )
    if checker.kernel.has_parts and attributes.grid_span is not None:
        checker.report(
            refusal(
                "E0204",
                "the grid of a kernel with parts is that of its parts",
                attributes.grid_span.span,
                "given here",
                help="drop `grid = …`",
            )
        )
    if not checker.kernel.has_parts and attributes.grid is None:
        checker.report(
            refusal(
                "E0701",
                f"the grid of `{kernel.name.text}` is unknown",
                kernel.name.span,
                "neither a `Part` nor `grid = […]`",
                help="write `#[kernel(grid = […])]`, or take an output as a `Part`",
            )
        )


def _grid(checker: Checker, attributes: Attributes) -> tuple[typed.Expression, ...] | None:
    if attributes.grid is None or checker.kernel.has_parts:
        return None
    found = []
    for node in attributes.grid:
        try:
            found.append(_grid_extent(checker, node))
        except CompileError as error:
            checker.report(error)
    return tuple(found)


def _grid_extent(checker: Checker, node: ast.Expression) -> typed.Expression:
    value = checker.expression(node)
    type_ = value.type
    if not isinstance(type_, TileType) or not type_.is_scalar:
        raise refusal("E0203", "an extent of a grid is an integer", node.span, f"this is `{type_}`")
    element = checker.inference.resolve(type_.element)
    if not element.is_integer:
        raise refusal("E0203", "an extent of a grid is an integer", node.span, f"of `{element}`")
    if not is_host(value):
        raise refusal(
            "E0203",
            "a grid is over extents and scalar parameters",
            node.span,
            "a launcher cannot know this",
        )
    if element == USIZE or checker.inference.unify(type_.element, USIZE):
        return value
    return convert(checker, value, USIZE, node)


# ---- helpers -----------------------------------------------------------------------------------


def check_helper(
    kernel: KernelState,
    environment: Environment,
    function: ast.Function,
    parameters: tuple[tuple[Type, Own | None], ...],
    dims: tuple[Dim, ...],
    symbol: str,
) -> typed.FunctionInstance:
    """A helper checked for these generics and types. What is wrong in its body is reported.

    Raises:   CompileError if not even its type is known
    """
    checker = Checker(kernel, function, environment, is_kernel=False)
    kernel.reached.append(function)
    kernel.active.append(function)
    try:
        return _helper(checker, parameters, dims, symbol)
    finally:
        kernel.active.pop()


def _helper(
    checker: Checker,
    parameters: tuple[tuple[Type, Own | None], ...],
    dims: tuple[Dim, ...],
    symbol: str,
) -> typed.FunctionInstance:
    function = checker.function
    try:
        result = resolve_type(function.result, checker.environment) if function.result else UNIT
        if isinstance(result, PartType) and result.borrowed is not None:
            assert function.result is not None, "there is a type"
            raise refusal("E0102", "a helper returns no reference to a part", function.result.span)
        patterns = tuple(
            typed.HelperParameter(bind_pattern(checker, parameter.pattern, type_), type_, lent)
            for parameter, (type_, lent) in zip(function.parameters, parameters, strict=True)
        )
        _check_names(patterns)
    except CompileError as error:
        checker.report(error)
        raise AlreadyReportedError from None
    instance = typed.FunctionInstance(
        symbol, function.name.span, dims, patterns, checker.inference, result
    )
    try:
        body = checker.expression(function.body)
        assert isinstance(body, typed.Block), "a body is a block"
        _expect_result(checker, body, result)
        instance.body = body
        if isinstance(body.type, TensorType):
            instance.result = body.type
    except CompileError as error:
        checker.report(error)
    checker.finish()
    return instance


def _check_names(parameters: tuple[typed.HelperParameter, ...]) -> None:
    seen: dict[str, typed.Local] = {}
    for parameter in parameters:
        for bind in typed.below(parameter.pattern, typed.Bind):
            first = seen.setdefault(bind.local.name, bind.local)
            if first is not bind.local:
                raise refusal(
                    "E0205",
                    f"the name `{first.name}` is defined twice",
                    bind.local.span,
                    "defined again",
                    Label(first.span, "defined first"),
                )


def _expect_result(checker: Checker, body: typed.Block, result: Type) -> None:
    function = checker.function
    place = body.tail.span if body.tail else function.name.span
    if function.result is None and body.tail is None:
        return
    label = (Label(function.result.span, "declared here"),) if function.result else ()
    actual = body.type
    if isinstance(actual, TensorType) and isinstance(result, TensorType):
        if actual.own is Own.MUT and result.own is Own.SHARED:
            raise refusal("E0203", "a `&mut` tensor is returned as such", place, "", *label)
        actual = TensorType(actual.element, actual.extents, actual.own)
    expect(actual, result, checker.inference, place, *label)
