"""Calls of helpers: generics inferred, the helper checked for these types, parts moved and lent."""

from __future__ import annotations

from dataclasses import replace

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.attributes import read_attributes
from tilec.frontend.bindings import Environment
from tilec.frontend.checker import Checker
from tilec.frontend.generics import check_generics
from tilec.frontend.instantiate import symbol_of
from tilec.frontend.modules import Module
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.frontend.solve_generics import solve_generics
from tilec.frontend.typecheck_operations import expect_no_memory
from tilec.types import (
    Dim,
    Extent,
    Own,
    PartType,
    TensorType,
    Type,
)

MOST_INSTANCES = 4096


def call_helper(
    checker: Checker, node: ast.Call, module: Module, function: ast.Function
) -> typed.Expression:
    """A checked call of a helper. Raises CompileError: E02xx, E03xx, E0701."""
    _expect_helper(checker, node, module, function)
    if len(node.arguments) != len(function.parameters):
        raise refusal(
            "E0203",
            f"`{function.name.text}` takes {len(function.parameters)} arguments",
            node.span,
            f"got {len(node.arguments)}",
            Label(function.name.span, "defined here"),
        )
    if any(check_generics(function)):
        raise AlreadyReportedError
    arguments = tuple(_argument(checker, argument) for argument in node.arguments)
    expect_no_memory(checker, arguments)
    solution = solve_generics(checker, node, module, function, arguments)
    environment = Environment(module, solution.bindings)
    parameters: list[tuple[Type, Own | None]] = []
    passed: list[typed.Expression] = []
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        try:
            declared = resolve_type(parameter.type, environment)
        except CompileError as error:
            checker.report(error)
            raise AlreadyReportedError from None
        expected = in_terms_of(declared, solution.extents)
        passed.append(_passed(checker, argument, expected, parameter))
        parameters.append((_as_viewed(declared, argument), _lent(declared)))
    _expect_few_instances(checker, node)
    instance = _instance(checker, environment, function, tuple(parameters))
    extents = tuple(solution.extents[dim.name] for dim in instance.dims)
    result = in_terms_of(instance.result, solution.extents)
    return typed.CallHelper(node.span, result, instance, tuple(passed), extents)


def _expect_helper(
    checker: Checker, node: ast.Call, module: Module, function: ast.Function
) -> None:
    attributes, _ = read_attributes(function, module)
    for kind, attribute in (("kernel", attributes.kernel), ("pipeline", attributes.pipeline)):
        if attribute is not None:
            raise refusal(
                "E0203",
                f"a {kind} is launched, not called",
                node.span,
                "called here",
                Label(function.name.span, "defined here"),
                help="launch it in a `#[pipeline]`"
                if kind == "kernel"
                else "a kernel launches nothing: call it in another `#[pipeline]`",
            )
    if id(function) in checker.kernel.program.recursive:
        raise AlreadyReportedError  # by `check_recursion`


# ---- arguments ---------------------------------------------------------------------------------


def expect_mutable(value: typed.Expression, node: ast.Borrow) -> None:
    """E0203 if a variable is lent mutably that is not declared `mut`."""
    if isinstance(value, typed.Read) and not value.local.mutable:
        raise refusal(
            "E0203",
            f"`{value.local.name}` is lent mutably but not declared `mut`",
            node.span,
            "lent here",
            Label(value.local.span, "declared here"),
            help=f"write `let mut {value.local.name} = {value.local.name};` before",
        )


def _argument(checker: Checker, node: ast.Expression) -> typed.Expression:
    """An argument as it is written; a borrow says so in the type of a part."""
    if isinstance(node, ast.Closure):
        return checker.expression(node)
    if not isinstance(node, ast.Borrow):
        return checker.expression(node)
    value = checker.expression(node.value)
    if not isinstance(value.type, (PartType, TensorType)):
        raise refusal("E0102", "tiles and scalars are passed by value", node.span, help="drop `&`")
    if isinstance(value.type, TensorType) and value.type.own is Own.ATOMIC and not node.mutable:
        return value
    if isinstance(value.type, TensorType) and value.type.own is not Own.MUT and node.mutable:
        raise refusal(
            "E0203", "a shared tensor cannot be lent mutably", node.span, f"`{value.type}`"
        )
    if node.mutable:
        expect_mutable(value, node)
    own = Own.MUT if node.mutable else Own.SHARED
    if isinstance(value.type, TensorType):
        return typed.Borrow(node.span, replace(value.type, own=own), node.mutable, value)
    if value.type.borrowed is Own.SHARED and node.mutable:
        raise refusal("E0203", "a shared part cannot be lent mutably", node.span, f"`{value.type}`")
    return typed.Borrow(node.span, replace(value.type, borrowed=own), node.mutable, value)


def _passed(
    checker: Checker, argument: typed.Expression, expected: Type, parameter: ast.Parameter
) -> typed.Expression:
    """The argument as the helper takes it: agreed in type, moved or lent."""
    actual = argument.type
    if isinstance(actual, PartType) and isinstance(expected, PartType):
        # `&mut` may be lent on, and lent as `&`.
        lent_on = actual.borrowed is Own.MUT and expected.borrowed is Own.SHARED
        actual = replace(actual, borrowed=Own.SHARED) if lent_on else actual
    expect(
        _without_view(actual),
        expected,
        checker.inference,
        argument.span,
        Label(parameter.span, "declared here"),
        what=f"argument `{_text(parameter.pattern)}`",
    )
    if isinstance(argument, typed.Borrow):
        return argument
    match expected:
        # A view that is made here is one more way to a tensor that has a name.
        case TensorType(own=own) if isinstance(actual, TensorType) and actual.own is Own.MUT:
            return typed.Borrow(argument.span, argument.type, own is Own.MUT, argument)
        case PartType() if is_fresh(argument):
            return argument
        case PartType(borrowed=None):
            return typed.Move(argument.span, argument.type, argument)
        case PartType(borrowed=own):
            return typed.Borrow(argument.span, expected, own is Own.MUT, argument)
    return argument


def is_fresh(value: typed.Expression) -> bool:
    """Whether a view or part is made by an expression, so that nothing else has a name for it."""
    if isinstance(value, typed.Block):
        return value.tail is not None and is_fresh(value.tail)
    return isinstance(value, (typed.Operate, typed.CallHelper, typed.Move))


def _text(pattern: ast.Pattern) -> str:
    return pattern.name.text if isinstance(pattern, ast.BindingPattern) else "_"


def _without_view(type_: Type) -> Type:
    return replace(type_, contiguous=-1) if isinstance(type_, TensorType) else type_


def _as_viewed(declared: Type, argument: typed.Expression) -> Type:
    """The parameter's type, with the owner and the axis of stride 1 that the argument has."""
    actual = argument.value.type if isinstance(argument, typed.Borrow) else argument.type
    if isinstance(declared, TensorType) and isinstance(actual, TensorType):
        return replace(declared, contiguous=actual.contiguous, own=actual.own)
    return declared


def _lent(declared: Type) -> Own | None:
    match declared:
        case PartType(borrowed=own) | TensorType(own=own):
            return own
    return None


def in_terms_of(type_: Type, extents: dict[str, Extent]) -> Type:
    """The type with a helper's `Dim`s replaced by what they are to the caller."""
    match type_:
        case TensorType():
            mapped = tuple(
                extents.get(e.name, e) if isinstance(e, Dim) else e for e in type_.extents
            )
            return replace(type_, extents=mapped)
        case PartType():
            tensor = in_terms_of(type_.tensor, extents)
            assert isinstance(tensor, TensorType), "a tensor stays one"
            return replace(type_, tensor=tensor)
    return type_


# ---- the helper itself -------------------------------------------------------------------------


def _expect_few_instances(checker: Checker, node: ast.Call) -> None:
    """E0702 where generics that change from call to call make instances without end."""
    kernel = checker.kernel
    if len(kernel.symbols) < MOST_INSTANCES:
        return
    if kernel.has_too_many_instances:
        raise AlreadyReportedError
    kernel.has_too_many_instances = True
    raise refusal(
        "E0702",
        f"a kernel has at most {MOST_INSTANCES} instances of helpers",
        node.span,
        "this call may need one more",
        help="pass what changes from call to call as an argument, not as a generic",
    )


def _instance(
    checker: Checker,
    environment: Environment,
    function: ast.Function,
    parameters: tuple[tuple[Type, Own | None], ...],
) -> typed.FunctionInstance:
    """The helper for these generics and types, checked when first asked for."""
    kernel = checker.kernel
    ordered = tuple((g.name.text, environment.generics[g.name.text]) for g in function.generics)
    key = (id(function), ordered, parameters)
    if key in kernel.helpers:
        return kernel.helpers[key]
    values = tuple(v for _, v in ordered if not isinstance(v, Dim))
    symbol = f"{kernel.symbol}.{symbol_of(function.name.text, values)}"
    numbered = symbol if symbol not in kernel.symbols else f"{symbol}.{len(kernel.symbols)}"
    kernel.symbols.add(numbered)
    dims = tuple(v for _, v in ordered if isinstance(v, Dim))
    instance = kernel.check_helper(kernel, environment, function, parameters, dims, numbered)
    kernel.helpers[key] = instance
    return instance
