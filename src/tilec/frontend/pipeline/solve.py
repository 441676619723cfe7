"""Values for the type and const generics of a pipeline that another one calls."""

from __future__ import annotations

from tilec.diagnostics import Label
from tilec.frontend import ast
from tilec.frontend.bindings import Binding, Constant
from tilec.frontend.generics import bound_value, is_dim
from tilec.frontend.pipeline.trace import Given
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import refusal
from tilec.frontend.solve_generics import from_turbofish
from tilec.types import Element, TileType


def solved(
    tracer: Tracer, node: ast.Call, function: ast.Function, arguments: tuple[Given, ...]
) -> dict[str, Binding]:
    """Type and const generics of a pipeline, from the turbofish or the arguments.

    Raises:   CompileError: E02xx; E0701 for one that nothing gives a value
    """
    found: dict[str, Binding] = dict(from_turbofish(tracer.checker, node, function) or {})
    generics = {g.name.text: g for g in function.generics if not is_dim(g)}
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        for name, value in read_off(tracer, parameter.type, argument):
            if name in generics and name not in found:
                found[name] = bound_value(generics[name], value, argument.span)
    missing = [g for name, g in generics.items() if name not in found]
    if missing:
        listed = ", ".join(f"`{g.name.text}`" for g in missing)
        raise refusal(
            "E0701",
            f"no argument of `{function.name.text}` gives a value to {listed}",
            node.span,
            "",
            *(Label(g.span, "has no value") for g in missing),
            help=f"write `{function.name.text}::<…>(…)`",
        )
    return found


def read_off(
    tracer: Tracer, node: ast.TypeNode, argument: Given
) -> list[tuple[str, Element | Constant]]:
    """What an argument says of the names in a parameter's type, as it is written."""
    if argument.view is None:
        assert argument.scalar is not None and isinstance(argument.scalar.type, TileType)
        element = tracer.checker.inference.known(argument.scalar.type.element)
        return [(node.name.text, element)] if isinstance(node, ast.PathType) else []
    match node:
        case ast.PathType(name=ast.Name(text="Part"), arguments=(ast.ReferenceType() as whole, *_)):
            node = whole
    while isinstance(node, ast.ReferenceType):
        node = node.target
    match node:
        case ast.PathType(name=ast.Name(text="Atomic"), arguments=(ast.PathType() as tensor,)):
            node = tensor
    if not isinstance(node, ast.PathType) or not node.arguments:
        return []
    found: list[tuple[str, Element | Constant]] = []
    element_node, *extents = node.arguments
    if isinstance(element_node, ast.PathType):
        found.append((element_node.name.text, argument.view.tensor.element))
    for extent, size in zip(extents, argument.view.extents, strict=False):
        if isinstance(extent, ast.PathType) and size.form.is_constant:
            found.append((extent.name.text, Constant(size.form.constant)))
    return found
