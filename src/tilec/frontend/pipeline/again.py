"""A pipeline that is called as it was before: what it launches is known, and not executed again.

Pipelines that call each other in a chain are else executed once for each that comes before them.

    p0 launches a kernel; p1 calls p0, p2 calls p1, …    each is executed once, not once a caller

Calls are the same if they have the same types and constants, are given whole tensors of the same
element types and no scalars, and extents that are numbers or `Dim`s, equal where they were equal:
all that is decided at compile time is decided by these. What has temporaries, `requires!` or
computed scalars of its own is executed each time, for these belong to one plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tilec.artifact.abi import COUNT_LIMIT
from tilec.frontend import ast, typed
from tilec.frontend.bindings import Binding
from tilec.frontend.pipeline.trace import Launch, Passed, Tensor, Trace, View
from tilec.integers.polynomial import Polynomial, Unknown
from tilec.source import Span
from tilec.types import Dim, Element

_Extent: TypeAlias = "tuple[str, int]"  # a number, or which one of the `Dim`s


@dataclass(frozen=True)
class Key:
    """What a call is told by."""

    function: int
    bindings: tuple[tuple[str, Binding], ...]
    given: tuple[tuple[Element, tuple[_Extent, ...]], ...]


@dataclass(frozen=True)
class Done:
    """What a call launches; `places` are the numbers of parameters, by the tensors of that call.

    `depth` is how many calls were around its launches, it included; `called` how many pipelines it
    calls, `turns` how often its loops turn. `is_cut`: it calls more than a pipeline may.
    """

    launches: tuple[Launch, ...]
    places: Mapping[Tensor, int]
    depth: int
    called: int
    turns: int
    is_cut: bool = False


@dataclass(frozen=True)
class Before:
    """How far an execution was when a call began."""

    launches: int
    temporaries: int
    requires: int
    diagnostics: int
    called: int
    turns: int


def before(trace: Trace) -> Before:
    """Where a trace is."""
    return Before(
        len(trace.launches), len(trace.temporaries), len(trace.requires), len(trace.diagnostics),
        trace.called, trace.turns,
    )  # fmt: skip


def key_of(
    function: ast.Function, bindings: Mapping[str, Binding], views: Sequence[View | None]
) -> Key | None:
    """What a call with these arguments is told by; None if it is executed each time."""
    numbers: dict[Unknown, int] = {}
    given = []
    for view in views:
        if view is None or view.axes != tuple(range(len(view.axes))):
            return None
        extents = [_extent(size.form, numbers) for size in view.extents]
        known = tuple(extent for extent in extents if extent is not None)
        if len(known) < len(extents):
            return None
        given.append((view.tensor.element, known))
    decided = [(name, value) for name, value in bindings.items() if not isinstance(value, Dim)]
    return Key(id(function), tuple(sorted(decided, key=lambda pair: pair[0])), tuple(given))


def _extent(form: Polynomial, numbers: dict[Unknown, int]) -> _Extent | None:
    if form.is_constant:
        return "number", form.constant
    match form.terms:
        case ((((Unknown(low=0, high=high) as unknown),), 1),) if high == COUNT_LIMIT:
            return "dim", numbers.setdefault(unknown, len(numbers))
    return None


def done(trace: Trace, start: Before, views: Sequence[View | None], depth: int) -> Done | None:
    """What was launched since `start` for these arguments; None if it cannot be said again."""
    if start.diagnostics < len(trace.diagnostics):
        return None
    places = {view.tensor: n for n, view in enumerate(views) if view is not None}
    launches = tuple(trace.launches[start.launches :])
    is_all = (
        start.temporaries == len(trace.temporaries)
        and start.requires == len(trace.requires)
        and len(places) == len(views)
        and all(_is_of(one, places) for launch in launches for one in launch.arguments)
    )
    called, turns = trace.called - start.called, trace.turns - start.turns
    return Done(launches, places, depth, called, turns) if is_all else None


def cut() -> Done:
    """What is known of a call that is one too many, or has such a call."""
    return Done((), {}, 0, 0, 0, is_cut=True)


def _is_of(argument: Passed, places: Mapping[Tensor, int]) -> bool:
    """Whether it is made of parameters and constants."""
    if argument.view is not None:
        return argument.view.tensor in places
    assert argument.scalar is not None, "a tensor or a scalar"
    value = argument.scalar.value
    return not any(
        isinstance(node, (typed.Read, typed.DimValue))
        for node in typed.below(value, typed.Expression)
    )


def launched_again(
    known: Done, views: Sequence[View | None], calls: tuple[Span, ...]
) -> list[Launch]:
    """The launches of a call for other tensors, at another place."""
    return [
        replace(
            launch,
            arguments=tuple(_for(one, known, views) for one in launch.arguments),
            calls=(*calls, *launch.calls[known.depth :]),
        )
        for launch in known.launches
    ]


def _for(argument: Passed, known: Done, views: Sequence[View | None]) -> Passed:
    if argument.view is None:
        return argument
    view = views[known.places[argument.view.tensor]]
    assert view is not None, "calls that are the same have tensors in the same places"
    return replace(argument, view=replace(argument.view, tensor=view.tensor))
