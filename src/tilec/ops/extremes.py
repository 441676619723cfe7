"""`min max` (the number where one side is NaN), `minimum maximum` (NaN there), `clamp`, `abs`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from tilec.integers.formula import at_least
from tilec.integers.number import Number, always, combined, compared
from tilec.ops.abstract import Reasoning
from tilec.ops.broadcasting import Builder, method
from tilec.ops.build import constant_like, make
from tilec.ops.call import Operation
from tilec.ops.formats import Array
from tilec.ops.meaning import Elementwise, Unsigned
from tilec.ops.rules import OpRules
from tilec.ops.uses import Domain
from tilec.types import Element


def extreme_op(word: str, element: Element) -> str:
    """The operation for `min`, `max`, `minimum` or `maximum` of an element type."""
    if element.is_float:
        return {
            "min": "arith.minnumf",
            "max": "arith.maxnumf",
            "minimum": "arith.minimumf",
            "maximum": "arith.maximumf",
        }[word]
    return f"arith.{word}{'s' if element.is_signed else 'u'}i"


def _builder(word: str) -> Builder:
    return lambda element, a, b: make(extreme_op(word, element), a.type, a, b)


def _clamp(element: Element, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    # On floats by the forms that keep NaN, as in Rust.
    lower, upper = ("maximum", "minimum") if element.is_float else ("max", "min")
    raised = make(extreme_op(lower, element), x.type, x, low)
    return make(extreme_op(upper, element), x.type, raised, high)


def _abs(element: Element, x: ir.Value) -> ir.Value:
    if element.is_float:
        return make("math.absf", x.type, x)
    if not element.is_signed:
        return x
    negative = make("arith.subi", x.type, constant_like(x, element, 0), x)
    return make("arith.maxsi", x.type, x, negative)


OPERATIONS: tuple[Operation, ...] = (
    method(
        "min",
        2,
        Domain.NUMBER,
        _builder("min"),
        "a.min(b)",
        "The smaller; the number where one side is NaN; -0.0 is below 0.0.",
        turbofish=False,
    ),
    method(
        "max",
        2,
        Domain.NUMBER,
        _builder("max"),
        "a.max(b)",
        "The larger; the number where one side is NaN; -0.0 is below 0.0.",
        turbofish=False,
    ),
    method(
        "minimum",
        2,
        Domain.FLOAT,
        _builder("minimum"),
        "a.minimum(b)",
        "The smaller of floats; NaN where one side is NaN.",
        turbofish=False,
    ),
    method(
        "maximum",
        2,
        Domain.FLOAT,
        _builder("maximum"),
        "a.maximum(b)",
        "The larger of floats; NaN where one side is NaN.",
        turbofish=False,
    ),
    method(
        "clamp",
        3,
        Domain.NUMBER,
        _clamp,
        "x.clamp(low, high)",
        "At least `low`, then at most `high`; NaN stays NaN.",
    ),
    method("abs", 1, Domain.NUMBER, _abs, "x.abs()", "Absolute value; `MIN.abs()` is `MIN`."),
)


def _ordered(
    pick: Callable[[Array, Array], Array], zeros: Callable[[Array, Array], Array]
) -> Callable[[Array, Array], Array]:
    """`pick`, but between equal numbers (0.0 and -0.0) by the sign bits."""

    def function(a: Array, b: Array) -> Array:
        negative = zeros(np.signbit(a), np.signbit(b))
        both_zero = (a == 0) & (b == 0)
        zero = np.zeros_like(a)
        return np.where(both_zero, np.where(negative, -zero, zero), pick(a, b)).astype(a.dtype)

    return function


def _number_or(pick: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """`pick`, but the other side where one is NaN."""
    return lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, pick(a, b)))


def _least(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number:
    return reasoning.choose(compared(at_least, b, a), a, b)


def _most(reasoning: Reasoning, op: ir.OpView, a: Number, b: Number) -> Number:
    return reasoning.choose(compared(at_least, a, b), a, b)


def _magnitude(reasoning: Reasoning, op: ir.OpView, a: Number) -> Number:
    turned = combined(lambda x: -x, a)
    found = reasoning.choose(compared(at_least, a, always(0)), a, turned)
    return reasoning.wrapped(found, op.results[0].type, op)


_LEAST = _ordered(np.minimum, np.logical_or)
_MOST = _ordered(np.maximum, np.logical_and)

RULES: tuple[OpRules, ...] = (
    Elementwise("arith.minsi", np.minimum, extends=min, launcher="min", numbers=_least),
    Elementwise("arith.maxsi", np.maximum, extends=max, launcher="max", numbers=_most),
    Unsigned("arith.minui", np.minimum, "min", _least),
    Unsigned("arith.maxui", np.maximum, "max", _most),
    Elementwise("arith.minimumf", _LEAST, launcher="min"),
    Elementwise("arith.maximumf", _MOST, launcher="max"),
    Elementwise("arith.minnumf", _number_or(_LEAST), launcher="min"),
    Elementwise("arith.maxnumf", _number_or(_MOST), launcher="max"),
    Elementwise("math.absf", np.abs, launcher="abs"),
    Elementwise("math.absi", np.abs, numbers=_magnitude),
)
