"""The syntax tree: what was written, with the place of everything.

Frozen dataclasses; sequences are tuples. Names are not resolved and nothing is typed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TypeVar

from tilec.source import Span


@dataclass(frozen=True)
class Node:
    span: Span


@dataclass(frozen=True)
class Name(Node):
    """An identifier where it stands."""

    text: str


# ---- types -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathType(Node):
    """`f32`, `T`, `Tile<f32, 1, B>`, `Part<&mut Tensor<T, N>, B>`.

    A generic argument that is a bare name is a `PathType` without arguments: only name resolution
    knows whether it is a type, a `Dim` or a const.
    """

    name: Name
    arguments: tuple[GenericArgument, ...] = ()


@dataclass(frozen=True)
class ReferenceType(Node):
    mutable: bool
    target: TypeNode


@dataclass(frozen=True)
class TupleTypeNode(Node):
    items: tuple[TypeNode, ...]


@dataclass(frozen=True)
class ArrayTypeNode(Node):
    item: TypeNode
    length: Expression


@dataclass(frozen=True)
class ConstArgument(Node):
    """A generic argument that is an expression: a literal, `-1`, or anything in braces."""

    value: Expression


TypeNode = PathType | ReferenceType | TupleTypeNode | ArrayTypeNode
GenericArgument = TypeNode | ConstArgument


# ---- expressions -------------------------------------------------------------------------------


@dataclass(frozen=True)
class IntegerLiteral(Node):
    value: int
    suffix: str | None  # an element type's name, a float's too (`1f32`)


@dataclass(frozen=True)
class FloatLiteral(Node):
    text: str  # without suffix and underscores; Python's `float` reads it
    suffix: str | None


@dataclass(frozen=True)
class BoolLiteral(Node):
    value: bool


@dataclass(frozen=True)
class StringLiteral(Node):
    """Only as the message of a macro."""

    value: str


@dataclass(frozen=True)
class Segment(Node):
    """One part of a path: `Tile::<f32, B>` or `zeros`."""

    name: Name
    arguments: tuple[GenericArgument, ...] | None = None  # None: no turbofish


@dataclass(frozen=True)
class Path(Node):
    """`x`, `T::NEG_INFINITY`, `iota::<i32, B>`, `Tile::<f32, B>::zeros`."""

    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class Unary(Node):
    operator: str  # - !
    operand: Expression


@dataclass(frozen=True)
class Binary(Node):
    operator: str  # + - * / % & | ^ << >> == != < <= > >= && ||
    operator_span: Span
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Cast(Node):
    value: Expression
    target: TypeNode


@dataclass(frozen=True)
class Borrow(Node):
    """`&x` or `&mut x`, as an argument."""

    mutable: bool
    value: Expression


@dataclass(frozen=True)
class Call(Node):
    function: Path
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class MethodCall(Node):
    receiver: Expression
    method: Name
    generics: tuple[GenericArgument, ...] | None  # None: no turbofish
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Index(Node):
    value: Expression
    index: Expression


@dataclass(frozen=True)
class Field(Node):
    """`t.0`: an item of a tuple."""

    value: Expression
    index: int


@dataclass(frozen=True)
class Tuple(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Array(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class ArrayRepeat(Node):
    item: Expression
    length: Expression


@dataclass(frozen=True)
class Closure(Node):
    parameters: tuple[Pattern, ...]
    body: Expression


@dataclass(frozen=True)
class Block(Node):
    """`{ statements; tail }`; `unsafe_span` is the word `unsafe` before it, if there."""

    statements: tuple[Statement, ...]
    tail: Expression | None
    unsafe_span: Span | None = None


@dataclass(frozen=True)
class If(Node):
    condition: Expression
    then: Block
    otherwise: Expression | None  # a Block or another If


@dataclass(frozen=True)
class Range(Node):
    """Only as what a `for` runs over."""

    start: Expression
    end: Expression
    inclusive: bool


@dataclass(frozen=True)
class For(Node):
    pattern: Pattern
    iterable: Expression  # a Range, or methods (`step_by`, `rev`) on a Range
    body: Block


@dataclass(frozen=True)
class While(Node):
    condition: Expression
    body: Block


@dataclass(frozen=True)
class Loop(Node):
    body: Block


@dataclass(frozen=True)
class MatchArm(Node):
    patterns: tuple[Pattern, ...]  # `a | b`
    guard: Expression | None
    body: Expression


@dataclass(frozen=True)
class Match(Node):
    value: Expression
    arms: tuple[MatchArm, ...]


@dataclass(frozen=True)
class Break(Node):
    value: Expression | None = None


@dataclass(frozen=True)
class Continue(Node):
    pass


@dataclass(frozen=True)
class Return(Node):
    value: Expression | None


@dataclass(frozen=True)
class MacroCall(Node):
    """`requires!(…)`, `assert!(…)`, `static_assert!(…)`, `println!(…)`."""

    name: Name
    arguments: tuple[Expression, ...]


Expression = (
    IntegerLiteral | FloatLiteral | BoolLiteral | StringLiteral | Path | Unary | Binary | Cast
    | Borrow | Call | MethodCall | Index | Field | Tuple | Array | ArrayRepeat | Closure | Block
    | If | Range | For | While | Loop | Match | Break | Continue | Return | MacroCall
)  # fmt: skip


# ---- patterns ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class BindingPattern(Node):
    name: Name
    mutable: bool = False


@dataclass(frozen=True)
class WildcardPattern(Node):
    pass


@dataclass(frozen=True)
class TuplePattern(Node):
    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class ArrayPattern(Node):
    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class LiteralPattern(Node):
    """In `match` only."""

    value: Expression


Pattern = BindingPattern | WildcardPattern | TuplePattern | ArrayPattern | LiteralPattern


# ---- statements --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Let(Node):
    pattern: Pattern
    type: TypeNode | None
    value: Expression | None


@dataclass(frozen=True)
class Assign(Node):
    target: Expression
    operator: str  # = += -= …
    operator_span: Span
    value: Expression


@dataclass(frozen=True)
class ExpressionStatement(Node):
    value: Expression


Statement = Let | Assign | ExpressionStatement


# ---- items -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AttributeArgument(Node):
    """`T = f32`, `B = 1024`, `grid = [M, 1, 1]`, a bare word `fast_math`, or `hint(warps = 4)`."""

    name: Name
    value: Expression | None
    arguments: tuple[AttributeArgument, ...] | None = None  # of those with a list of their own


@dataclass(frozen=True)
class Attribute(Node):
    name: Name
    arguments: tuple[AttributeArgument, ...]  # `#[kernel]` and `#[kernel()]` are the same


@dataclass(frozen=True)
class GenericParameter(Node):
    """`T: Num`, `N: Dim` (bound "Num"/"Dim"/…) or `const B: usize` (const_type set)."""

    name: Name
    bound: Name | None
    const_type: TypeNode | None


@dataclass(frozen=True)
class Parameter(Node):
    pattern: Pattern
    type: TypeNode


@dataclass(frozen=True)
class Function(Node):
    name: Name
    attributes: tuple[Attribute, ...]
    public: bool
    generics: tuple[GenericParameter, ...]
    parameters: tuple[Parameter, ...]
    result: TypeNode | None
    body: Block
    documentation: str = ""


@dataclass(frozen=True)
class Const(Node):
    name: Name
    type: TypeNode
    value: Expression


@dataclass(frozen=True)
class Use(Node):
    """`use other::name;` (`names` holds several for `use other::{a, b};`)."""

    module: Name
    names: tuple[Name, ...]


Item = Function | Const | Use


@dataclass(frozen=True)
class File(Node):
    items: tuple[Item, ...]
    documentation: str = ""


# ---- questions about trees ---------------------------------------------------------------------

N = TypeVar("N", bound=Node)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in the order they are written."""
    for name in _parts(node):
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, Node):
                yield child


_PARTS: dict[type[Node], tuple[str, ...]] = {}


def _parts(node: Node) -> tuple[str, ...]:
    kind = type(node)
    if kind not in _PARTS:
        _PARTS[kind] = tuple(field.name for field in fields(node) if field.name != "span")
    return _PARTS[kind]


def below(node: Node, kind: type[N]) -> Iterator[N]:
    """Every node of a kind in a tree, in the order they are written."""
    # A stack, not a recursion: a tree may be deeper than Python's own stack.
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, kind):
            yield found
        waiting += reversed(list(children(found)))
