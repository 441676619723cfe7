"""Which layouts are tried for each value and each group: those that its neighbours like.

Algorithm: forwards from what nodes like to give and backwards from what they like to take, a few
rounds. The candidates of a group are those of its values that it keeps when it is given them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.layout.layout import Layout
from tilec.layout.nodes import Places, Problem, key_shape, keyed

# How many layouts are tried for a value: in programs as people write them there are two or three.
MOST_CANDIDATES = 6
_ROUNDS = 2


class Candidates:
    """Layouts that values may have, each list in the order in which they came up."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.of_value: list[list[Layout]] = [[] for _ in problem.values]
        self.of_group: dict[int, list[Layout]] = {}
        self._placed: dict[tuple[int, Layout], Places] = {}
        # Noting a key once more changes nothing: lists only grow, up to their end.
        self._noted: set[tuple[int, Layout]] = set()
        self._key_shapes = [
            () if node.is_open else key_shape(node, problem) for node in problem.nodes
        ]
        self._find()

    def placed(self, number: int, key: Layout) -> Places:
        """The layouts of a fixed node with this key."""
        found = self._placed.get((number, key))
        if found is None:
            found = keyed(self.problem.nodes[number], self.problem, key)
            self._placed[number, key] = found
        return found

    def _find(self) -> None:
        numbers = range(len(self.problem.nodes))
        for _ in range(_ROUNDS):
            for number in numbers:
                self._forwards(number)
            for number in reversed(numbers):
                self._backwards(number)
        for number in numbers:
            if not self.problem.nodes[number].is_open:
                self._give_default(number)

    def _forwards(self, number: int) -> None:
        node = self.problem.nodes[number]
        if node.is_open:
            firsts = [self._first(n) for n in node.operands]
            self._note(node.results, node.place(firsts).results)
            # Sums that are transposed come up late: their layout is not the first one.
            for layout in self._of(node.operands[0])[1:] if node.is_permutation else ():
                self._note(node.results, node.place([layout, *firsts[1:]]).results)
            return
        shape = self._key_shapes[number]
        keys = [key for n in node.operands for key in self._of(n) if key.shape == shape]
        for key in dict.fromkeys(keys):
            self._note_key(number, key)
        if not keys:
            # What it wants by itself, as a product of matrices does, is for those after it to know.
            self._note_places(number, node.place([None] * len(node.operands)))

    def _backwards(self, number: int) -> None:
        node = self.problem.nodes[number]
        if node.is_open:
            for result in node.results:
                for layout in self._of(result):
                    wanted = node.serve(layout)
                    if wanted is not None:
                        self._note(node.operands, wanted)
            return
        for result in node.results:
            for layout in self._of(result):
                self._note_key(number, layout)
        if not node.results:
            self._note_places(number, node.place([None] * len(node.operands)))

    def _note_key(self, number: int, layout: Layout) -> None:
        if layout.shape == self._key_shapes[number] and (number, layout) not in self._noted:
            self._noted.add((number, layout))
            self._note_places(number, self.placed(number, layout))

    def _note_places(self, number: int, places: Places) -> None:
        """Its key is a layout that it keeps when it is given it."""
        node = self.problem.nodes[number]
        self._note(node.operands, places.operands)
        self._note(node.results, places.results)
        found = self.of_group.setdefault(node.group, [])
        shape = self._key_shapes[number]
        for layout in (*places.operands, *places.results):
            if layout is None or layout in found or len(found) >= MOST_CANDIDATES:
                continue
            if layout.shape == shape and self._keeps(number, layout):
                found.append(layout)

    def _keeps(self, number: int, layout: Layout) -> bool:
        places = self.placed(number, layout)
        return layout in (*places.operands, *places.results)

    def _give_default(self, number: int) -> None:
        found = self.of_group.setdefault(self.problem.nodes[number].group, [])
        if not found:
            found.append(self.problem.default(self._key_shapes[number]))

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
