"""Rivals that come in several configurations: the fastest is found before anything is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

Configuration = Mapping[str, int]
Configurations = Callable[..., Iterable[Configuration]]
Function = TypeVar("Function", bound=Callable[..., object])

_ATTRIBUTE = "tilec_configurations"


def tuned(
    configurations: Configurations | Sequence[Configuration],
) -> Callable[[Function], Function]:
    """Marks a kernel as one that takes further, named arguments.

    `configurations` are those to try, or a function of the kernel's arguments that gives them.
    """

    def mark(function: Function) -> Function:
        setattr(function, _ATTRIBUTE, configurations)
        return function

    return mark


def configurations_of(
    function: Callable[..., object], arguments: Sequence[object]
) -> list[Configuration]:
    """What to try for these arguments; one without any choice where nothing is to be tuned."""
    found: Configurations | Sequence[Configuration] | None = getattr(function, _ATTRIBUTE, None)
    if found is None:
        return [{}]
    return list(found(*arguments) if callable(found) else found)
