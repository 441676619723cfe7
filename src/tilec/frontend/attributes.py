"""Attributes of functions: `#[kernel]`, `#[instance(…)]`, `#[hint(…)]`, `#[pipeline]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tilec.diagnostics import CompileError, Diagnostic, Label
from tilec.frontend import ast
from tilec.frontend.bindings import Constant, Environment
from tilec.frontend.constants import evaluate
from tilec.frontend.modules import Module
from tilec.frontend.refusal import refusal
from tilec.frontend.spelling import did_you_mean
from tilec.source import Span
from tilec.types import BOOL

HintValue = bool | int | tuple[int, ...]
_ATTRIBUTES = ("kernel", "instance", "hint", "pipeline")
MAX_GRID_RANK = 3
LARGEST_COUNT = 1 << 16  # of a hint
SPLITS = (1, 2, 4, 8)  # blocks of a cluster, on every device that has clusters


@dataclass(frozen=True)
class Attributes:
    """What the attributes of one function say; `grid` is None where none is written."""

    kernel: ast.Attribute | None
    pipeline: ast.Attribute | None
    instances: tuple[ast.Attribute, ...]
    grid: tuple[ast.Expression, ...] | None
    grid_span: ast.Name | None
    hints: dict[str, HintValue]
    hint_spans: dict[str, Span]


def read_attributes(function: ast.Function, module: Module) -> tuple[Attributes, list[Diagnostic]]:
    """The attributes of a function, and E0204 for each that is unknown, misplaced or malformed."""
    found: list[Diagnostic] = []
    by_name: dict[str, list[ast.Attribute]] = {name: [] for name in _ATTRIBUTES}
    for attribute in function.attributes:
        if attribute.name.text in by_name:
            by_name[attribute.name.text].append(attribute)
        else:
            found.append(_unknown("attribute", attribute.name, _ATTRIBUTES))
    found += _misplaced(by_name)
    kernel = next(iter(by_name["kernel"]), None)
    grid: tuple[ast.Expression, ...] | None = None
    grid_name: ast.Name | None = None
    for argument in kernel.arguments if kernel else ():
        try:
            grid, grid_name = _grid(argument), argument.name
        except CompileError as error:
            found += error.diagnostics
            grid = ()  # some grid was meant
    hints: dict[str, HintValue] = {}
    hint_spans: dict[str, Span] = {}
    for attribute in by_name["hint"]:
        for argument in attribute.arguments:
            try:
                hints[argument.name.text] = hint_of(argument, module)
                hint_spans[argument.name.text] = argument.span
            except CompileError as error:
                found += error.diagnostics
    pipeline = next(iter(by_name["pipeline"]), None)
    instances = tuple(by_name["instance"])
    return Attributes(kernel, pipeline, instances, grid, grid_name, hints, hint_spans), found


def _misplaced(by_name: dict[str, list[ast.Attribute]]) -> Iterator[Diagnostic]:
    kernel, pipeline = by_name["kernel"], by_name["pipeline"]
    for name in ("kernel", "pipeline"):
        for again in by_name[name][1:]:
            first = Label(by_name[name][0].span, "written first")
            yield Diagnostic("E0204", f"`#[{name}]` is written twice", (Label(again.span), first))
    if kernel and pipeline:
        label = Label(pipeline[0].span, "but this says pipeline")
        yield Diagnostic(
            "E0204",
            "a function is a kernel or a pipeline",
            (label, Label(kernel[0].span, "this says kernel")),
        )
    for attribute in by_name["instance"] + by_name["hint"]:
        if not kernel and not (pipeline and attribute.name.text == "instance"):
            yield Diagnostic(
                "E0204",
                f"`#[{attribute.name.text}]` is for kernels",
                (Label(attribute.span, "this function is no kernel"),),
                help="write `#[kernel]` before it",
            )
    for attribute in pipeline:
        if attribute.arguments:
            label = Label(attribute.arguments[0].span)
            yield Diagnostic("E0204", "`#[pipeline]` has no arguments", (label,))


def _grid(argument: ast.AttributeArgument) -> tuple[ast.Expression, ...]:
    if argument.name.text != "grid":
        raise CompileError(_unknown("argument of `#[kernel]`", argument.name, ("grid",)))
    match argument.value:
        case ast.Array(items=items) if 1 <= len(items) <= MAX_GRID_RANK:
            return items
    raise refusal(
        "E0204",
        f"a grid has 1 to {MAX_GRID_RANK} extents",
        argument.span,
        help="write `grid = [e0, e1, e2]`",
    )


def hint_of(argument: ast.AttributeArgument, module: Module) -> HintValue:
    """The value of a hint.

    Raises:   CompileError: E0204 for an unknown hint, or another value than it takes
    """
    name = argument.name
    if name.text not in HINTS:
        raise CompileError(_unknown("hint", name, tuple(HINTS)))
    if argument.arguments is not None:
        raise _bad_value(argument, "no list of its own")
    return HINTS[name.text](argument, module)


def _flag(argument: ast.AttributeArgument, module: Module) -> HintValue:
    if argument.value is None:
        return True
    value = evaluate(argument.value, Environment(module), None)
    if value.element != BOOL:
        raise _bad_value(argument, "nothing, `true` or `false`")
    return bool(value.value)


def _count(argument: ast.AttributeArgument, module: Module) -> HintValue:
    if argument.value is None:
        raise _bad_value(argument, "a positive integer")
    return _positive(argument.value, argument, module)


def _counts(argument: ast.AttributeArgument, module: Module) -> HintValue:
    match argument.value:
        case ast.Array(items=items) if 1 <= len(items) <= MAX_GRID_RANK:
            return tuple(_positive(item, argument, module) for item in items)
        case ast.Array():
            raise _bad_value(argument, f"a positive integer, or 1 to {MAX_GRID_RANK} of them")
    return _count(argument, module)


def _split(argument: ast.AttributeArgument, module: Module) -> HintValue:
    count = _count(argument, module)
    if count not in SPLITS:
        raise _bad_value(argument, "1, 2, 4 or 8")
    return count


def _positive(node: ast.Expression, argument: ast.AttributeArgument, module: Module) -> int:
    value: Constant = evaluate(node, Environment(module), None)
    if isinstance(value.value, (bool, float)) or not 0 < value.value <= LARGEST_COUNT:
        raise _bad_value(argument, "a positive integer")
    return value.value


HINTS: dict[str, Callable[[ast.AttributeArgument, Module], HintValue]] = {
    "fast_math": _flag,
    "stages": _count,
    "warps": _count,
    "cluster": _counts,
    "persistent": _flag,
    "ping_pong": _flag,
    "swizzle": _count,
    "split": _split,
}


def _bad_value(argument: ast.AttributeArgument, expected: str) -> CompileError:
    return refusal("E0204", f"`{argument.name.text}` takes {expected}", argument.span)


def _unknown(what: str, name: ast.Name, known: tuple[str, ...]) -> Diagnostic:
    listed = ", ".join(f"`{k}`" for k in known)
    return Diagnostic(
        "E0204",
        f"unknown {what} `{name.text}`",
        (Label(name.span),),
        notes=(f"known: {listed}",),
        help=_ELSEWHERE.get(name.text) or did_you_mean(name.text, known),
    )


# What other systems ask a compiler for.
_ELSEWHERE = {
    "num_warps": "write `warps = 4`",
    "num_stages": "write `stages = 3`",
    "num_ctas": "write `cluster = (2, 1)`",
    **dict.fromkeys(
        ("threads", "blocks", "block", "num_threads", "maxntid"),
        "the grid is counted in programs; the threads of one are `#[hint(warps = 4)]`",
    ),
    **dict.fromkeys(("inline", "always_inline", "no_mangle"), "leave it out: helpers are inlined"),
    **dict.fromkeys(("derive", "allow", "cfg", "test", "must_use"), "leave it out"),
    **dict.fromkeys(("jit", "global", "device"), "a kernel is marked by `#[kernel]`"),
}
