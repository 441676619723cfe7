"""What names stand for before anything runs: element types, constants and `Dim`s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilec.frontend.modules import Module
from tilec.types import Dim, Element

Number = int | float | bool


@dataclass(frozen=True)
class Constant:
    """A compile-time value; `element` is None for a literal without suffix."""

    value: Number
    element: Element | None = None

    def __str__(self) -> str:
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


Binding = Element | Constant | Dim


@dataclass(frozen=True)
class Environment:
    """Where constants and types are looked up: the generics of a function, then its file.

    `is_local` tells whether a name is a variable here, which hides a generic or an item.
    """

    module: Module
    generics: Mapping[str, Binding] = field(default_factory=dict)
    is_local: Callable[[str], bool] = lambda _: False
    # While a constant is evaluated: what its parts are as values of an element type, by identity;
    # the node is kept so that no other gets its identity.
    known: dict[tuple[int, Element | None], tuple[object, Constant]] = field(
        default_factory=dict, compare=False
    )
