"""The typed, monomorphic tree: names resolved, operations chosen, every type known.

What the type checker hands to the emitter. A type may still hold element variables; the
`ElementInference` of the function knows what became of them. Nodes are told apart by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TypeVar

from tilec.frontend.inference import ElementInference
from tilec.ops.call import GenericValue, Operation
from tilec.source import Span
from tilec.types import Dim, ElementLike, Extent, Own, Type


@dataclass(eq=False)
class Local:
    """A variable. `type` is None until it is known (`let x;`).

    `host` tells whether a launcher can know it: made of extents and scalar parameters alone.
    """

    name: str
    span: Span
    type: Type | None
    mutable: bool = False
    host: bool = False


@dataclass(frozen=True, eq=False)
class Node:
    span: Span


@dataclass(frozen=True, eq=False)
class Expression(Node):
    type: Type


@dataclass(frozen=True, eq=False)
class Literal(Expression):
    """A constant scalar."""

    value: int | float | bool


@dataclass(frozen=True, eq=False)
class DimValue(Expression):
    """The extent that a `Dim` of this function stands for."""

    dim: Dim


@dataclass(frozen=True, eq=False)
class Read(Expression):
    """The value of a variable; of a view or part, the view itself."""

    local: Local


@dataclass(frozen=True, eq=False)
class Operate(Expression):
    """One use of an operation of the language."""

    operation: Operation
    name: str
    arguments: tuple[Expression, ...]
    generics: tuple[GenericValue, ...] | None
    closure: Closure | None
    in_unsafe: bool


@dataclass(frozen=True, eq=False)
class ShortCircuit(Expression):
    """`&&` or `||`: the right side is only evaluated when it decides."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False)
class CallHelper(Expression):
    """A call of a helper; `extents` gives its `Dim`s, in the caller's terms."""

    function: FunctionInstance
    arguments: tuple[Expression, ...]
    extents: tuple[Extent, ...]


@dataclass(frozen=True, eq=False)
class Move(Expression):
    """A part given away."""

    value: Expression


@dataclass(frozen=True, eq=False)
class Borrow(Expression):
    """A part lent to a helper."""

    mutable: bool
    value: Expression


@dataclass(frozen=True, eq=False)
class MakeTuple(Expression):
    """A tuple or an array."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Item(Expression):
    """One item of a tuple or array, at a known place."""

    value: Expression
    position: int


@dataclass(frozen=True, eq=False)
class ItemAt(Expression):
    """One item of an array, at a place known at run time; outside: zero."""

    value: Expression
    position: Expression


@dataclass(frozen=True, eq=False)
class Block(Expression):
    statements: tuple[Statement, ...]
    tail: Expression | None


@dataclass(frozen=True, eq=False)
class If(Expression):
    condition: Expression
    then: Block
    otherwise: Block | None


@dataclass(frozen=True, eq=False)
class Closure(Node):
    """A combiner; `parameters` are bound anew at each emission."""

    parameters: tuple[Pattern, ...]
    types: tuple[Type, ...]
    body: Expression


# ---- patterns ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bind(Node):
    local: Local


@dataclass(frozen=True, eq=False)
class Ignore(Node):
    pass


@dataclass(frozen=True, eq=False)
class Group(Node):
    """The items of a tuple or an array."""

    items: tuple[Pattern, ...]


Pattern = Bind | Ignore | Group


# ---- statements --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Let(Node):
    """`value` is None in `let x;`: what is read was assigned before."""

    pattern: Pattern
    value: Expression | None


@dataclass(frozen=True, eq=False)
class Assign(Node):
    """`path` leads from the variable to the item that is assigned: `t.0 = x`, `a[1] = x`."""

    local: Local
    path: tuple[int, ...]
    value: Expression


@dataclass(frozen=True, eq=False)
class Evaluate(Node):
    value: Expression


@dataclass(frozen=True, eq=False)
class For(Node):
    """`adapters` are `("step_by", n)` and `("rev", None)` in the order they were applied."""

    pattern: Bind | Ignore
    element: ElementLike
    start: Expression
    end: Expression
    inclusive: bool
    adapters: tuple[tuple[str, Expression | None], ...]
    body: Block


@dataclass(frozen=True, eq=False)
class While(Node):
    condition: Expression
    body: Block


@dataclass(frozen=True, eq=False)
class Guard(Node):
    """`if … { …; return; }` at the top level of a kernel: what follows runs in the other branch."""

    condition: Expression
    then: Block
    otherwise: Block | None
    then_returns: bool
    otherwise_returns: bool


@dataclass(frozen=True, eq=False)
class Require(Node):
    """`requires!` (`tile.assume`) or `assert!` (`tile.assert`)."""

    condition: Expression
    text: str
    assume: bool


Statement = Let | Assign | Evaluate | For | While | Guard | Require


# ---- functions ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HelperParameter:
    """`lent` says how a part or tensor is borrowed, if it is.

    A `&mut` tensor that is lent as `&` keeps its own type: what may be written is still seen.
    """

    pattern: Pattern
    type: Type
    lent: Own | None


@dataclass(eq=False)
class FunctionInstance:
    """A helper with its types and constants known; `body` is filled in when it was checked."""

    symbol: str
    span: Span
    dims: tuple[Dim, ...]
    parameters: tuple[HelperParameter, ...]
    inference: ElementInference
    result: Type
    body: Block | None = None


@dataclass(frozen=True, eq=False)
class KernelInstance:
    """One kernel to be emitted; `helpers` in the order they were first called."""

    symbol: str
    name: str
    span: Span
    file: str
    documentation: str
    generics: tuple[tuple[str, GenericValue], ...]
    hints: dict[str, bool | int | tuple[int, ...]]
    hint_spans: dict[str, Span]  # in `file`
    dims: tuple[Dim, ...]
    parameters: tuple[Local, ...]
    grid: tuple[Expression, ...] | None
    body: Block
    inference: ElementInference
    helpers: tuple[FunctionInstance, ...] = field(default=())


# ---- questions about trees ---------------------------------------------------------------------

N = TypeVar("N", bound=Node)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in the order they are written."""
    for entry in fields(node):
        yield from _nodes(getattr(node, entry.name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def below(node: Node, kind: type[N]) -> Iterator[N]:
    """Every node of a kind in a tree."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if isinstance(found, kind):
            yield found
        waiting += reversed(list(children(found)))


class Assignments:
    """The variables that trees assign, remembered tree by tree: loops and branches ask for each."""

    def __init__(self) -> None:
        self._known: dict[Node, tuple[dict[Local, None], frozenset[Local]]] = {}

    def outside(self, *nodes: Node | None) -> list[Local]:
        """The variables that are assigned anywhere in these trees but declared outside of them."""
        found = [self._of(node) for node in nodes if node is not None]
        declared = frozenset[Local]().union(*(inside for _, inside in found))
        return [local for local in _merged(a for a, _ in found) if local not in declared]

    def _of(self, node: Node) -> tuple[dict[Local, None], frozenset[Local]]:
        """What a tree assigns and what it declares."""
        if node not in self._known:
            parts = [self._of(child) for child in children(node)]
            assigned = _merged(a for a, _ in parts)
            declared = frozenset[Local]().union(*(inside for _, inside in parts))
            if isinstance(node, Assign):
                assigned = {**assigned, node.local: None}
            if isinstance(node, Bind):
                declared |= {node.local}
            self._known[node] = assigned, declared
        return self._known[node]


def _merged(parts: Iterable[dict[Local, None]]) -> dict[Local, None]:
    return {local: None for part in parts for local in part}
