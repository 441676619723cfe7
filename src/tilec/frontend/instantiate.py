"""Which instances of a kernel are built, and what their generics are.

From `#[instance(…)]`, from the command line (`-D NAME=VALUE`, `--instance 'name<T=f16,B=64>'`), and
the one implicit instance of a kernel without type or const generics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.attributes import Attributes
from tilec.frontend.bindings import Binding, Constant, Environment
from tilec.frontend.constants import binding_of, evaluate, fitted
from tilec.frontend.modules import Module
from tilec.frontend.refusal import did_you_mean, refusal
from tilec.source import SourceFile, Span
from tilec.types import BOOL, ELEMENTS, F32, I32, STORAGE_ONLY, TF32, USIZE, Dim, Element

BOUNDS = ("Num", "Float", "Int", "Any")
CONST_TYPES = {"usize": USIZE, "i32": I32, "bool": BOOL, "f32": F32}


@dataclass(frozen=True)
class Instance:
    """One set of generics of a kernel. `values` has the type and const arguments in order."""

    symbol: str
    generics: Mapping[str, Binding]
    values: tuple[tuple[str, Element | Constant], ...]
    span: Span  # of what asks for it


@dataclass(frozen=True)
class Options:
    """What the command line says: `defines` as `NAME=VALUE`, `instances` as `name<N=V,…>`."""

    defines: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """An instance that the command line asks for; places point into the option's own text."""

    kernel: str
    span: Span
    values: tuple[tuple[ast.Name, str, Span], ...]


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
    """What is wrong with the generic parameters themselves: bounds, const types, duplicates."""
    seen: dict[str, ast.Name] = {}
    for generic in function.generics:
        first = seen.setdefault(generic.name.text, generic.name)
        if first is not generic.name:
            labels = (Label(generic.span, "defined again"), Label(first.span, "defined first"))
            yield Diagnostic("E0205", f"the name `{generic.name.text}` is defined twice", labels)
        try:
            _check_generic(generic)
        except CompileError as error:
            yield from error.diagnostics


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
            help=did_you_mean(generic.bound.text, bounds),
        )


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


def instances_of(
    kernel: ast.Function, attributes: Attributes, module: Module, options: ParsedOptions
) -> tuple[list[Instance], list[Diagnostic]]:
    """Every instance of a kernel, and what is wrong with those that cannot be.

    E0701 at the kernel's name when nothing asks for an instance and generics need values.
    """
    found: list[Diagnostic] = []
    instances: dict[str, Instance] = {}
    names = {g.name.text: g for g in kernel.generics if not is_dim(g)}
    defines = {n: v for n, v in options.defines.items() if n in names}
    sources = [(a.span, _from_attribute(a, kernel, module)) for a in attributes.instances]
    requests = [r for r in options.requests if r.kernel == kernel.name.text]
    sources += [(r.span, _from_request(r, kernel)) for r in requests]
    from_attributes = len(attributes.instances)
    if not sources:
        sources = [(kernel.name.span, iter(()))]
    for position, (span, values) in enumerate(sources):
        try:
            instance = _instance(kernel, span, dict(values), defines)
        except CompileError as error:
            found += error.diagnostics
            continue
        known = instances.setdefault(instance.symbol, instance)
        # `-D` may make two the same, and the command line may ask for what is there.
        if known is not instance and position < from_attributes and not defines:
            labels = (Label(span, "asked for again"), Label(known.span, "asked for first"))
            found.append(Diagnostic("E0204", "two instances are the same", labels))
    return list(instances.values()), found


Values = Iterator["tuple[str, tuple[Element | Constant, Span]]"]


def _from_attribute(attribute: ast.Attribute, kernel: ast.Function, module: Module) -> Values:
    names = {g.name.text: g for g in kernel.generics if not is_dim(g)}
    seen: set[str] = set()
    for argument in attribute.arguments:
        generic = _generic_named(argument.name, kernel)
        if argument.name.text in seen:
            raise refusal("E0204", f"`{argument.name.text}` is given twice", argument.span)
        seen.add(argument.name.text)
        if argument.value is None:
            raise refusal(
                "E0204",
                f"`{argument.name.text}` is given no value",
                argument.span,
                help=f"write `{argument.name.text} = …`",
            )
        value = _value(argument.value, generic, Environment(module))
        place = argument.value.span
        yield argument.name.text, (bound_value(names[argument.name.text], value, place), place)


def _generic_named(name: ast.Name, kernel: ast.Function) -> ast.GenericParameter:
    for generic in kernel.generics:
        if generic.name.text != name.text:
            continue
        if is_dim(generic):
            raise refusal(
                "E0204",
                f"`{name.text}` is a `Dim`",
                name.span,
                "known only at launch",
                Label(generic.span, "bound by the tensors that name it"),
            )
        return generic
    known = [g.name.text for g in kernel.generics if not is_dim(g)]
    raise refusal(
        "E0204",
        f"`{kernel.name.text}` has no generic `{name.text}`",
        name.span,
        notes=(f"it has {', '.join(f'`{k}`' for k in known)}",) if known else (),
        help=did_you_mean(name.text, known),
    )


def _value(
    node: ast.Expression, generic: ast.GenericParameter, environment: Environment
) -> Element | Constant:
    match node:
        case ast.Path(segments=(ast.Segment(name=name, arguments=None),)):
            found = binding_of(name, environment)
            if isinstance(found, Element):
                return found
            if found is None and generic.const_type is None:
                raise refusal(
                    "E0201",
                    f"unknown element type `{name.text}`",
                    name.span,
                    help=did_you_mean(name.text, ELEMENTS),
                )
    hint = const_element(generic) if generic.const_type is not None else None
    return evaluate(node, environment, hint)


def _from_request(request: Request, kernel: ast.Function) -> Values:
    names = {g.name.text: g for g in kernel.generics}
    for name, text, span in request.values:
        _generic_named(name, kernel)
        yield name.text, (bound_value(names[name.text], parse_value(text, span), span), span)


def _instance(
    kernel: ast.Function,
    span: Span,
    values: dict[str, tuple[Element | Constant, Span]],
    defines: dict[str, tuple[str, Span]],
) -> Instance:
    names = {g.name.text: g for g in kernel.generics if not is_dim(g)}
    for name, (text, place) in defines.items():
        value = bound_value(names[name], parse_value(text, place), place)
        values[name] = (value, place)
    missing = [name for name in names if name not in values]
    if missing:
        raise _unbound(kernel, span, missing)
    ordered = tuple((name, values[name][0]) for name in names)
    generics: dict[str, Binding] = dict(ordered)
    generics |= {g.name.text: Dim(g.name.text) for g in kernel.generics if is_dim(g)}
    symbol = symbol_of(kernel.name.text, tuple(value for _, value in ordered))
    return Instance(symbol, generics, ordered, span)


def _unbound(kernel: ast.Function, span: Span, missing: list[str]) -> CompileError:
    listed = ", ".join(f"`{name}`" for name in missing)
    generics = {g.name.text: g for g in kernel.generics}
    examples = ", ".join(
        f"{name} = {'f32' if generics[name].const_type is None else '128'}" for name in missing
    )
    labels = [Label(generics[name].span, "has no value") for name in missing]
    return refusal(
        "E0701",
        f"no instance of `{kernel.name.text}` gives a value to {listed}",
        span,
        "",
        *labels,
        help=f"write `#[instance({examples})]`",
    )


def symbol_of(name: str, values: tuple[Element | Constant, ...]) -> str:
    """The symbol of an instance: `matmul__bf16_128_256_64`; `-` is `m` and `.` is `p`."""
    if not values:
        return name
    texts = [str(value).replace("-", "m").replace(".", "p").replace("+", "") for value in values]
    return f"{name}__{'_'.join(texts)}"


# ---- the command line -----------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedOptions:
    """The command line's instances and values; `sources` has the options as texts to point at."""

    defines: dict[str, tuple[str, Span]]
    requests: tuple[Request, ...]
    sources: dict[str, SourceFile]


_WORD = r"[A-Za-z_][A-Za-z0-9_]*"
_PAIR = re.compile(rf"\s*({_WORD})\s*=\s*([^,<>=]+?)\s*(?:,|$)")
_REQUEST = re.compile(rf"\s*({_WORD})\s*(?:<(.*)>)?\s*$")


def parse_options(options: Options) -> tuple[ParsedOptions, list[Diagnostic]]:
    """The options read, and E0204 for each that is not of the form `NAME=VALUE` or `f<N=V,…>`."""
    found: list[Diagnostic] = []
    sources: dict[str, SourceFile] = {}
    defines: dict[str, tuple[str, Span]] = {}
    requests: list[Request] = []
    for text in options.defines:
        source = _option_source("-D", text, sources)
        match = _PAIR.fullmatch(text)
        if match:
            defines[match[1]] = (match[2], Span(source.name, *match.span(2)))
        else:
            found.append(_malformed(source, "expected `NAME=VALUE`"))
    for text in options.instances:
        source = _option_source("--instance", text, sources)
        request = _request(text, source)
        if request:
            requests.append(request)
        else:
            found.append(_malformed(source, "expected `kernel<NAME=VALUE, …>`"))
    return ParsedOptions(defines, tuple(requests), sources), found


def _option_source(option: str, text: str, sources: dict[str, SourceFile]) -> SourceFile:
    source = SourceFile(f"{option} {text}", text)
    sources[source.name] = source
    return source


def _request(text: str, source: SourceFile) -> Request | None:
    match = _REQUEST.fullmatch(text)
    if not match:
        return None
    start, end = match.span(2)
    values: list[tuple[ast.Name, str, Span]] = []
    while start >= 0 and text[start:end].strip():
        pair = _PAIR.match(text, start, end)
        if not pair:
            return None
        name = ast.Name(Span(source.name, *pair.span(1)), pair[1])
        values.append((name, pair[2], Span(source.name, *pair.span(2))))
        start = pair.end()
    return Request(match[1], Span(source.name, 0, len(text)), tuple(values))


def _malformed(source: SourceFile, text: str) -> Diagnostic:
    label = Label(Span(source.name, 0, len(source.text)), text)
    return Diagnostic("E0204", "malformed option", (label,))


def parse_value(text: str, span: Span) -> Element | Constant:
    """An element type, boolean or number on the command line. Raises CompileError E0204."""
    if text in ELEMENTS:
        return ELEMENTS[text]
    if text in ("true", "false"):
        return Constant(text == "true", BOOL)
    for kind in (int, float):
        try:
            return Constant(kind(text.replace("_", "")))
        except ValueError:
            continue
    raise refusal("E0204", "expected an element type or a number", span, f"got `{text}`")
