"""Which layout each tile of a program gets: constraints, costs, and the search for the cheapest.

Nothing here knows of an IR. A program is a list of *nodes* in program order, over numbered *values*
(the tiles). A node is *fixed*, executed once in one way, which is told by one layout, its *key*; or
*open*, made again in each layout that somebody wants (constants, views, loads of what nobody
writes). Fixed nodes whose results and operands have one layout by nature share a key: a *group*.
Where a value is wanted in another layout than it has, it is converted, once for each.

Algorithm:
1. Candidates for each value, forwards from what nodes like to give and backwards from what they
   like to take, a few rounds. Those of a group are those of its values.
2. Start from the first candidates, which are those of the accesses to memory before it.
3. Change all groups that may have one layout at once, since tiles that meet each other in a loop
   gain nothing by changing one by one; then one group at a time to whichever candidate makes the
   whole program cheapest, until nothing changes (iterated conditional modes). The same, starting
   from the last candidates, and the cheaper of the two: what a program ends in may matter more than
   what it starts from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tilec.layout.costs import conversion_cost
from tilec.layout.layout import Layout

# How many layouts are tried for a value: in programs as people write them there are two or three.
MOST_CANDIDATES = 6
_ROUNDS = 2
_SWEEPS = 3


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


@dataclass(frozen=True)
class Solution:
    """The layouts of each fixed node, and what each open one would like best, by node number.

    `keys` are those of the groups, `cost` that of the whole program.
    """

    places: dict[int, Places]
    liked: dict[int, Layout]
    keys: dict[int, Layout]
    cost: float


def infer_layouts(problem: Problem) -> Solution:
    """The cheapest layouts that were found."""
    candidates = _Candidates(problem)
    candidates.find()
    search = _Search(problem, candidates)
    first = search.improved({group: found[0] for group, found in candidates.of_group.items()})
    if all(len(found) == 1 for found in candidates.of_group.values()):
        return first
    last = search.improved({group: found[-1] for group, found in candidates.of_group.items()})
    return min(first, last, key=lambda solution: solution.cost)


def cost_of(problem: Problem, keys: dict[int, Layout]) -> float:
    """What a program costs in which the groups have these layouts."""
    candidates = _Candidates(problem)
    candidates.find()
    return _Search(problem, candidates).improved(keys, sweeps=0).cost


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


class _Candidates:
    """Layouts that values may have, each list in the order in which they came up."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.of_value: list[list[Layout]] = [[] for _ in problem.values]
        self.of_group: dict[int, list[Layout]] = {}

    def find(self) -> None:
        nodes = self.problem.nodes
        for _ in range(_ROUNDS):
            for node in nodes:
                self._forwards(node)
            for node in reversed(nodes):
                self._backwards(node)
        for node in nodes:
            if not node.is_open:
                self._give_default(node)

    def _forwards(self, node: Node) -> None:
        if node.is_open:
            firsts = [self._first(n) for n in node.operands]
            self._note(node.results, node.place(firsts).results)
            # Sums that are transposed come up late: their layout is not the first one.
            for layout in self._of(node.operands[0])[1:] if node.is_permutation else ():
                self._note(node.results, node.place([layout, *firsts[1:]]).results)
            return
        shape = key_shape(node, self.problem)
        keys = [key for n in node.operands for key in self._of(n) if key.shape == shape]
        for key in keys:
            self._note_key(node, key)
        if not keys:
            # What it wants by itself, as a product of matrices does, is for those after it to know.
            self._note_places(node, node.place([None] * len(node.operands)))

    def _backwards(self, node: Node) -> None:
        if node.is_open:
            for number in node.results:
                for layout in self._of(number):
                    wanted = node.serve(layout)
                    if wanted is not None:
                        self._note(node.operands, wanted)
            return
        for number in node.results:
            for layout in self._of(number):
                self._note_key(node, layout)
        if not node.results:
            self._note_places(node, node.place([None] * len(node.operands)))

    def _note_key(self, node: Node, layout: Layout) -> None:
        if layout.shape == key_shape(node, self.problem):
            self._note_places(node, keyed(node, self.problem, layout))

    def _note_places(self, node: Node, places: Places) -> None:
        """Its key is a layout that it keeps when it is given it."""
        self._note(node.operands, places.operands)
        self._note(node.results, places.results)
        found = self.of_group.setdefault(node.group, [])
        shape = key_shape(node, self.problem)
        for layout in (*places.operands, *places.results):
            if layout is None or layout in found or len(found) >= MOST_CANDIDATES:
                continue
            if layout.shape == shape and self._keeps(node, layout):
                found.append(layout)

    def _keeps(self, node: Node, layout: Layout) -> bool:
        places = keyed(node, self.problem, layout)
        return layout in (*places.operands, *places.results)

    def _give_default(self, node: Node) -> None:
        found = self.of_group.setdefault(node.group, [])
        if not found:
            found.append(self.problem.default(key_shape(node, self.problem)))

    def _note(self, numbers: Sequence[int | None], layouts: Sequence[Layout | None]) -> None:
        for number, layout in zip(numbers, layouts, strict=True):
            if number is None or layout is None:
                continue
            found = self.of_value[number]
            if layout not in found and len(found) < MOST_CANDIDATES:
                found.append(layout)

    def _of(self, number: int | None) -> tuple[Layout, ...]:
        return () if number is None else tuple(self.of_value[number])

    def _first(self, number: int | None) -> Layout | None:
        return next(iter(self._of(number)), None)


Keys = dict[int, Layout]


class _Search:
    def __init__(self, problem: Problem, candidates: _Candidates) -> None:
        self.problem = problem
        self.candidates = candidates
        self.liked = {n: self._likes(node) for n, node in enumerate(problem.nodes) if node.is_open}
        self._places: dict[tuple[int, Layout], Places] = {}

    def improved(self, keys: Keys, *, sweeps: int = _SWEEPS) -> Solution:
        """What changing one group at a time leads to, from these keys."""
        keys = dict(keys)
        best = self._cost(keys)
        undecided = [g for g, found in self.candidates.of_group.items() if len(found) > 1]
        for _ in range(sweeps):
            before = best
            for together in self._joint(undecided):
                if any(keys[group] != layout for group, layout in together.items()):
                    cost = self._cost({**keys, **together})
                    if cost < best:
                        best, keys = cost, {**keys, **together}
            for group in undecided:
                for layout in self.candidates.of_group[group]:
                    cost = self._cost({**keys, group: layout})
                    if cost < best:
                        best, keys = cost, {**keys, group: layout}
            if best == before:
                break
        places = {
            number: self._placed(number, keys[node.group])
            for number, node in enumerate(self.problem.nodes)
            if not node.is_open
        }
        return Solution(places, self.liked, keys, best)

    def _joint(self, groups: Sequence[int]) -> Iterator[Keys]:
        """For each layout that several of these groups may have: all of them with it."""
        may_have: dict[Layout, Keys] = {}
        for group in groups:
            for layout in self.candidates.of_group[group]:
                may_have.setdefault(layout, {})[group] = layout
        return (together for together in may_have.values() if len(together) > 1)

    def _likes(self, node: Node) -> Layout:
        number = next(n for n in node.results if n is not None)
        found = self.candidates.of_value[number]
        return found[0] if found else self.problem.default(self.problem.values[number].shape)

    def _placed(self, number: int, key: Layout) -> Places:
        if (number, key) not in self._places:
            self._places[number, key] = keyed(self.problem.nodes[number], self.problem, key)
        return self._places[number, key]

    def _cost(self, keys: Keys) -> float:
        """Of the whole program: nodes, conversions, and what is made again."""
        total = 0.0
        has: list[Layout | None] = [None] * len(self.problem.values)
        wanted: list[set[Layout]] = [set() for _ in self.problem.values]
        nodes = self.problem.nodes
        for number, node in enumerate(nodes):
            if node.is_open:
                continue
            places = self._placed(number, keys[node.group])
            total += node.turns * node.cost(places)
            _want(wanted, node.operands, places.operands)
            for result, layout in zip(node.results, places.results, strict=True):
                if result is not None:
                    has[result] = layout
        for number in reversed(range(len(nodes))):
            if nodes[number].is_open:
                total += self._cost_of_open(number, wanted)
        for value, layout in enumerate(has):
            if layout is not None:
                total += sum(self._conversion(value, layout, other) for other in wanted[value])
        return total

    def _cost_of_open(self, number: int, wanted: list[set[Layout]]) -> float:
        """Making it in each layout that is wanted, or in the one that it likes and converting."""
        node = self.problem.nodes[number]
        results = [n for n in node.results if n is not None]
        value = results[0]
        layouts = set[Layout]().union(*[wanted[n] for n in results])
        total = 0.0
        made: dict[Layout, tuple[Layout | None, ...]] = {}
        for layout in layouts:
            operands = node.serve(layout)
            if operands is not None:
                made[layout] = operands
                continue
            liked = self.liked[number]
            made.setdefault(liked, node.serve(liked) or (None,) * len(node.operands))
            total += self._conversion(value, liked, layout)
        for layout, operands in made.items():
            total += node.turns * node.cost(Places(operands, (layout,) * len(node.results)))
            _want(wanted, node.operands, operands)
        return total

    def _conversion(self, value: int, source: Layout, target: Layout) -> float:
        told = self.problem.values[value]
        return told.turns * conversion_cost(source, target, told.element_bytes)


def _want(
    wanted: list[set[Layout]],
    numbers: Sequence[int | None],
    layouts: Sequence[Layout | None],
) -> None:
    for number, layout in zip(numbers, layouts, strict=True):
        if number is not None and layout is not None:
            wanted[number].add(layout)
