"""What a program costs while the layouts of its groups change, one group at a time.

The cost is a sum of parts: one for each node, and one for each value that fixed nodes make, of what
converting it takes. A part depends on the layouts of its own node or value and on those in which
its users want it. So a change of one group changes the parts of its nodes, of their operands, and
of the open nodes that make these, as far back as what is wanted of them changes; the rest of the
program is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import fsum

from tilec.layout.candidates import Candidates
from tilec.layout.costs import conversion_cost
from tilec.layout.layout import Layout
from tilec.layout.nodes import Places

# The layouts of groups, by group.
Keys = dict[int, Layout]
# Values that a node uses, and in which layouts.
_Wants = tuple[tuple[int, Layout], ...]
# What it takes to make an open node in a layout: the layouts of its operands, and the cost of that.
_Made = tuple[tuple[Layout | None, ...], float]


class RunningCost:
    """`visits` counts the parts that were computed: the measure of the work that was done."""

    def __init__(self, candidates: Candidates, keys: Keys) -> None:
        self.visits = 0
        self.keys: Keys = {}
        self._problem = problem = candidates.problem
        self._candidates = candidates
        self.liked = {n: self._likes(n) for n, node in enumerate(problem.nodes) if node.is_open}
        self._makers = {
            result: number
            for number in self.liked
            for result in problem.nodes[number].results
            if result is not None
        }
        self._nodes_of: dict[int, list[int]] = {}
        for number, node in enumerate(problem.nodes):
            if not node.is_open:
                self._nodes_of.setdefault(node.group, []).append(number)
        self._has: list[Layout | None] = [None] * len(problem.values)
        # How many nodes want each value in each layout.
        self._wanted: list[dict[Layout, int]] = [{} for _ in problem.values]
        self._wants: list[_Wants] = [()] * len(problem.nodes)
        self._of_nodes = [0.0] * len(problem.nodes)
        self._of_values = [0.0] * len(problem.values)
        self._made: dict[tuple[int, Layout], _Made | None] = {}
        self._fixed: dict[tuple[int, Layout], float] = {}
        for group, key in keys.items():
            self.change(group, key)
        for number in reversed(self.liked):
            self._update_open(number)  # also those without users

    @property
    def total(self) -> float:
        return fsum((*self._of_nodes, *self._of_values))

    def change(self, group: int, key: Layout) -> float:
        """Give a group this layout; gives how much more the program costs then.

        The sum is exact, however much deeper in loops one of its parts is than another.
        """
        self.keys[group] = key
        parts: list[float] = []
        changed: set[int] = set()
        for number in self._nodes_of.get(group, ()):
            parts += self._update_fixed(number, key, changed)
        parts += self._update_makers(changed)
        for value in changed:
            parts += self._update_value(value)
        return fsum(parts)

    # ---- fixed nodes -----------------------------------------------------------------------------

    def _update_fixed(self, number: int, key: Layout, changed: set[int]) -> tuple[float, ...]:
        self.visits += 1
        node, places = self._problem.nodes[number], self._candidates.placed(number, key)
        for result, layout in zip(node.results, places.results, strict=True):
            if result is not None and self._has[result] != layout:
                self._has[result] = layout
                changed.add(result)
        self._want(number, _wants(node.operands, places.operands), changed)
        if (number, key) not in self._fixed:
            self._fixed[number, key] = node.turns * node.cost(places)
        return self._set_node(number, self._fixed[number, key])

    def _set_node(self, number: int, cost: float) -> tuple[float, ...]:
        before, self._of_nodes[number] = self._of_nodes[number], cost
        return () if before == cost else (cost, -before)

    def _want(self, number: int, wants: _Wants, changed: set[int]) -> None:
        """Note what a node wants, instead of what it wanted."""
        before, self._wants[number] = self._wants[number], wants
        if before == wants:
            return
        for value, layout in wants:
            counts = self._wanted[value]
            counts[layout] = counts.get(layout, 0) + 1
            if counts[layout] == 1:
                changed.add(value)
        for value, layout in before:
            counts = self._wanted[value]
            counts[layout] -= 1
            if counts[layout] == 0:
                del counts[layout]
                changed.add(value)

    # ---- open nodes ------------------------------------------------------------------------------

    def _likes(self, number: int) -> Layout:
        value = next(n for n in self._problem.nodes[number].results if n is not None)
        found = self._candidates.of_value[value]
        return found[0] if found else self._problem.default(self._problem.values[value].shape)

    def _update_makers(self, changed: set[int]) -> list[float]:
        """Of the open nodes that make what changed, the last first: users come behind makers."""
        parts: list[float] = []
        heap: list[int] = []
        known: set[int] = set()
        self._push_makers(changed, heap, known)
        while heap:
            number = -heappop(heap)
            wanted_otherwise: set[int] = set()
            parts += self._update_open(number, wanted_otherwise)
            self._push_makers(wanted_otherwise, heap, known)
            changed |= wanted_otherwise
        return parts

    def _push_makers(self, values: Iterable[int], heap: list[int], known: set[int]) -> None:
        for value in values:
            maker = self._makers.get(value)
            if maker is not None and maker not in known:
                known.add(maker)
                heappush(heap, -maker)

    def _update_open(self, number: int, changed: set[int] | None = None) -> tuple[float, ...]:
        """Making it in each layout that is wanted, or in the one that it likes and converting."""
        self.visits += 1
        node = self._problem.nodes[number]
        results = [n for n in node.results if n is not None]
        layouts = dict.fromkeys(layout for n in results for layout in self._wanted[n])
        liked = self.liked[number]
        costs: list[float] = []
        made: dict[Layout, _Made] = {}
        for layout in layouts:
            found = self._made_in(number, layout)
            if found is None:
                costs.append(self._conversion(results[0], liked, layout))
                found = self._made_in(number, liked) or self._made_of_anything(number, liked)
                layout = liked
            made[layout] = found
        wants: list[tuple[int, Layout]] = []
        for operands, cost in made.values():
            costs.append(cost)
            wants += _wants(node.operands, operands)
        self._want(number, tuple(wants), set() if changed is None else changed)
        return self._set_node(number, fsum(costs))

    def _made_in(self, number: int, layout: Layout) -> _Made | None:
        if (number, layout) not in self._made:
            operands = self._problem.nodes[number].serve(layout)
            made = None if operands is None else self._made_of(number, layout, operands)
            self._made[number, layout] = made
        return self._made[number, layout]

    def _made_of_anything(self, number: int, layout: Layout) -> _Made:
        return self._made_of(number, layout, (None,) * len(self._problem.nodes[number].operands))

    def _made_of(self, number: int, layout: Layout, operands: tuple[Layout | None, ...]) -> _Made:
        node = self._problem.nodes[number]
        places = Places(operands, (layout,) * len(node.results))
        return operands, node.turns * node.cost(places)

    # ---- conversions -----------------------------------------------------------------------------

    def _update_value(self, value: int) -> tuple[float, ...]:
        has = self._has[value]
        if has is None:
            return ()
        self.visits += 1
        cost = fsum(self._conversion(value, has, other) for other in self._wanted[value])
        before, self._of_values[value] = self._of_values[value], cost
        return () if before == cost else (cost, -before)

    def _conversion(self, value: int, source: Layout, target: Layout) -> float:
        told = self._problem.values[value]
        return told.turns * conversion_cost(source, target, told.element_bytes)


def _wants(numbers: Sequence[int | None], layouts: Sequence[Layout | None]) -> _Wants:
    pairs = zip(numbers, layouts, strict=True)
    return tuple((n, layout) for n, layout in pairs if n is not None and layout is not None)
