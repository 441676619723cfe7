"""What kernels and pipelines tell callers alike: generics, parameters, what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilec.artifact.expression import Expression

Own = Literal["shared", "mut", "part", "atomic"]
NumberKind = Literal["truth", "whole", "real"]


@dataclass(frozen=True)
class Generic:
    """What an instance binds a type or const generic to; a type is an element's name."""

    name: str
    kind: Literal["type", "const"]
    value: str | bool | int | float


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as callers see it.

    Units:    `extents` are elements, each a number or the name of a `Dim`; `block` is what one
              program owns of a `part`; a scalar has neither, and no `own`
    """

    name: str
    kind: Literal["tensor", "scalar"]
    element: str
    extents: tuple[str | int, ...] = ()
    own: Own | None = None
    block: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def is_tensor(self) -> bool:
        return self.kind == "tensor"

    @property
    def is_written(self) -> bool:
        return self.own in ("mut", "part", "atomic")


def number_kind(element: str) -> NumberKind:
    """What kind of number a scalar of an element type is: one type of C holds all of a kind."""
    if element == "bool":
        return "truth"
    return "real" if element in ("f16", "bf16", "f32", "f64") else "whole"


@dataclass(frozen=True)
class Requirement:
    """One `requires!`: its text in the source, what launchers evaluate, and its one-based line."""

    text: str
    expression: Expression
    line: int


@dataclass(frozen=True)
class Coverage:
    """What a kernel does with a tensor that it may write.

    `writes_all`: every element is written, on every path, whatever the arguments. `reads_first`:
    an element may be read that this launch did not write before.
    """

    tensor: str
    writes_all: bool
    reads_first: bool
