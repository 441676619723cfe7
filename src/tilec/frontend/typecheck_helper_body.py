"""Type checking of one helper, for the generics and types of one call."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast, typed
from tilec.frontend.agreement import expect
from tilec.frontend.bindings import Environment
from tilec.frontend.checker import Checker, KernelState
from tilec.frontend.patterns import bind_pattern
from tilec.frontend.refusal import AlreadyReportedError, refusal
from tilec.frontend.resolve_types import resolve_type
from tilec.types import UNIT, Dim, Own, PartType, TensorType, Type

# Each is checked inside of the one that calls it.
MOST_NESTED = 16


def check_helper(
    kernel: KernelState,
    environment: Environment,
    function: ast.Function,
    parameters: tuple[tuple[Type, Own | None], ...],
    dims: tuple[Dim, ...],
    symbol: str,
) -> typed.FunctionInstance:
    """A helper for these generics and types. What is wrong in its body is reported, in time.

    Raises:   CompileError if not even its type is known
    """
    checker = Checker(kernel, function, environment, is_kernel=False)
    kernel.reached.append(function)
    instance = _declared(checker, parameters, dims, symbol)
    if kernel.waiting is not None and not isinstance(instance.result, TensorType):
        kernel.waiting.append(partial(_check_body, checker, instance))
        return instance
    # What a view is, its body says.
    if kernel.nested == MOST_NESTED:
        raise refusal(
            "E0102",
            f"helpers that return views call each other more than {MOST_NESTED} deep",
            function.name.span,
            "one call too many",
        )
    kernel.nested += 1
    try:
        _check_body(checker, instance)
    finally:
        kernel.nested -= 1
    return instance


def check_waiting(kernel: KernelState) -> None:
    """Check the bodies that wait, and those that they call."""
    while kernel.waiting:
        kernel.waiting.popleft()()


def _declared(
    checker: Checker,
    parameters: tuple[tuple[Type, Own | None], ...],
    dims: tuple[Dim, ...],
    symbol: str,
) -> typed.FunctionInstance:
    function = checker.function
    try:
        result = resolve_type(function.result, checker.environment) if function.result else UNIT
        if isinstance(result, PartType) and result.borrowed is not None:
            assert function.result is not None, "there is a type"
            raise refusal("E0102", "a helper returns no reference to a part", function.result.span)
        patterns = tuple(
            typed.HelperParameter(bind_pattern(checker, parameter.pattern, type_), type_, lent)
            for parameter, (type_, lent) in zip(function.parameters, parameters, strict=True)
        )
        _check_names(patterns)
    except CompileError as error:
        checker.report(error)
        raise AlreadyReportedError from None
    return typed.FunctionInstance(
        symbol, function.name.span, dims, patterns, checker.inference, result
    )


def _check_body(checker: Checker, instance: typed.FunctionInstance) -> None:
    try:
        body = checker.expression(checker.function.body)
        assert isinstance(body, typed.Block), "a body is a block"
        _expect_result(checker, body, instance.result)
        instance.body = body
        if isinstance(body.type, TensorType):
            instance.result = body.type
    except CompileError as error:
        checker.report(error)
    checker.finish()


def _check_names(parameters: tuple[typed.HelperParameter, ...]) -> None:
    seen: dict[str, typed.Local] = {}
    for parameter in parameters:
        for bind in typed.below(parameter.pattern, typed.Bind):
            first = seen.setdefault(bind.local.name, bind.local)
            if first is not bind.local:
                raise refusal(
                    "E0205",
                    f"the name `{first.name}` is defined twice",
                    bind.local.span,
                    "defined again",
                    Label(first.span, "defined first"),
                )


def _expect_result(checker: Checker, body: typed.Block, result: Type) -> None:
    function = checker.function
    place = body.tail.span if body.tail else function.name.span
    if function.result is None and body.tail is None:
        return
    if checker.has_refused_return and body.type == UNIT:
        return  # the value is where the `return` is
    label = (Label(function.result.span, "declared here"),) if function.result else ()
    actual = body.type
    if isinstance(actual, TensorType) and isinstance(result, TensorType):
        if actual.own is Own.MUT and result.own is Own.SHARED:
            raise refusal("E0203", "a `&mut` tensor is returned as such", place, "", *label)
        actual = TensorType(actual.element, actual.extents, actual.own)
    try:
        expect(actual, result, checker.inference, place, *label)
    except CompileError as error:
        help = _way_to_result(checker, body, actual)
        raise CompileError(*(replace(d, help=help or d.help) for d in error.diagnostics)) from None


def _way_to_result(checker: Checker, body: typed.Block, actual: Type) -> str | None:
    """What to write where a body gives a value and the signature none, or the other way round."""
    if checker.function.result is None:
        shown = checker.inference.final_type(actual)
        return f"write the type that it gives behind its parameters: `-> {shown}`"
    if body.tail is None and actual == UNIT:
        return "the value is the last expression, without a `;` behind it"
    return None
