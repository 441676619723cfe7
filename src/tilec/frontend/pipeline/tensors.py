"""Temporaries and views of tensors in a pipeline: how they are made, named, moved and lent."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilec.artifact.abi import COUNT_LIMIT, ELEMENT_LIMIT
from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.constants import as_integer, evaluate
from tilec.frontend.pipeline.extents import shown
from tilec.frontend.pipeline.trace import Given, Scalar, Size, Tensor, View
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_element
from tilec.integers.polynomial import number
from tilec.ops import uses
from tilec.source import Span
from tilec.types import TF32, USIZE, Own, scalar

_MADE = "`Tensor::<T, …>::uninit()`"


# ---- temporaries ---------------------------------------------------------------------------------


def is_temporary(node: ast.Expression) -> bool:
    """Whether an expression is a call of a function of `Tensor`."""
    return (
        isinstance(node, ast.Call)
        and len(node.function.segments) == 2
        and node.function.segments[0].name.text == "Tensor"
    )


def temporary(tracer: Tracer, node: ast.Call, name: ast.Name) -> View:
    """`Tensor::<T, …>::uninit()`, which `name` is to stand for. Raises CompileError E02xx, E03xx"""
    owner, function = node.function.segments
    if function.name.text != "uninit":
        raise refusal(
            "E0203",
            f"`Tensor` has no function `{function.name.text}`",
            function.name.span,
            "not found",
            help=f"write {_MADE}, and launch a kernel that gives it values",
        )
    if not owner.arguments or function.arguments is not None or node.arguments:
        raise refusal(
            "E0203",
            "a temporary has an element type and extents, and takes no arguments",
            node.span,
            f"expected {_MADE}",
        )
    element = resolve_element(owner.arguments[0], tracer.environment)
    if element == TF32:
        raise refusal("E0203", "`tf32` is never in memory", owner.arguments[0].span)
    extents = tuple(_extent(tracer, one) for one in owner.arguments[1:])
    if len(extents) > uses.MAX_RANK:
        raise refusal("E0301", f"a tensor has at most {uses.MAX_RANK} axes", node.span)
    known = prod(max(1, one.form.constant) for one in extents if one.form.is_constant)
    if known > ELEMENT_LIMIT:  # launchers would refuse each call, where extents of 0 count as 1
        raise refusal(
            "E0203",
            "a tensor has at most 2^60 elements",
            node.span,
            f"these are {known}, or a multiple",
            help="make it smaller, or several",
        )
    new_name = tracer.trace.new_name(name.text)
    tensor = Tensor(new_name, name.text, name.span, element, extents)
    tracer.trace.temporaries.append(tensor)
    return View(tensor, tuple(range(len(extents))), None)


def _extent(tracer: Tracer, node: ast.GenericArgument) -> Size:
    match node:
        case ast.ConstArgument(value=value):
            size = tracer.size(value)
        case ast.PathType(name=name, arguments=()):
            path = ast.Path(name.span, (ast.Segment(name.span, name),))
            size = tracer.size(path)
        case _:
            raise refusal("E0203", "expected an extent", node.span, "this is a type")
    low, high = size.form.interval
    if high < 0 or low > COUNT_LIMIT:
        raise refusal(
            "E0203",
            f"an extent of a tensor is between 0 and {COUNT_LIMIT}",
            node.span,
            f"this is {shown(size.form)}",
        )
    return size


def whole(tracer: Tracer, value: int, span: Span) -> Size:
    """The extent that is a number."""
    literal = typed.Literal(span, scalar(USIZE), value)
    return Size(number(value), Scalar(tracer.frame, literal))


# ---- views ---------------------------------------------------------------------------------------


def view_of(tracer: Tracer, node: ast.Expression) -> View | None:
    """The tensor that an expression stands for; None if it is no tensor.

    Raises:   CompileError: E0401 (moved), E0804 (a view that no launch takes, an access)
    """
    if isinstance(node, ast.MethodCall):
        inner = view_of(tracer, node.receiver)
        return None if inner is None else _method(tracer, node, inner)
    local = tracer.local_of(node)
    if local is None or not (local in tracer.views or local in tracer.moved):
        return None
    return tracer.view_named(local, node.span)


def _method(tracer: Tracer, node: ast.MethodCall, view: View) -> View:
    name = node.method.text
    if name == "permute":
        return _permuted(tracer, node, view)
    if name == "t":
        raise _last_axis(node, "`.t()` makes another axis the last")
    raise refusal(
        "E0804",
        "a pipeline touches no memory",
        node.method.span,
        f"`{name}` is for kernels",
        help="launch a kernel that does it",
    )


def _permuted(tracer: Tracer, node: ast.MethodCall, view: View) -> View:
    written = node.generics or ()
    rank = len(view.axes)
    axes = tuple(_axis(tracer, one, rank) for one in written)
    if sorted(axes) != list(range(rank)) or node.arguments:
        raise refusal(
            "E0303",
            f"expected the {rank} axes of the tensor, each once",
            node.span,
            f"got {axes}" if axes else "got none",
        )
    if axes and axes[-1] != rank - 1:
        raise _last_axis(node, f"this makes axis {axes[-1]} the last")
    return replace(view, axes=tuple(view.axes[axis] for axis in axes))


def _axis(tracer: Tracer, node: ast.GenericArgument, rank: int) -> int:
    match node:
        case ast.ConstArgument(value=value):
            axis = as_integer(evaluate(value, tracer.environment), node.span)
        case ast.PathType(name=name, arguments=()):
            path = ast.Path(name.span, (ast.Segment(name.span, name),))
            axis = as_integer(evaluate(path, tracer.environment), node.span)
        case _:
            raise refusal("E0203", "expected an axis", node.span)
    return axis + rank if axis < 0 else axis


def _last_axis(node: ast.MethodCall, text: str) -> CompileError:
    return refusal(
        "E0804",
        "the last axis of what a launch is given is that of stride 1",
        node.span,
        text,
        help="launch a kernel that takes the tensor as it is, and reads it through `.t()` or "
        "`.permute::<…>()`",
    )


def moved(tracer: Tracer, node: ast.Expression, view: View) -> View:
    """The view as another name gets it: a temporary held by value leaves the one it had."""
    local = tracer.local_of(node)
    if view.held is None and local is not None:
        tracer.moved[local] = node.span
    elif view.held is None:
        return replace(view, held=Own.SHARED)  # a method borrows what it is called on
    return view


# ---- arguments -----------------------------------------------------------------------------------


def given(tracer: Tracer, node: ast.Expression) -> Given:
    """An argument as it is written. Raises CompileError: E0102, E0203, E0401, E0402, E0804."""
    if isinstance(node, ast.Borrow):
        return _lent(tracer, node)
    view = view_of(tracer, node)
    if view is None:
        _expect_known(tracer, node)
        return Given(node.span, None, tracer.scalar(node))
    if view.held is None and tracer.local_of(node) is not None:
        name = view.tensor.written
        raise refusal(
            "E0203",
            "a launch borrows its temporaries",
            node.span,
            "this would give it away",
            help=f"lend it: `&{name}`, or `&mut {name}` to be written",
        )
    return Given(node.span, moved(tracer, node, view))


def _expect_known(tracer: Tracer, node: ast.Expression) -> None:
    local = tracer.local_of(node)
    if local is not None and local.type is None:
        raise AlreadyReportedError
    if is_temporary(node):
        raise refusal(
            "E0203", "a temporary has a name", node.span, help="write `let mut t = …;` before"
        )


def _lent(tracer: Tracer, node: ast.Borrow) -> Given:
    view = view_of(tracer, node.value)
    if view is None:
        _expect_known(tracer, node.value)
        tracer.scalar(node.value)
        raise refusal("E0102", "scalars are passed by value", node.span, help="drop `&`")
    if not node.mutable:
        # What is atomic stays so.
        held = Own.ATOMIC if view.held is Own.ATOMIC else Own.SHARED
        return Given(node.span, replace(view, held=held))
    root = node.value
    while isinstance(root, ast.MethodCall):
        root = root.receiver
    local = tracer.local_of(root)
    assert local is not None, "a view is of a variable"
    if view.held in (Own.SHARED, Own.ATOMIC):
        return Given(node.span, view)  # refused where it is written
    if not local.mutable:
        is_held = view.held is None
        raise refusal(
            "E0203",
            f"`{local.name}` is lent mutably but not declared `mut`",
            node.span,
            "lent here",
            Label(local.span, "declared here"),
            help=f"write `let mut {local.name}`" if is_held else f"pass it on: `{local.name}`",
        )
    return Given(node.span, replace(view, held=Own.MUT))
