"""Calls in a pipeline: launches of kernels, and other pipelines, which are executed in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.attributes import read_attributes
from tilec.frontend.bindings import Binding, Environment
from tilec.frontend.checker import Checker, KernelState
from tilec.frontend.constants import unknown_name
from tilec.frontend.generics import check_generics, is_dim
from tilec.frontend.modules import Module
from tilec.frontend.pipeline.again import (
    Before,
    Key,
    before,
    cut,
    done,
    key_of,
    launched_again,
)
from tilec.frontend.pipeline.kernels import Parameter
from tilec.frontend.pipeline.launches import MAX_LAUNCHES, launch
from tilec.frontend.pipeline.matching import check_exclusive, check_lending, fit
from tilec.frontend.pipeline.solve import solved
from tilec.frontend.pipeline.tensors import given, is_temporary
from tilec.frontend.pipeline.trace import MAX_TURNS, Frame, Given, Scalar, View
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.typecheck_helper_body import check_helper
from tilec.frontend.typecheck_parameters import declared_parameters
from tilec.types import Dim, TensorType, TileType, Type

# Calls of other pipelines in one, those in called ones too: also of those that launch nothing.
MAX_CALLS = 1024

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
    tracer.trace.called += 1
    if tracer.trace.called > MAX_CALLS + 1:
        raise AlreadyReportedError
    if tracer.trace.called > MAX_CALLS:
        tracer.trace.is_cut = True
        raise refusal(
            "E0803", f"a pipeline calls others at most {MAX_CALLS} times", node.span, "one too many"
        )
    bindings = solved(tracer, node, function, arguments)
    bindings |= {g.name.text: Dim(g.name.text) for g in function.generics if is_dim(g)}
    inner = _called(tracer, node, module, function, bindings)
    found = inner.checker.kernel.diagnostics
    locals = declared_parameters(inner.checker, "pipeline")
    if found:
        inner.report(CompileError(*found))
        return
    pairs = list(zip(locals, function.parameters, strict=True))
    parameters = [Parameter(local.name, _known(local), one.span) for local, one in pairs]
    fitting = fit(parameters, arguments, tracer.checker.inference)
    if fitting.fault is not None:
        raise fitting.fault
    for parameter, argument in zip(parameters, arguments, strict=True):
        check_lending(parameter, argument, function.name.text)
    check_exclusive(parameters, arguments, "call")
    for dim, size in fitting.dims.items():
        inner.frame.dims[dim] = size.scalar
        inner.dim_forms[dim.name] = size.form
    for local, argument in zip(locals, arguments, strict=True):
        _bind(tracer, inner, local, argument)
    views = [argument.view for argument in arguments]
    key = key_of(function, bindings, views)
    tracer.trace.reached.append(function)
    if key is not None and _is_known(inner, key, views):
        return
    start = before(tracer.trace)
    tracer.trace.active.append(function)
    execute(inner, function)
    tracer.trace.active.pop()
    inner.checker.finish()
    if key is not None and not found and not tracer.trace.is_cut:
        note(inner, key, start, views)
    # What the type checker found without raising it.
    if found:
        inner.report(CompileError(*found))


def _is_known(inner: Tracer, key: Key, views: Sequence[View | None]) -> bool:
    """Whether a call is as one before was, and done with.

    Raises:   AlreadyReportedError if it calls more than a pipeline may
    """
    known, trace = inner.kernels.calls.get(key), inner.trace
    if known is None:
        return False
    if known.is_cut:
        trace.is_cut = True
        raise AlreadyReportedError
    is_within = (
        trace.called + known.called <= MAX_CALLS
        and trace.turns + known.turns <= MAX_TURNS
        and len(trace.launches) + len(known.launches) <= MAX_LAUNCHES
    )
    if is_within:  # else it is executed as far as it goes, to be refused at its place
        trace.launches += launched_again(known, views, inner.calls)
        trace.called += known.called
        trace.turns += known.turns
    return is_within


def note(tracer: Tracer, key: Key, start: Before, views: Sequence[View | None]) -> None:
    """Keep what a call has launched since `start`, for calls like it."""
    trace = tracer.trace
    known = cut() if trace.is_cut else done(trace, start, views, len(tracer.calls))
    if known is not None:
        tracer.kernels.calls.setdefault(key, known)


def _known(local: typed.Local) -> Type:
    assert local.type is not None, "nothing is wrong with the parameters"
    return local.type


def _called(
    tracer: Tracer,
    node: ast.Call,
    module: Module,
    function: ast.Function,
    bindings: dict[str, Binding],
) -> Tracer:
    state = KernelState(tracer.trace.program, tracer.trace.symbol, False, check_helper)
    checker = Checker(state, function, Environment(module, bindings), is_kernel=False)
    calls = (*tracer.calls, node.span)
    return Tracer(tracer.trace, tracer.kernels, checker, Frame(checker.inference), calls)


def _bind(tracer: Tracer, inner: Tracer, local: typed.Local, argument: Given) -> None:
    """Let a parameter of the callee stand for what the caller gives."""
    match local.type:
        case TensorType(own=own):
            assert argument.view is not None, "it fits"
            inner.views[local] = replace(argument.view, held=own)
        case TileType(element=element):
            assert argument.scalar is not None, "it fits"
            assert isinstance(argument.scalar.type, TileType), "a scalar"
            tracer.checker.inference.unify(argument.scalar.type.element, element)
            local.host = True
            inner.frame.values[local] = Scalar(tracer.frame, argument.scalar)
            inner.forms[local] = tracer.form_of(argument.scalar)
