"""A use of one operation of the language, as the front end hands it to the operation.

An `Operation` is what users write (`exp`, `sum::<1>()`, `+`, `load`). It checks one use and gives
its type; once every type is known it emits the tile dialect. It never sees syntax, names or scopes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from mlir import ir

from tilec.source import Span
from tilec.types import Element, ElementLike, Type

# A tuple of the language is a Python tuple of values.
Value: TypeAlias = "ir.Value | tuple[Value, ...]"
GenericValue = Element | int | float | bool


class Form(Enum):
    """How an operation is written."""

    METHOD = "method"  # x.exp(); arguments[0] is the receiver
    FUNCTION = "function"  # iota::<i32, 4>(), dot(a, b, acc), select(c, a, b)
    TILE = "tile"  # Tile::<f32, 4>::zeros(); generics are the element and the extents
    OPERATOR = "operator"  # a + b, -a, !a, named "+", "-", "!" …


class Receiver(Enum):
    """What a method is called on; `None` for the other forms."""

    TILE = "tile"  # tiles and scalars
    TENSOR = "tensor"
    PART = "part"
    TUPLE = "tuple"  # tuples of tiles


class Inference(Protocol):
    """What is known so far of the element types of literals."""

    def resolve(self, element: ElementLike) -> ElementLike:
        """The element type, if it is known by now; else its variable."""

    def unify(self, left: ElementLike, right: ElementLike) -> bool:
        """Make two element types one; False if they differ (a literal's kind counts)."""


@dataclass(frozen=True)
class Argument:
    """`constant` is the value where it is known while types are checked: `part.id(1)` needs it."""

    type: Type
    span: Span
    constant: GenericValue | None = None


@dataclass(frozen=True)
class Call:
    """One use, to be checked.

    `generics` are the evaluated arguments of the turbofish, None where none was written. A closure
    among the arguments is not in `arguments`: `closure` types its body for the given parameter
    types.
    """

    name: str
    span: Span  # of the whole use
    name_span: Span
    arguments: tuple[Argument, ...]
    inference: Inference
    generics: tuple[GenericValue, ...] | None = None
    generic_spans: tuple[Span, ...] = ()
    closure: Callable[[tuple[Type, ...]], Type] | None = None
    in_unsafe: bool = False
    signature: str = ""  # how the operation is written


@dataclass(frozen=True)
class Emission:
    """One checked use, to be emitted at the current insertion point and location.

    `types` are those of the arguments, resolved; `closure` emits the body of a closure argument
    for the given values, at the insertion point current then.
    """

    name: str
    types: tuple[Type, ...]
    operands: tuple[Value, ...]
    result: Type
    generics: tuple[GenericValue, ...] | None = None
    closure: Callable[[tuple[Value, ...]], Value] | None = None
    in_unsafe: bool = False


class Operation(ABC):
    """One operation of the language. `turbofish` tells apart `a.max(b)` and `a.max::<1>()`.

    `signature`, `summary` and `since` are for docs/ops.md.
    """

    name: str
    form: Form
    receiver: Receiver | None = None
    turbofish: bool | None = None  # None: as the operation likes
    signature: str
    summary: str

    @abstractmethod
    def result_type(self, call: Call) -> Type:
        """The type of a use. Raises CompileError (E02xx, E03xx, E0103) with the places at fault."""

    @abstractmethod
    def emit(self, emission: Emission) -> Value:
        """The use in the tile dialect."""
