"""Calls in a pipeline: launches of kernels, and other pipelines, which are executed in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.attributes import read_attributes
from tilec.frontend.bindings import Binding, Environment
from tilec.frontend.checker import Checker, KernelState
from tilec.frontend.constants import unknown_name
from tilec.frontend.generics import check_generics, is_dim
from tilec.frontend.modules import Module
from tilec.frontend.pipeline.kernels import Parameter, parameters_of
from tilec.frontend.pipeline.launches import launch
from tilec.frontend.pipeline.matching import check_exclusive, check_lending, fit, own_of
from tilec.frontend.pipeline.solve import solved
from tilec.frontend.pipeline.tensors import given, is_temporary
from tilec.frontend.pipeline.trace import Frame, Given, Scalar
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.typecheck_helper_body import check_helper
from tilec.types import Dim, Element, Own, TensorType, TileType

# Executes the body of a pipeline, its parameters being bound.
Execute = Callable[[Tracer, ast.Function], None]


def call(tracer: Tracer, node: ast.Call, execute: Execute) -> None:
    """A call as a statement. Raises CompileError."""
    if is_temporary(node):
        raise refusal("E0203", "a temporary has a name", node.span, help="write `let mut t = …;`")
    module, function = _callee(tracer, node)
    attributes, _ = read_attributes(function, module)
    if attributes.kernel is None and attributes.pipeline is None:
        raise refusal(
            "E0804",
            "a pipeline launches kernels and calls pipelines",
            node.span,
            "a helper runs inside of a kernel",
            Label(function.name.span, "defined here"),
            help="call it in a kernel, and launch that",
        )
    if len(node.arguments) != len(function.parameters):
        raise refusal(
            "E0203",
            f"`{function.name.text}` takes {len(function.parameters)} arguments",
            node.span,
            f"got {len(node.arguments)}",
            Label(function.name.span, "defined here"),
        )
    if attributes.pipeline is not None and any(function is one for one in tracer.trace.active):
        raise AlreadyReportedError  # by `check_recursion`
    arguments = tuple(given(tracer, argument) for argument in node.arguments)
    if attributes.kernel is not None:
        launch(tracer, node, module, function, arguments)
    else:
        _inline(tracer, node, module, function, arguments, execute)


def _callee(tracer: Tracer, node: ast.Call) -> tuple[Module, ast.Function]:
    name = node.function.segments[0].name
    module = tracer.checker.module
    if tracer.checker.scope.has(name.text):
        raise refusal("E0203", f"`{name.text}` is not a function", name.span, "a variable")
    found = module.find(name.text) if len(node.function.segments) == 1 else None
    if found is not None and isinstance(found[1], ast.Function):
        return found[0], found[1]
    if found is not None:
        raise refusal("E0203", f"`{name.text}` is not a function", name.span, "a constant")
    if name.text in module.missing:
        raise AlreadyReportedError
    tracer.checker.expression(node)  # an operation of kernels, or nothing that is known
    if len(node.function.segments) > 1:
        raise _no_launch(node)
    raise _no_launch(node) if name.text not in module.names() else unknown_name(name, set())


def _no_launch(node: ast.Call) -> CompileError:
    return refusal(
        "E0804",
        "a pipeline launches kernels and calls pipelines",
        node.span,
        "this is for kernels",
        help="write a kernel that does it, and launch that",
    )


# ---- other pipelines -----------------------------------------------------------------------------


def _inline(
    tracer: Tracer,
    node: ast.Call,
    module: Module,
    function: ast.Function,
    arguments: tuple[Given, ...],
    execute: Execute,
) -> None:
    if any(check_generics(function)):
        raise AlreadyReportedError
    bindings = solved(tracer, node, function, arguments)
    for generic in function.generics:
        if is_dim(generic):
            bindings[generic.name.text] = Dim(generic.name.text)
    try:
        parameters = parameters_of(function, Environment(module, bindings))
    except CompileError:
        raise AlreadyReportedError from None  # where the pipeline itself is executed, or by names
    found = fit(parameters, arguments, tracer.checker.inference)
    if found.fault is not None:
        raise found.fault
    for parameter, argument in zip(parameters, arguments, strict=True):
        check_lending(parameter, argument, function.name.text)
    check_exclusive(parameters, arguments)
    inner = _called(tracer, node, module, function, bindings)
    for dim, size in found.dims.items():
        inner.frame.dims[dim] = size.scalar
        inner.dim_forms[dim.name] = size.form
    for ast_parameter, parameter, argument in zip(
        function.parameters, parameters, arguments, strict=True
    ):
        _bind(tracer, inner, ast_parameter, parameter, argument)
    tracer.trace.active.append(function)
    try:
        execute(inner, function)
    finally:
        tracer.trace.active.pop()
        inner.checker.finish()
        tracer.trace.reached.append(function)
        # Scalars of the callee are typed by its own checker.
        for diagnostic in inner.checker.kernel.diagnostics:
            inner.report(CompileError(diagnostic))


def _called(
    tracer: Tracer,
    node: ast.Call,
    module: Module,
    function: ast.Function,
    bindings: dict[str, Binding],
) -> Tracer:
    state = KernelState(tracer.trace.program, tracer.trace.symbol, False, check_helper)
    state.active.append(function)
    checker = Checker(state, function, Environment(module, bindings), is_kernel=False)
    calls = (*tracer.calls, node.span)
    return Tracer(tracer.trace, tracer.kernels, checker, Frame(checker.inference), calls)


def _bind(
    tracer: Tracer,
    inner: Tracer,
    declared: ast.Parameter,
    parameter: Parameter,
    argument: Given,
) -> None:
    pattern = declared.pattern
    if not isinstance(pattern, ast.BindingPattern):
        raise AlreadyReportedError  # where the pipeline itself is executed
    if argument.view is not None:
        assert isinstance(parameter.type, TensorType), "a pipeline takes no parts"
        held = {"shared": Own.SHARED, "mut": Own.MUT, "atomic": Own.ATOMIC}[own_of(parameter) or ""]
        inner.bind(pattern.name, replace(argument.view, held=held), mutable=pattern.mutable)
        return
    assert argument.scalar is not None and isinstance(parameter.type, TileType)
    assert isinstance(argument.scalar.type, TileType), "a scalar"
    element = parameter.type.element
    assert isinstance(element, Element), "a parameter's type is known"
    tracer.checker.inference.unify(argument.scalar.type.element, element)
    local = typed.Local(pattern.name.text, pattern.name.span, parameter.type, False, host=True)
    inner.checker.scope.declare(local)
    inner.frame.values[local] = Scalar(tracer.frame, argument.scalar)
    inner.forms[local] = tracer.form_of(argument.scalar)
