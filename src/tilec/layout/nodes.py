"""A program as far as layouts go: nodes in program order over numbered values, without an IR.

A node is *fixed*, executed once in one way, which one layout determines, its *key*; or *open*,
rematerialised in each layout that a user wants (constants, views, loads of tensors that the kernel
does not write). Fixed nodes whose results and operands have one layout by nature share a key: a
*group*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tilec.layout.layout import Layout


@dataclass(frozen=True)
class Places:
    """Layouts that an operation wants; None where any will do, and for what is no tile."""

    operands: tuple[Layout | None, ...]
    results: tuple[Layout | None, ...]


@dataclass(frozen=True)
class Value:
    """A tile. `turns` tells how often it is made, for what it may cost to convert it."""

    shape: tuple[int, ...]
    element_bytes: int
    turns: float


@dataclass(frozen=True)
class Node:
    """One operation, or one variable of a loop or branch.

    `place` gives the layouts of operands and results from those that operands have (None: not
    known), `serve` those of the operands from which the results come out in a layout, or None.
    `cost` is that of one execution. An open node makes a tile. Values are numbers into
    `Problem.values`, None for no tile. Nodes of one `group` have the same key. `is_permutation`:
    what it makes is its first operand with its axes in another order, or more of extent 1.
    """

    operands: tuple[int | None, ...]
    results: tuple[int | None, ...]
    is_open: bool
    place: Callable[[Sequence[Layout | None]], Places]
    serve: Callable[[Layout], tuple[Layout | None, ...] | None]
    cost: Callable[[Places], float]
    turns: float
    group: int
    is_permutation: bool = False


@dataclass(frozen=True)
class Problem:
    """A program, in order; `default` is for tiles that nothing asks anything of."""

    values: tuple[Value, ...]
    nodes: tuple[Node, ...]
    default: Callable[[tuple[int, ...]], Layout]


def key_shape(node: Node, problem: Problem) -> tuple[int, ...]:
    """The shape of the tile whose layout tells that of a fixed node: its largest."""
    numbers = [number for number in (*node.operands, *node.results) if number is not None]
    return max((problem.values[number].shape for number in numbers), key=prod)


def keyed(node: Node, problem: Problem, key: Layout) -> Places:
    """The layouts of a fixed node with this key: where a tile has its shape, it is known."""
    known = [
        key if number is not None and problem.values[number].shape == key.shape else None
        for number in node.operands
    ]
    places = node.place(known)

    def all_of(
        numbers: Sequence[int | None], layouts: Sequence[Layout | None]
    ) -> Iterator[Layout | None]:
        for number, layout in zip(numbers, layouts, strict=True):
            if number is None:
                yield None
            else:
                yield layout or problem.default(problem.values[number].shape)

    return Places(
        tuple(all_of(node.operands, places.operands)), tuple(all_of(node.results, places.results))
    )
