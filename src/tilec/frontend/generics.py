"""Generic parameters: what bounds mean, and which values a parameter takes."""

from __future__ import annotations

from collections.abc import Iterator

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.bindings import Constant
from tilec.frontend.constants import fitted
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.source import Span
from tilec.types import BOOL, F32, I32, STORAGE_ONLY, TF32, USIZE, Element

BOUNDS = ("Num", "Float", "Int", "Any")
CONST_TYPES = {"usize": USIZE, "i32": I32, "bool": BOOL, "f32": F32}


def meets_bound(element: Element, bound: str) -> bool:
    """Whether an element type may stand for a generic with this bound."""
    if bound == "Any":
        return element != TF32
    if element in STORAGE_ONLY or element == BOOL:
        return False
    return {"Num": True, "Float": element.is_float, "Int": element.is_integer}[bound]


def is_dim(generic: ast.GenericParameter) -> bool:
    return generic.bound is not None and generic.bound.text == "Dim"


def check_generics(function: ast.Function) -> Iterator[Diagnostic]:
    """What is wrong with the generic parameters themselves: bounds, const types, names.

    Launchers know extents and scalars by their names: no parameter has that of a generic.
    """
    seen: dict[str, ast.Name] = {}
    for generic in function.generics:
        first = seen.setdefault(generic.name.text, generic.name)
        if first is not generic.name:
            yield _defined_twice(generic.name.text, generic.span, first.span)
        try:
            _check_generic(generic)
        except CompileError as error:
            yield from error.diagnostics
    for parameter in function.parameters:
        match parameter.pattern:
            case ast.BindingPattern(name=name) if name.text in seen:
                yield _defined_twice(name.text, name.span, seen[name.text].span)


def _defined_twice(name: str, again: Span, first: Span) -> Diagnostic:
    labels = (Label(again, "defined again"), Label(first, "defined first"))
    return Diagnostic("E0205", f"the name `{name}` is defined twice", labels)


def _check_generic(generic: ast.GenericParameter) -> None:
    if generic.const_type is not None:
        const_element(generic)
        return
    bounds = (*BOUNDS, "Dim")
    if generic.bound is None:
        raise refusal(
            "E0203",
            f"the generic `{generic.name.text}` has no bound",
            generic.span,
            help=f"write `{generic.name.text}: Num`, `Float`, `Int`, `Any` or `Dim`",
        )
    if generic.bound.text not in bounds:
        raise refusal(
            "E0201",
            f"unknown bound `{generic.bound.text}`",
            generic.bound.span,
            notes=(f"known: {', '.join(f'`{b}`' for b in bounds)}",),
            help=_as_constant(generic) or did_you_mean(generic.bound.text, bounds),
        )


def _as_constant(generic: ast.GenericParameter) -> str | None:
    assert generic.bound is not None, "asked of a bound"
    name, bound = generic.name.text, generic.bound.text
    if bound not in CONST_TYPES:
        return None
    return f"a constant is `const {name}: {bound}`, an extent known at launch `{name}: Dim`"


def const_element(generic: ast.GenericParameter) -> Element:
    """The type of a const generic. Raises CompileError E0203."""
    match generic.const_type:
        case ast.PathType(name=ast.Name(text=text), arguments=()) if text in CONST_TYPES:
            return CONST_TYPES[text]
    assert generic.const_type is not None, "asked only of a const generic"
    raise refusal(
        "E0203",
        "a const generic is of `usize`, `i32`, `bool` or `f32`",
        generic.const_type.span,
    )


def bound_value(
    generic: ast.GenericParameter, value: Element | Constant, span: Span
) -> Element | Constant:
    """The value as this generic takes it. Raises CompileError E0202, E0203."""
    name = generic.name.text
    if generic.const_type is not None:
        if isinstance(value, Element):
            raise refusal(
                "E0203", f"the generic `{name}` is a constant", span, f"`{value}` is a type"
            )
        return fitted(value, const_element(generic), span)
    bound = generic.bound
    assert bound is not None and bound.text in BOUNDS, "generics were checked"
    if isinstance(value, Constant):
        raise refusal(
            "E0203", f"the generic `{name}` is an element type", span, f"`{value}` is a value"
        )
    if not meets_bound(value, bound.text):
        raise refusal(
            "E0203",
            f"`{value}` is not `{bound.text}`",
            span,
            "does not meet the bound",
            Label(generic.span, "which is here"),
        )
    return value
