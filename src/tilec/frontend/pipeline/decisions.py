"""What a pipeline decides at compile time: how often a loop turns, which branch is taken."""

from __future__ import annotations

from tilec.diagnostics import CompileError
from tilec.frontend import ast
from tilec.frontend.bindings import Constant
from tilec.frontend.constants import as_integer, evaluate
from tilec.frontend.pipeline.tracer import Tracer
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.types import Element

_CONST = "make it a `const`, or a const generic of the pipeline"


def is_taken(tracer: Tracer, node: ast.If) -> bool:
    """Whether the condition of an `if` holds. Raises CompileError E02xx, E0803."""
    help = "decide in a kernel, or by a const generic"
    known = _known(tracer, node.condition, "the condition of an `if` in a pipeline", help)
    if not isinstance(known.value, bool):
        raise refusal("E0202", "a condition is a `bool`", node.condition.span, f"this is `{known}`")
    return known.value


def turns_of(tracer: Tracer, node: ast.Expression) -> tuple[range, Element | None]:
    """What a `for` counts, and the type of its counter if that is written somewhere.

    Raises:   CompileError E02xx, E0803
    """
    match node:
        case ast.Range():
            bounds = [
                _known(tracer, bound, "a bound of a loop in a pipeline", _CONST)
                for bound in (node.start, node.end)
            ]
            start, end = (
                as_integer(bound, place.span)
                for bound, place in zip(bounds, (node.start, node.end), strict=True)
            )
            return range(start, end + node.inclusive), bounds[0].element or bounds[1].element
        case ast.MethodCall(receiver=receiver, method=method, arguments=arguments):
            turns, element = turns_of(tracer, receiver)
            if method.text == "rev" and not arguments:
                return turns[::-1], element
            if method.text == "step_by" and len(arguments) == 1:
                step = _known(tracer, arguments[0], "the step of a loop in a pipeline", _CONST)
                count = as_integer(step, arguments[0].span)
                if count < 1:
                    raise refusal("E0203", "a step is above 0", arguments[0].span, f"it is {count}")
                return turns[::count], element
            raise refusal(
                "E0203",
                f"a range has no method `{method.text}`",
                method.span,
                "not found",
                help=did_you_mean(method.text, ("rev", "step_by")),
            )
    raise refusal("E0102", "a `for` runs over a range", node.span, help="write `for i in a..b`")


def _known(tracer: Tracer, node: ast.Expression, what: str, help: str) -> Constant:
    """A constant. Raises CompileError E0803 if only a launch knows it."""
    try:
        return evaluate(node, tracer.environment)
    except CompileError as error:
        [found, *_] = error.diagnostics or (None,)
        if found is None or not found.message.startswith("expected a compile-time constant"):
            raise
        # What is wrong in other ways says so.
        tracer.checker.expression(node)
        raise refusal(
            "E0803", f"{what} is not known at compile time", node.span, found.labels[0].text,
            help=help,
        ) from None  # fmt: skip
