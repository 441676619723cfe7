"""Which instances of a kernel are built, and what their generics are.

From `#[instance(…)]`, from the command line (`-D NAME=VALUE`, `--instance 'name<T=f16,B=64>'`), the
one implicit instance of a kernel without type or const generics, and from launches in pipelines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.attributes import Attributes, HintValue, hint_of
from tilec.frontend.bindings import Binding, Constant, Environment
from tilec.frontend.constants import binding_of, evaluate
from tilec.frontend.generics import bound_value, const_element, is_dim
from tilec.frontend.modules import Module
from tilec.frontend.options import ParsedOptions, Request, parse_value
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.source import Span
from tilec.types import ELEMENTS, Dim, Element


@dataclass(frozen=True)
class Instance:
    """One set of generics of a kernel. `values` has the type and const arguments in order, `hints`
    those of the kernel and its own, each with its place."""

    symbol: str
    generics: Mapping[str, Binding]
    values: tuple[tuple[str, Element | Constant], ...]
    span: Span  # of what asks for it
    hints: Mapping[str, tuple[HintValue, Span]]


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
    sources: list[tuple[Span, Values, ast.Attribute | None]] = [
        (a.span, _from_attribute(a, kernel, module), a) for a in attributes.instances
    ]
    requests = [r for r in options.requests if r.kernel == kernel.name.text]
    sources += [(r.span, _from_request(r, kernel), None) for r in requests]
    from_attributes = len(attributes.instances)
    if not sources:
        sources = [(kernel.name.span, iter(()), None)]
    common = _hints_of_all(attributes)
    for position, (span, values, attribute) in enumerate(sources):
        try:
            own = {} if attribute is None else _own_hints(attribute, module)
            instance = _instance(kernel, span, dict(values), defines, own, common)
        except CompileError as error:
            found += error.diagnostics
            continue
        known = instances.setdefault(instance.symbol, instance)
        # `-D` may make two the same, and the command line may ask for what is there.
        if known is not instance and position < from_attributes and not defines:
            labels = (Label(span, "asked for again"), Label(known.span, "asked for first"))
            found.append(Diagnostic("E0204", "two instances are the same", labels))
    return list(instances.values()), found


def names_instances(kernel: ast.Function, attributes: Attributes, options: ParsedOptions) -> bool:
    """Whether the program or the command line says which there are, so that launches need not."""
    if attributes.instances or any(r.kernel == kernel.name.text for r in options.requests):
        return True
    return all(is_dim(g) or g.name.text in options.defines for g in kernel.generics)


def asked_instance(
    kernel: ast.Function,
    attributes: Attributes,
    options: ParsedOptions,
    values: Mapping[str, Element | Constant],
    span: Span,
) -> Instance:
    """The instance that a launch asks for.

    Raises:   CompileError: E0202, E0203; E0701 for generics without a value
    """
    names = {g.name.text for g in kernel.generics if not is_dim(g)}
    defines = {n: v for n, v in options.defines.items() if n in names}
    placed = {name: (value, span) for name, value in values.items()}
    return _instance(kernel, span, placed, defines, {}, _hints_of_all(attributes))


def _hints_of_all(attributes: Attributes) -> Hints:
    return {name: (value, attributes.hint_spans[name]) for name, value in attributes.hints.items()}


Values = Iterator["tuple[str, tuple[Element | Constant, Span]]"]
Hints = Mapping[str, "tuple[HintValue, Span]"]


def _from_attribute(attribute: ast.Attribute, kernel: ast.Function, module: Module) -> Values:
    names = {g.name.text: g for g in kernel.generics if not is_dim(g)}
    seen: set[str] = set()
    for argument in attribute.arguments:
        if argument.arguments is not None:
            continue  # its hints
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
        yield argument.name.text, (_bound(names[argument.name.text], value, place), place)


def _own_hints(attribute: ast.Attribute, module: Module) -> Hints:
    """The hints of one instance: `hint(…)` among its arguments."""
    found: dict[str, tuple[HintValue, Span]] = {}
    for argument in (a for nested in attribute.arguments for a in nested.arguments or ()):
        name = argument.name.text
        value = hint_of(argument, module)
        if name == "fast_math":
            raise refusal(
                "E0204",
                "`fast_math` is for all instances of a kernel",
                argument.span,
                "instances differ in speed only",
                help="write `#[hint(fast_math)]` before the kernel",
            )
        if name in found:
            raise refusal("E0204", f"`{name}` is given twice", argument.span)
        found[name] = (value, argument.span)
    return found


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
        yield name.text, (_bound(names[name.text], parse_value(text, span), span), span)


def _bound(
    generic: ast.GenericParameter, value: Element | Constant, span: Span
) -> Element | Constant:
    """The value of a generic of an instance. Raises CompileError E0202, E0203."""
    found = bound_value(generic, value, span)
    if isinstance(found, Constant) and not math.isfinite(found.value):
        message = "a const generic is a finite number"
        raise refusal("E0203", message, span, f"it is {found}", help="write it in the kernel")
    return found


def _instance(
    kernel: ast.Function,
    span: Span,
    values: dict[str, tuple[Element | Constant, Span]],
    defines: dict[str, tuple[str, Span]],
    own: Hints,
    common: Hints,
) -> Instance:
    names = {g.name.text: g for g in kernel.generics if not is_dim(g)}
    for name, (text, place) in defines.items():
        value = _bound(names[name], parse_value(text, place), place)
        values[name] = (value, place)
    missing = [name for name in names if name not in values]
    if missing:
        raise _unbound(kernel, span, missing)
    ordered = tuple((name, values[name][0]) for name in names)
    generics: dict[str, Binding] = dict(ordered)
    generics |= {g.name.text: Dim(g.name.text) for g in kernel.generics if is_dim(g)}
    symbol = symbol_of(kernel.name.text, tuple(value for _, value in ordered))
    if own:
        symbol += f"__{'_'.join(_hint_text(name, value) for name, (value, _) in own.items())}"
    return Instance(symbol, generics, ordered, span, {**common, **own})


def _hint_text(name: str, value: HintValue) -> str:
    """A hint as symbols have it: `cluster2`, `cluster2x1x1`, `persistent`, `no_persistent`."""
    if isinstance(value, bool):
        return name if value else f"no_{name}"
    numbers = value if isinstance(value, tuple) else (value,)
    return f"{name}{'x'.join(map(str, numbers))}"


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
