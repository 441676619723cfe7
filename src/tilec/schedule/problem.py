"""Software pipelining of a loop as a problem in integers: tasks, dependences, a solution's cost.

A task is an operation of the loop body that takes time. Threads execute their tasks in order. They
only issue products, which run asynchronously, one after the other; threads wait for a product
before they use its accumulator, and before they overwrite registers that it reads. A task of
stage 1 belongs to the iteration before that of stage 0, so that threads have work while the
iteration's products are in flight:

    one stage     issue a; wait a; f; issue b; wait b
    two stages    issue a; issue b of the previous iteration; wait a; f, while b runs

This module knows no IR.

Source:   Rau, Iterative Modulo Scheduling (MICRO 1994)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

# Iterations to simulate until the steady state: one takes as long as the next by then.
_SIMULATED_ITERATIONS = 6


@dataclass(frozen=True)
class Task:
    """An operation that takes time.

    Units:    `cycles` of its unit, for the whole block; 32-bit `registers` a thread, of its results
    """

    is_product: bool
    cycles: int
    registers: int


@dataclass(frozen=True)
class Dependence:
    """The task `target` uses what `source` computed `distance` iterations ago.

    `in_registers`: the target is a product that reads the value from registers while it runs.
    `is_accumulator`: the target adds to the accumulator of a product, and need not wait for it.
    """

    source: int
    target: int
    distance: int
    in_registers: bool = False
    is_accumulator: bool = False


@dataclass(frozen=True)
class Problem:
    """The tasks of one iteration in program order, and their dependences.

    `groups` of warps execute them side by side, each on its share of the rows.

    Units:    32-bit registers a thread that results may take; cycles to issue a product
    """

    tasks: tuple[Task, ...]
    dependences: tuple[Dependence, ...]
    groups: int
    register_limit: int
    issue_cycles: int

    @cached_property
    def inputs(self) -> list[list[Dependence]]:
        """The dependences by their target."""
        return self._grouped([one.target for one in self.dependences])

    @cached_property
    def outputs(self) -> list[list[Dependence]]:
        """The dependences by their source."""
        return self._grouped([one.source for one in self.dependences])

    def _grouped(self, keys: Sequence[int]) -> list[list[Dependence]]:
        found: list[list[Dependence]] = [[] for _ in self.tasks]
        for key, dependence in zip(keys, self.dependences, strict=True):
            found[key].append(dependence)
        return found

    @property
    def resource_bound(self) -> int:
        """The least initiation interval: what the busiest unit needs for an iteration.

        Units:    cycles
        """
        return max(self.tensor_cycles, self.thread_cycles)

    @property
    def tensor_cycles(self) -> int:
        """Units:    cycles of the tensor cores an iteration"""
        return sum(task.cycles for task in self.tasks if task.is_product)

    @property
    def thread_cycles(self) -> int:
        """Units:    cycles of the threads an iteration"""
        return sum(task.cycles for task in self.tasks if not task.is_product)


@dataclass(frozen=True)
class Solution:
    """The stage of each task, the order of a steady iteration, and what they cost.

    Units:    cycles of the initiation interval; 32-bit registers a thread
    """

    stages: tuple[int, ...]
    order: tuple[int, ...]
    interval: int
    registers: int


@dataclass(frozen=True)
class Event:
    """A task of a steady iteration: threads execute it, or issue it if it is a product, at `start`;
    it is done at `end`.

    Units:    cycles from the start of the iteration
    """

    task: int
    start: int
    end: int


@dataclass
class _Simulation:
    """One group of warps, iteration after iteration; products complete in the order of issue."""

    problem: Problem
    stages: Sequence[int]
    now: int = 0
    products_done: int = 0
    done: dict[tuple[int, int], int] = field(default_factory=dict)  # of a product, by iteration

    def run(self, order: Sequence[int], iteration: int) -> list[Event]:
        begun = self.now
        events = []
        for task in order:
            own = iteration - self.stages[task]
            if own >= 0:
                start, end = self._execute(task, own)
                events.append(Event(task, start - begun, end - begun))
        return events

    def _execute(self, number: int, iteration: int) -> tuple[int, int]:
        """Units:    cycles from the start of the loop"""
        problem, task = self.problem, self.problem.tasks[number]
        self.now = max([self.now, *self._waits(number, iteration)])
        start = self.now
        if not task.is_product:
            self.now += task.cycles
            return start, self.now
        # Measured (docs/notes.md): issue blocks until the previous product is done.
        start = self.now = max(self.now, self.products_done)
        self.products_done = self.now + task.cycles // problem.groups
        self.done[number, iteration] = self.products_done
        self.now += problem.issue_cycles
        return start, self.products_done

    def _waits(self, number: int, iteration: int) -> Iterator[int]:
        for one in self.problem.inputs[number]:
            if not one.is_accumulator:
                yield self.done.get((one.source, iteration - one.distance), 0)
        for one in self.problem.outputs[number]:
            if one.in_registers:
                yield self.done.get((one.target, iteration + one.distance - 1), 0)


def interval_of(problem: Problem, stages: Sequence[int], order: Sequence[int]) -> int:
    """The initiation interval: the cycles of one iteration in the steady state."""
    simulation = _Simulation(problem, stages)
    for iteration in range(_SIMULATED_ITERATIONS):
        before = simulation.now
        simulation.run(order, iteration)
    return max(problem.resource_bound, simulation.now - before)


def timeline_of(problem: Problem, stages: Sequence[int], order: Sequence[int]) -> list[Event]:
    """What happens in one steady iteration, in the order of the threads."""
    simulation = _Simulation(problem, stages)
    for iteration in range(_SIMULATED_ITERATIONS):
        events = simulation.run(order, iteration)
    return events


def registers_of(problem: Problem, stages: Sequence[int], order: Sequence[int]) -> int:
    """The most registers of a thread that are live between two tasks of a steady iteration."""
    place = {task: position for position, task in enumerate(order)}
    end = len(order)
    live = [0] * (end + 1)  # after so many tasks
    for number, task in enumerate(problem.tasks):
        ranges = []
        for one in problem.outputs[number]:
            delay = stages[one.target] - stages[number] + one.distance
            last = place[one.target] + 1
            if delay == 0:
                ranges.append((place[number] + 1, last))
                continue
            # Until the end of its iteration, through whole ones, and into that of its user.
            ranges += [(place[number] + 1, end + 1), *[(0, end + 1)] * (delay - 1), (0, last)]
        for position in {p for first, last in ranges for p in range(first, last)}:
            live[position] += task.registers
    return max(live)
