"""One instance of a pipeline: its parameters, and everything that it launches.

A pipeline is executed at compile time, with its types and constants known and its extents not.
"""

from __future__ import annotations

from tilec.diagnostics import CompileError, Diagnostic
from tilec.frontend import ast, typed
from tilec.frontend.attributes import Attributes
from tilec.frontend.bindings import Constant, Environment
from tilec.frontend.checker import Checker, KernelState
from tilec.frontend.generics import is_dim
from tilec.frontend.instantiate import Instance
from tilec.frontend.modules import Program
from tilec.frontend.pipeline.again import Before, before, key_of
from tilec.frontend.pipeline.calls import note
from tilec.frontend.pipeline.execute import execute
from tilec.frontend.pipeline.kernels import Kernels
from tilec.frontend.pipeline.tensors import whole
from tilec.frontend.pipeline.trace import Frame, PipelineInstance, Scalar, Size, Tensor, Trace, View
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.frontend.typecheck_helper_body import check_helper
from tilec.frontend.typecheck_parameters import declared_parameters
from tilec.types import UNIT, USIZE, Dim, TensorType, scalar


def check_pipeline(
    program: Program,
    function: ast.Function,
    attributes: Attributes,
    instance: Instance,
    kernels: Kernels,
) -> tuple[PipelineInstance | None, list[Diagnostic], list[ast.Function]]:
    """The pipeline (None if anything is wrong), what is wrong, and the pipelines it calls."""
    trace = Trace(program, instance.symbol)
    trace.active.append(function)
    state = KernelState(program, instance.symbol, False, check_helper, trace.diagnostics)
    environment = Environment(program.root, instance.generics)
    checker = Checker(state, function, environment, is_kernel=False)
    tracer = Tracer(trace, kernels, checker, Frame(checker.inference))
    parameters: tuple[typed.Local, ...] = ()
    start: Before | None = None
    try:
        _check_form(checker, attributes)
        parameters = _parameters(tracer)
        start = before(trace)
        execute(tracer, function)
    except CompileError as error:
        checker.report(error)
        start = None
    checker.finish()
    if start is not None:
        views = [tracer.views.get(local) for local in parameters]
        key = key_of(function, instance.generics, views)
        if key is not None:
            note(tracer, key, start, views)
    made = PipelineInstance(
        name=function.name.text,
        symbol=instance.symbol,
        span=function.name.span,
        documentation=function.documentation,
        generics=tuple(
            (name, value.value if isinstance(value, Constant) else value)
            for name, value in instance.values
        ),
        dims=tuple(Dim(g.name.text) for g in function.generics if is_dim(g)),
        parameters=parameters,
        frame=tracer.frame,
        requires=tuple(trace.requires),
        temporaries=tuple(trace.temporaries),
        launches=tuple(trace.launches),
    )
    return (None if trace.diagnostics else made), trace.diagnostics, trace.reached


def _check_form(checker: Checker, attributes: Attributes) -> None:
    """That it returns nothing, and that its instances have no hints."""
    result = checker.function.result
    if result is not None and resolve_type(result, checker.environment) != UNIT:
        checker.report(
            refusal(
                "E0203",
                "a pipeline returns nothing",
                result.span,
                "expected no type",
                help="take what it makes as a `&mut Tensor<…>`",
            )
        )
    for argument in (a for one in attributes.instances for a in one.arguments):
        if argument.arguments is not None:
            checker.report(
                refusal(
                    "E0204",
                    "hints are for kernels",
                    argument.span,
                    "this function is a pipeline",
                    help="give them to the kernels that it launches",
                )
            )


def _parameters(tracer: Tracer) -> tuple[typed.Local, ...]:
    parameters = declared_parameters(tracer.checker, "pipeline")
    trace = tracer.trace
    trace.names |= {local.name for local in parameters}
    trace.names |= {g.name.text for g in tracer.checker.function.generics}
    for local in parameters:
        if not isinstance(local.type, TensorType):
            local.host = True
            tracer.forms[local] = trace.extents.named(local.name, is_dim=False)
            continue
        extents = tuple(_size(tracer, extent, local) for extent in local.type.extents)
        tensor = Tensor(
            local.name, local.name, local.span, local.type.element, extents, local.type.own
        )
        tracer.views[local] = View(tensor, tuple(range(len(extents))), local.type.own)
    return parameters


def _size(tracer: Tracer, extent: Dim | int, local: typed.Local) -> Size:
    if isinstance(extent, int):
        return whole(tracer, extent, local.span)
    value = typed.DimValue(local.span, scalar(USIZE), extent)
    form = tracer.trace.extents.named(extent.name, is_dim=True)
    return Size(form, Scalar(tracer.frame, value))
