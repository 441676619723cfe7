"""The parameters of a kernel or pipeline: tensors, parts and scalars, each with a name."""

from __future__ import annotations

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.checker import Checker
from tilec.frontend.generics import is_dim
from tilec.frontend.refusal import refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.types import STORAGE_ONLY, Dim, PartType, TensorType, TileType, Type


def declared_parameters(checker: Checker, what: str = "kernel") -> tuple[typed.Local, ...]:
    """The parameters of a kernel, or of a pipeline (`what`), declared.

    What is wrong with one does not hide the others.
    """
    found: list[typed.Local] = []
    for parameter in checker.function.parameters:
        try:
            found.append(_parameter(checker, parameter, what))
        except CompileError as error:
            checker.report(error)
            if isinstance(parameter.pattern, ast.BindingPattern):
                name = parameter.pattern.name
                checker.scope.declare(typed.Local(name.text, name.span, None))
    _check_dims(checker, found)
    return tuple(found)


def _parameter(checker: Checker, parameter: ast.Parameter, what: str) -> typed.Local:
    pattern = parameter.pattern
    if not isinstance(pattern, ast.BindingPattern):
        raise refusal("E0203", f"a parameter of a {what} has a name", pattern.span)
    type_ = resolve_type(parameter.type, checker.environment)
    _check_parameter_type(type_, parameter, what)
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


def _check_parameter_type(type_: Type, parameter: ast.Parameter, what: str) -> None:
    match type_:
        case PartType() if what == "pipeline":
            raise refusal(
                "E0203",
                "a pipeline takes tensors and scalars",
                parameter.type.span,
                f"this is `{type_}`",
                help=f"take it as `{type_.tensor}`: a launch cuts it into parts",
            )
        case TensorType() | PartType(borrowed=None):
            return
        case TileType(shape=(), element=element) if element not in STORAGE_ONLY:
            return
        case TileType(shape=()):
            raise refusal(
                "E0203",
                f"no caller has a scalar of type `{type_}`",
                parameter.type.span,
                "callers give numbers that compute",
                help=f"take it as `f32`, and convert it: `.to::<{type_}>()`",
            )
    raise refusal(
        "E0203",
        f"a {what} takes tensors{', parts' if what == 'kernel' else ''} and scalars",
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
