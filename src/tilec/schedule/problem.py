"""The order of the operations of a loop's body, and which are done a turn later: in numbers.

A task is an operation that takes time. Products are begun by threads and go on beside them, one
after the other; all else threads do, in order. What a task takes it waits for where that is a
product's sums; where it makes anew what a product reads from registers, for that product. The
tasks of stage 1 are done a turn later than those of stage 0, so that threads have something to do
while products of the turn are under way:

    stage 0 only    a; wait a; f; b; wait b
    with stages     a of this turn; b of the last one; wait a; f, beside b

Nothing here knows of an IR.

Source:   Rau, Iterative Modulo Scheduling (MICRO 1994): stages, and the order within a turn
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

# Turns that are followed to find what a later one takes: by then it is the same as the one before.
_TURNS = 6


@dataclass(frozen=True)
class Task:
    """What takes time in a turn. `cycles` are those for which its unit is busy for the whole block,
    `words` what its results are to each thread that does it.

    Units:    cycles of one multiprocessor; 32-bit registers
    """

    is_product: bool
    cycles: int
    words: int


@dataclass(frozen=True)
class Need:
    """That a task takes what another one gives, `distance` turns ago.

    `is_held`: a product reads it from registers as long as it is under way; `is_added_to`: they are
    sums to which a product adds, that need not be waited for.
    """

    source: int
    target: int
    distance: int
    is_held: bool = False
    is_added_to: bool = False


@dataclass(frozen=True)
class Problem:
    """The tasks of a turn in the order in which they are written, and what they need.

    `groups` of warps do it side by side, each its part; a thread has `most_words` for what tasks
    give.

    Units:    `issue_cycles` are those in which a thread begins a product
    """

    tasks: tuple[Task, ...]
    needs: tuple[Need, ...]
    groups: int
    most_words: int
    issue_cycles: int

    @cached_property
    def needed(self) -> list[list[Need]]:
        """By the task that takes."""
        found: list[list[Need]] = [[] for _ in self.tasks]
        for need in self.needs:
            found[need.target].append(need)
        return found

    @cached_property
    def given(self) -> list[list[Need]]:
        """By the task that gives."""
        found: list[list[Need]] = [[] for _ in self.tasks]
        for need in self.needs:
            found[need.source].append(need)
        return found

    @property
    def bound(self) -> int:
        """What a turn takes at least: one unit is busy for so long.

        Units:    cycles
        """
        of_products = sum(task.cycles for task in self.tasks if task.is_product)
        return max(of_products, sum(task.cycles for task in self.tasks if not task.is_product))


@dataclass(frozen=True)
class Placed:
    """A solution: the stage of each task, and the order of a turn. `interval` is what a turn takes,
    `words` what a thread holds at most.

    Units:    cycles; 32-bit registers
    """

    stages: tuple[int, ...]
    order: tuple[int, ...]
    interval: int
    words: int


@dataclass
class _Turns:
    """Turns of one group of warps, followed in time; products end in the order of their begin."""

    problem: Problem
    stages: Sequence[int]
    now: int = 0
    products_over: int = 0
    over: dict[tuple[int, int], int] = field(default_factory=dict)  # of a product, by iteration

    def follow(self, order: Sequence[int], turn: int) -> None:
        for task in order:
            iteration = turn - self.stages[task]
            if iteration >= 0:
                self._do(task, iteration)

    def _do(self, number: int, iteration: int) -> None:
        problem, task = self.problem, self.problem.tasks[number]
        self.now = max([self.now, *self._waits(number, iteration)])
        if not task.is_product:
            self.now += task.cycles
            return
        # The instructions of a product are not all begun before those of the last one are over.
        self.now = max(self.now, self.products_over)
        self.products_over = self.now + task.cycles // problem.groups
        self.over[number, iteration] = self.products_over
        self.now += problem.issue_cycles

    def _waits(self, number: int, iteration: int) -> Iterator[int]:
        for need in self.problem.needed[number]:
            if not need.is_added_to:
                yield self.over.get((need.source, iteration - need.distance), 0)
        for need in self.problem.given[number]:
            if need.is_held:
                yield self.over.get((need.target, iteration + need.distance - 1), 0)


def interval_of(problem: Problem, stages: Sequence[int], order: Sequence[int]) -> int:
    """What a turn takes, once turns are alike.

    Units:    cycles
    """
    turns = _Turns(problem, stages)
    for turn in range(_TURNS):
        before = turns.now
        turns.follow(order, turn)
    return max(problem.bound, turns.now - before)


def words_of(problem: Problem, stages: Sequence[int], order: Sequence[int]) -> int:
    """What a thread holds at most of what tasks give, between two of them.

    Units:    32-bit registers
    """
    place = {task: position for position, task in enumerate(order)}
    end = len(order)
    held = [0] * (end + 1)  # behind so many tasks
    for number, task in enumerate(problem.tasks):
        # From where it is made; what a later turn takes, to the end and from the beginning on.
        spans = []
        for need in problem.given[number]:
            delay = stages[need.target] - stages[number] + need.distance
            last = place[need.target] + 1
            if delay == 0:
                spans.append((place[number] + 1, last))
            else:
                spans += [(place[number] + 1, end + 1), *[(0, end + 1)] * (delay - 1), (0, last)]
        for position in {p for first, last in spans for p in range(first, last)}:
            held[position] += task.words
    return max(held)
