"""Launches of kernels: which instances fit the arguments, and what is recorded of the launch."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast
from tilec.frontend.bindings import Constant
from tilec.frontend.generics import bound_value, is_dim
from tilec.frontend.modules import Module
from tilec.frontend.pipeline.kernels import Candidate, LaunchedKernel
from tilec.frontend.pipeline.matching import (
    Fit,
    check_exclusive,
    check_lending,
    fit,
    own_of,
    tensor_of,
)
from tilec.frontend.pipeline.solve import read_off
from tilec.frontend.pipeline.trace import Given, Launch, Passed, Scalar
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import refusal
from tilec.frontend.solve_generics import from_turbofish
from tilec.types import Element, TileType

# So many that unrolled loops are plans, and no programs.
MAX_LAUNCHES = 1024


def launch(
    tracer: Tracer,
    node: ast.Call,
    module: Module,
    function: ast.Function,
    arguments: tuple[Given, ...],
) -> None:
    """Record a launch. Raises CompileError: E02xx, E03xx, E0402, E0503, E0701, E0802, E0803."""
    kernel = tracer.kernels.of(module, function)
    chosen = _chosen(tracer, node, kernel, arguments)
    parameters = chosen[0].parameters
    for parameter, argument in zip(parameters, arguments, strict=True):
        check_lending(parameter, argument, function.name.text)
    check_exclusive(parameters, arguments)
    tracer.kernels.launch(kernel, chosen, node.span)
    if len(tracer.trace.launches) >= MAX_LAUNCHES:
        raise refusal(
            "E0803", f"a pipeline has at most {MAX_LAUNCHES} launches", node.span, "one too many"
        )
    passed = tuple(
        Passed(
            parameter.name,
            argument.span,
            own_of(parameter),
            argument.view,
            None if argument.scalar is None else Scalar(tracer.frame, argument.scalar),
            _element(tracer, parameter.type, argument),
        )
        for parameter, argument in zip(parameters, arguments, strict=True)
    )
    symbols = tuple(one.instance.symbol for one in chosen)
    made = Launch(function.name.text, symbols, passed, node.span, tracer.calls)
    tracer.trace.launches.append(made)


def _element(tracer: Tracer, type_: object, argument: Given) -> Element:
    """The element type of a parameter; a literal that is given gets it."""
    if argument.view is not None:
        return argument.view.tensor.element
    assert argument.scalar is not None and isinstance(argument.scalar.type, TileType)
    assert isinstance(type_, TileType) and isinstance(type_.element, Element), "of an instance"
    tracer.checker.inference.unify(argument.scalar.type.element, type_.element)
    return type_.element


def _chosen(
    tracer: Tracer, node: ast.Call, kernel: LaunchedKernel, arguments: tuple[Given, ...]
) -> tuple[Candidate, ...]:
    """The instances that fit: of those that the program names, else the one that is asked for.

    Raises:   CompileError E02xx, E03xx, E0701
    """
    named = _named(tracer, node, kernel)
    candidates = kernel.candidates if named is None else named
    fits = [(one, fit(one.parameters, arguments, tracer.checker.inference)) for one in candidates]
    fitting = tuple(one for one, found in fits if found.fault is None)
    if not fitting:
        asked = named[0] if named else _asked(tracer, node, kernel, arguments)
        if asked is None or asked in kernel.candidates:
            raise _none_fits(tracer, node, kernel, arguments, [found for _, found in fits])
        fault = fit(asked.parameters, arguments, tracer.checker.inference).fault
        if fault is not None:
            raise fault
        fitting = (asked,)
    # Literals have one type, that of the first instance.
    types = [parameter.type for parameter in fitting[0].parameters]
    scalars = [n for n, one in enumerate(fitting[0].parameters) if tensor_of(one) is None]
    return tuple(one for one in fitting if all(one.parameters[n].type == types[n] for n in scalars))


def _named(tracer: Tracer, node: ast.Call, kernel: LaunchedKernel) -> tuple[Candidate, ...] | None:
    """The instances of the turbofish: those that the program names, else the one that is asked for.
    None if there is no turbofish.

    Raises:   CompileError E02xx, E03xx
    """
    wanted = from_turbofish(tracer.checker, node, kernel.function)
    if wanted is None:
        return None
    values = tuple(wanted.values())
    named = tuple(
        one
        for one in kernel.candidates
        if tuple(value for _, value in one.instance.values) == values
    )
    return named or (tracer.kernels.ask(kernel, wanted, node.span),)


def _asked(
    tracer: Tracer, node: ast.Call, kernel: LaunchedKernel, arguments: tuple[Given, ...]
) -> Candidate | None:
    """The instance of what the arguments say; None if they do not say everything.

    Raises:   CompileError E02xx, E03xx; E0701 if the program names no instance that could say more
    """
    generics = {g.name.text: g for g in kernel.function.generics if not is_dim(g)}
    found: dict[str, Element | Constant] = {}
    pairs = zip(kernel.function.parameters, arguments, strict=True)
    # Literals have the types that tensors have.
    for parameter, argument in sorted(pairs, key=lambda pair: pair[1].view is None):
        for name, value in read_off(tracer, parameter.type, argument):
            if name in generics and name not in found:
                found[name] = bound_value(generics[name], value, argument.span)
    known = found.keys() | tracer.kernels.options.defines.keys()
    missing = [name for name in generics if name not in known]
    if not missing:
        return tracer.kernels.ask(kernel, found, node.span)
    if kernel.candidates:
        return None
    kernel_name = kernel.function.name.text
    listed = ", ".join(f"`{one}`" for one in missing)
    examples = {n: "f32" if g.const_type is None else "128" for n, g in generics.items()}
    raise refusal(
        "E0701",
        f"no argument of `{kernel_name}` gives a value to {listed}",
        node.span,
        "",
        *(Label(generics[one].span, "has no value") for one in missing),
        help=_ways_to_have(kernel_name, {**examples, **found}),
    )


def _ways_to_have(name: str, values: Mapping[str, object]) -> str:
    listed = ", ".join(f"{one} = {value}" for one, value in values.items())
    written = ", ".join(map(str, values.values()))
    return f"write `#[instance({listed})]` before the kernel, or launch `{name}::<{written}>(…)`"


def _none_fits(
    tracer: Tracer,
    node: ast.Call,
    kernel: LaunchedKernel,
    arguments: tuple[Given, ...],
    fits: list[Fit],
) -> CompileError:
    """The fault of one instance where all have the same, else E0701."""
    faults = [found.fault for found in fits if found.fault is not None]
    kinds = {
        (fault.diagnostics[0].code, found.position)
        for fault, found in zip(faults, fits, strict=True)
    }
    differs_by_type = any(code == "E0202" for code, _ in kinds) and len(kernel.candidates) > 1
    has_types = any(isinstance(value, Element) for _, value in kernel.candidates[0].instance.values)
    if len(kinds) == 1 and not (differs_by_type or (has_types and kinds == {("E0202", 0)})):
        return faults[0]
    name = kernel.function.name
    given = ", ".join(f"`{argument}`" for argument in arguments)
    return refusal(
        "E0701",
        f"no instance of `{name.text}` fits the arguments",
        node.span,
        f"given {given}",
        Label(name.span, "defined here"),
        notes=(_what_there_is(kernel),),
        help=_instance_for(tracer, kernel, arguments),
    )


def _instance_for(
    tracer: Tracer, kernel: LaunchedKernel, arguments: tuple[Given, ...]
) -> str | None:
    """What to write to have one, if all arguments agree on the types."""
    wanted = {name: {value} for name, value in kernel.candidates[-1].instance.values}
    types = {name for name, values in wanted.items() if isinstance(next(iter(values)), Element)}
    said: dict[str, set[Element | Constant]] = {name: set() for name in types}
    for parameter, argument in zip(kernel.function.parameters, arguments, strict=True):
        for name, value in read_off(tracer, parameter.type, argument):
            if name in said:
                said[name].add(value)
    chosen = {**wanted, **{name: values for name, values in said.items() if values}}
    if any(len(values) != 1 for values in chosen.values()):
        return None
    values = {name: value for name, [value] in chosen.items()}
    return _ways_to_have(kernel.function.name.text, values)


def _what_there_is(kernel: LaunchedKernel) -> str:
    listed = ", ".join(f"`{one.instance.symbol}`" for one in kernel.candidates)
    return f"there is {listed}" if len(kernel.candidates) == 1 else f"there are {listed}"
