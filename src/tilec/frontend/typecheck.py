"""Type checking of one kernel instance and of the helpers that it calls.

Each instance is checked by itself, with its types and constants known; extents stay symbolic.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from tilec.diagnostics import CompileError, Diagnostic
from tilec.frontend import (  # noqa: F401  (these register their rules)
    ast,
    typecheck_calls,
    typecheck_loops,
    typecheck_macros,
    typed,
)
from tilec.frontend.attributes import Attributes
from tilec.frontend.bindings import Constant, Environment
from tilec.frontend.checker import Checker, KernelState
from tilec.frontend.generics import is_dim
from tilec.frontend.host import is_host
from tilec.frontend.instantiate import Instance
from tilec.frontend.modules import Module, Program
from tilec.frontend.refusal import refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.frontend.size import check_size
from tilec.frontend.typecheck_guards import kernel_body
from tilec.frontend.typecheck_helper_body import check_helper, check_waiting
from tilec.frontend.typecheck_operators import convert
from tilec.frontend.typecheck_parameters import declared_parameters
from tilec.types import UNIT, USIZE, Dim, TileType


def check_kernel(
    program: Program,
    module: Module,
    kernel: ast.Function,
    attributes: Attributes,
    instance: Instance,
) -> tuple[typed.KernelInstance | None, list[Diagnostic], list[ast.Function]]:
    """The typed kernel (None if anything is wrong), what is wrong, and the helpers it reaches."""
    environment = Environment(module, instance.generics)
    state = KernelState(program, instance.symbol, _has_parts(kernel), check_helper, waiting=deque())
    checker = Checker(state, kernel, environment, is_kernel=True)
    try:
        made = _kernel(checker, attributes, instance)
    except CompileError as error:
        checker.report(error)
        made = None
    checker.finish()
    check_waiting(state)
    if made is None or state.diagnostics:
        return None, state.diagnostics, state.reached
    made = replace(made, helpers=tuple(state.helpers.values()))
    too_large = list(check_size(made))
    return (None if too_large else made), too_large, state.reached


def _has_parts(kernel: ast.Function) -> bool:
    """Whether a parameter is written as a part, so that even a wrong one decides the grid."""
    types = (p.type for p in kernel.parameters)
    named = (t.target if isinstance(t, ast.ReferenceType) else t for t in types)
    return any(isinstance(t, ast.PathType) and t.name.text == "Part" for t in named)


def _kernel(checker: Checker, attributes: Attributes, instance: Instance) -> typed.KernelInstance:
    kernel = checker.function
    parameters = declared_parameters(checker)
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
        hints={name: value for name, (value, _) in instance.hints.items()},
        hint_spans={name: span for name, (_, span) in instance.hints.items()},
        dims=tuple(Dim(g.name.text) for g in kernel.generics if is_dim(g)),
        parameters=parameters,
        grid=grid,
        body=body,
        inference=checker.inference,
    )


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
