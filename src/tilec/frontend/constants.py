"""Constant expressions: const items, generic arguments, extents, `static_assert!`.

Integers wrap and division is total, as at run time; a literal that its type cannot hold is an
error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from tilec.diagnostics import CompileError, Label
from tilec.frontend import ast
from tilec.frontend.bindings import Binding, Constant, Environment, Number
from tilec.frontend.element_constants import constants_of
from tilec.frontend.modules import Module
from tilec.frontend.numbers import (
    ARITHMETIC,
    BITWISE,
    COMPARISONS,
    converted,
    div_ceil,
    ilog2,
    shift_left,
    shift_right,
    wrapped,
)
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.source import Span
from tilec.types import BOOL, ELEMENTS, F32, I32, STORAGE_ONLY, USIZE, Dim, Element

_NOT_CONSTANT = "expected a compile-time constant"

# What is computed of literals alone is exact, but not of any size.
_LARGEST = 1 << 128


def evaluate(
    node: ast.Expression, environment: Environment, expected: Element | None = None
) -> Constant:
    """The value of a constant expression, as a value of `expected` where that is given.

    Raises:   CompileError: E0201, E0202 (an integer where a float stands, …), E0203 (no constant)
    """
    # What names stand for may change from one use to the next: nothing is kept for longer.
    return _expected(node, replace(environment, known={}), expected)


def _expected(node: ast.Expression, environment: Environment, expected: Element | None) -> Constant:
    value = _value(node, environment, expected)
    return fitted(value, expected, node.span) if expected else value


def fitted(constant: Constant, element: Element, span: Span) -> Constant:
    """The constant as a value of an element type. Raises CompileError E0202, E0203."""
    if constant.element is None and not isinstance(constant.value, bool):
        return Constant(literal_value(constant.value, element, span), element)
    actual = constant.element or BOOL
    if actual != element:
        raise refusal(
            "E0202", "constant of another type", span, f"expected `{element}`, got `{actual}`"
        )
    return constant


def literal_value(value: Number, element: Element, span: Span) -> Number:
    """What a literal is in an element type. Raises CompileError E0202, E0203 (out of range)."""
    kind = "a float" if isinstance(value, float) else "an integer"
    if isinstance(value, float) != element.is_float or element == BOOL:
        raise refusal(
            "E0202",
            "literal of another type",
            span,
            f"expected `{element}`, got {kind} literal",
            help=f"write `{value}.0`" if element.is_float and element != BOOL else None,
        )
    held = wrapped(value, element)
    too_large = math.isinf(held) if element.is_float else held != value
    if too_large:
        limits = constants_of(element)
        raise refusal(
            "E0203",
            f"literal out of range for `{element}`",
            span,
            f"`{element}` holds {limits['MIN']} to {limits['MAX']}",
        )
    return held


def binding_of(name: ast.Name, environment: Environment) -> Binding | None:
    """What a name stands for at compile time: a generic, an element type or a const item."""
    if environment.is_local(name.text):
        return None
    if name.text in environment.generics:
        return environment.generics[name.text]
    found = environment.module.find(name.text)
    if found and isinstance(found[1], ast.Const):
        return const_item(found[0], found[1])
    return ELEMENTS.get(name.text)


def const_item(module: Module, item: ast.Const) -> Constant:
    """The value of a const item. Raises CompileError, E0102 if it is defined by itself.

    Each item is evaluated once, and after those that it is made of, so that chains of them may be
    of any length.
    """
    waiting = [(module, item)]
    seen: set[int] = set()
    while waiting:
        home, one = waiting[-1]
        if home.values.get(one.name.text) is not None:
            waiting.pop()
        elif id(one) not in seen:
            seen.add(id(one))
            waiting += [used for used in _used_constants(home, one) if id(used[1]) not in seen]
        else:
            waiting.pop()
            _evaluate_item(home, one)
    value = module.values[item.name.text]
    if isinstance(value, CompileError):
        # Anew, as it gathers a traceback wherever it is raised.
        raise CompileError(*value.diagnostics)
    return value


def _used_constants(module: Module, item: ast.Const) -> Iterator[tuple[Module, ast.Const]]:
    """The items whose names stand in the value of an item; which are needed is not known yet."""
    for name in ast.below(item.value, ast.Name):
        found = module.find(name.text)
        if found is not None and isinstance(found[1], ast.Const):
            yield found[0], found[1]


def _evaluate_item(module: Module, item: ast.Const) -> None:
    """Note the value of an item, or what is wrong with it."""
    name = item.name
    if name.text in module.values_in_progress:
        module.values[name.text] = refusal("E0102", "a constant is defined by itself", name.span)
        return
    module.values_in_progress.add(name.text)
    try:
        value = evaluate(item.value, Environment(module), _element_of(item))
    except CompileError as error:
        module.values[name.text] = error.with_traceback(None)
    else:
        module.values.setdefault(name.text, value)
    finally:
        module.values_in_progress.discard(name.text)


def _element_of(item: ast.Const) -> Element:
    match item.type:
        case ast.PathType(name=ast.Name(text=text), arguments=()) if text in ELEMENTS:
            return ELEMENTS[text]
    raise refusal("E0203", "a constant is a scalar", item.type.span, "expected a scalar")


def extent(node: ast.Expression, environment: Environment) -> int:
    """A constant extent or index. Raises CompileError E0203 if it is no integer."""
    return as_integer(evaluate(node, environment, None), node.span)


def as_integer(constant: Constant, span: Span) -> int:
    if isinstance(constant.value, (bool, float)):
        raise refusal("E0203", "expected an integer constant", span, f"this is `{constant}`")
    return constant.value


def not_constant(span: Span, text: str = "known only when the kernel runs") -> CompileError:
    return refusal("E0203", _NOT_CONSTANT, span, text)


def with_way(error: CompileError, help: str) -> CompileError:
    """The error, with what to write instead where something is no constant."""
    return CompileError(
        *(replace(d, help=help) if d.message == _NOT_CONSTANT else d for d in error.diagnostics)
    )


def _value(node: ast.Expression, environment: Environment, hint: Element | None) -> Constant:
    # Sides of comparisons are evaluated twice, and comparisons nest.
    key = id(node), hint
    if key in environment.known:
        return environment.known[key][1]
    value = _evaluated(node, environment, hint)
    environment.known[key] = node, value
    return value


def _evaluated(node: ast.Expression, environment: Environment, hint: Element | None) -> Constant:
    match node:
        case ast.IntegerLiteral():
            return _literal(node.value, node.suffix, hint, node.span)
        case ast.FloatLiteral():
            return _literal(float(node.text), node.suffix, hint, node.span)
        case ast.BoolLiteral():
            return Constant(node.value, BOOL)
        case ast.Path():
            return _path(node, environment)
        case ast.Unary():
            return _unary(node, environment, hint)
        case ast.Binary():
            return _binary(node, environment, hint)
        case ast.Cast():
            return _cast(node, environment)
        case ast.MethodCall():
            return _method(node, environment, hint)
        case ast.Block(statements=(), tail=tail, unsafe_span=None) if tail is not None:
            return _value(tail, environment, hint)
        case ast.If(otherwise=otherwise) if otherwise is not None:
            chosen = _expected(node.condition, environment, BOOL).value
            return _value(node.then if chosen else otherwise, environment, hint)
    raise not_constant(node.span, "not a constant expression")


def _literal(value: int | float, suffix: str | None, hint: Element | None, span: Span) -> Constant:
    if suffix is not None:
        element = ELEMENTS[suffix]
        value = float(value) if element.is_float else value
        return Constant(literal_value(value, element, span), element)
    if hint and hint != BOOL and hint.is_float == isinstance(value, float):
        return Constant(literal_value(value, hint, span), hint)
    return Constant(value)


def _path(node: ast.Path, environment: Environment) -> Constant:
    if len(node.segments) == 2 and node.segments[0].arguments is None:
        return element_constant(node, environment)
    name = node.segments[0].name
    if len(node.segments) != 1 or node.segments[0].arguments is not None:
        raise not_constant(node.span, "not a constant expression")
    if environment.is_local(name.text):
        raise not_constant(node.span)
    match binding_of(name, environment):
        case Constant() as constant:
            return constant
        case Dim():
            raise not_constant(node.span, "an extent that is known only at launch")
        case Element():
            raise refusal("E0203", "expected a value", node.span, "this is a type")
    if environment.module.find(name.text):
        raise not_constant(node.span, "this is a function")
    known = {*environment.generics, *environment.module.names()}
    # Capitals are for generics and constants.
    generic = (
        f"declare it behind the function's name: `<{name.text}: Dim>` is an extent that is known "
        f"at launch, `<const {name.text}: usize>` a constant"
    )
    raise unknown_name(name, known, generic if name.text.isupper() else None)


def unknown_name(name: ast.Name, known: set[str], otherwise: str | None = None) -> CompileError:
    """E0201 for a name that nothing here has; `otherwise` is the help where none is near it."""
    return refusal(
        "E0201",
        f"unknown name `{name.text}`",
        name.span,
        "not found in this scope",
        help=did_you_mean(name.text, known) or otherwise,
    )


def element_constant(node: ast.Path, environment: Environment) -> Constant:
    """`T::MAX`. Raises CompileError E0201, E0203 if the type lacks it."""
    owner, item = node.segments[0].name, node.segments[1].name
    element = binding_of(owner, environment)
    if element is None:
        raise unknown_name(owner, {*environment.generics, *ELEMENTS})
    if not isinstance(element, Element):
        raise refusal("E0203", "expected an element type", owner.span, "this is a value")
    known = constants_of(element)
    if item.text not in known:
        raise refusal(
            "E0203",
            f"`{element}` has no constant `{item.text}`",
            item.span,
            "not found in this type",
            help=did_you_mean(item.text, known),
        )
    return Constant(known[item.text], element)


def _unary(node: ast.Unary, environment: Environment, hint: Element | None) -> Constant:
    match node.operator, node.operand:
        case "-", ast.IntegerLiteral(value=written, suffix=suffix):
            # Folded with its sign: `-128i8` is in range though `128i8` is not.
            return _literal(-written, suffix, hint, node.span)
    inner = _value(node.operand, environment, hint)
    value = inner.value
    if node.operator == "!":
        if isinstance(value, bool):
            return Constant(not value, BOOL)
        if isinstance(value, int):
            return Constant(wrapped(~value, inner.element), inner.element)
    elif not isinstance(value, bool):
        return Constant(wrapped(-value, inner.element), inner.element)
    raise refusal("E0203", f"`{node.operator}` does not apply here", node.span, f"`{inner}`")


def _binary(node: ast.Binary, environment: Environment, hint: Element | None) -> Constant:
    if node.operator in ("&&", "||"):
        decided = _expected(node.left, environment, BOOL).value
        if decided == (node.operator == "||"):
            return Constant(decided, BOOL)
        return _expected(node.right, environment, BOOL)
    inner = None if node.operator in COMPARISONS else hint
    if node.operator in ("<<", ">>"):
        return _shift(node, environment, inner)
    left, right = (_value(side, environment, inner) for side in (node.left, node.right))
    if node.operator in COMPARISONS and left.element is None and right.element is None:
        # Nothing decides: the defaults, as at run time.
        default = F32 if isinstance(left.value, float) else I32
        left, right = (_value(side, environment, default) for side in (node.left, node.right))
    left_value, right_value, element = _unified(left, right, node)
    if node.operator in COMPARISONS:
        return Constant(COMPARISONS[node.operator](left_value, right_value), BOOL)
    if node.operator in ARITHMETIC and element != BOOL:
        result = ARITHMETIC[node.operator](left_value, right_value, element)
        return _held(result, element, node.span)
    if node.operator in BITWISE and isinstance(left_value, int) and isinstance(right_value, int):
        return Constant(BITWISE[node.operator](left_value, right_value), element)
    raise refusal("E0203", f"`{node.operator}` does not apply here", node.operator_span)


def _unified(
    left: Constant, right: Constant, node: ast.Binary | ast.MethodCall
) -> tuple[Number, Number, Element | None]:
    """Two values of one type: a literal takes the type of the other."""
    places = (
        (node.left, node.right)
        if isinstance(node, ast.Binary)
        else (node.receiver, node.arguments[0])
    )
    if left.element is None and right.element is not None:
        left = fitted(left, right.element, places[0].span)
    elif right.element is None and left.element is not None:
        right = fitted(right, left.element, places[1].span)
    same_kind = isinstance(left.value, float) == isinstance(right.value, float)
    if left.element != right.element or not same_kind:
        raise refusal(
            "E0202",
            "element types differ",
            places[1].span,
            f"this is `{right.element or right}`",
            Label(places[0].span, f"this is `{left.element or left}`"),
        )
    return left.value, right.value, left.element


def _shift(node: ast.Binary, environment: Environment, hint: Element | None) -> Constant:
    left = _value(node.left, environment, hint)
    right = _value(node.right, environment, None)
    count = as_integer(right, node.right.span)
    value = as_integer(left, node.left.span)
    shift = shift_left if node.operator == "<<" else shift_right
    return _held(shift(value, count, left.element), left.element, node.span)


def _held(result: Number, element: Element | None, span: Span) -> Constant:
    """What an operation gives. Raises CompileError E0203 for literals that grow without end."""
    if element is None and isinstance(result, int) and abs(result) > _LARGEST:
        raise refusal("E0203", "no type holds this number", span, "it is above 2^128")
    return Constant(wrapped(result, element), element)


def _cast(node: ast.Cast, environment: Environment) -> Constant:
    match node.target:
        case ast.PathType(name=name, arguments=()):
            target = binding_of(name, environment)
        case _:
            target = None
    if not isinstance(target, Element) or target in STORAGE_ONLY:
        raise refusal("E0203", "a cast is to a scalar type", node.target.span)
    inner = _value(node.value, environment, None)
    if target == BOOL and inner.element != BOOL:
        raise refusal("E0203", "nothing is cast to `bool`", node.target.span, help="compare it")
    return Constant(converted(inner.value, inner.element, target), target)


def _method(node: ast.MethodCall, environment: Environment, hint: Element | None) -> Constant:
    name = node.method.text
    receiver = _value(node.receiver, environment, hint if name in ("min", "max", "abs") else None)
    if name in ("ilog2", "is_power_of_two", "abs") and not node.arguments and not node.generics:
        return _unary_method(name, receiver, node)
    if name in ("div_ceil", "min", "max") and len(node.arguments) == 1 and not node.generics:
        argument = _value(node.arguments[0], environment, receiver.element or hint)
        return _binary_method(name, *_unified(receiver, argument, node), node)
    raise not_constant(node.method.span, "not a constant function")


def _unary_method(name: str, receiver: Constant, node: ast.MethodCall) -> Constant:
    if name == "abs" and not isinstance(receiver.value, bool):
        return Constant(wrapped(abs(receiver.value), receiver.element), receiver.element)
    value = as_integer(receiver, node.receiver.span)
    if name == "is_power_of_two":
        return Constant(value > 0 and value & (value - 1) == 0, BOOL)
    return Constant(ilog2(value), receiver.element or USIZE)


def _binary_method(
    name: str, left: Number, right: Number, element: Element | None, node: ast.MethodCall
) -> Constant:
    if name == "div_ceil":
        if not isinstance(left, int) or not isinstance(right, int):
            raise refusal("E0203", "`div_ceil` is of integers", node.method.span)
        return Constant(wrapped(div_ceil(left, right), element), element)
    # The number, when one side is NaN.
    if math.isnan(left) or math.isnan(right):
        return Constant(right if math.isnan(left) else left, element)
    return Constant(max(left, right) if name == "max" else min(left, right), element)
