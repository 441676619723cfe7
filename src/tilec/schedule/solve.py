"""A list scheduler for software pipelining: the shortest interval among a few stage assignments.

Each subset of the products may move to stage 1, with every task that depends on them, and with
tasks that only feed stage 1 if their inputs take fewer registers than their results. For each
assignment, `list_schedule` orders the tasks of an iteration. The shortest initiation interval that
fits in registers wins; program order wins a tie.

Only integers and program order decide, so that the answer is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tilec.schedule.problem import Problem, Solution, Task, interval_of, registers_of

# Up to so many products, every subset is tried; beyond, only the last ones in program order.
_MOST_PRODUCTS = 5


def solve(problem: Problem) -> Solution:
    """The best solution found; program order in one stage if nothing that fits is better."""
    count = len(problem.tasks)
    best = _solution(problem, (0,) * count, tuple(range(count)))
    for stages in _assignments(problem):
        order = list_schedule(problem, stages)
        if order is None:
            continue
        found = _solution(problem, stages, order)
        if found.registers <= problem.register_limit and found.interval < best.interval:
            best = found
    return best


def _solution(problem: Problem, stages: tuple[int, ...], order: tuple[int, ...]) -> Solution:
    interval = interval_of(problem, stages, order)
    return Solution(stages, order, interval, registers_of(problem, stages, order))


# ---- stages --------------------------------------------------------------------------------------


def _assignments(problem: Problem) -> Iterator[tuple[int, ...]]:
    """A single stage, for another order, then two stages."""
    yield (0,) * len(problem.tasks)
    products = [number for number, task in enumerate(problem.tasks) if task.is_product]
    if len(products) > _MOST_PRODUCTS:
        subsets = [products[first:] for first in range(1, len(products))]
    else:
        counts = range(1, len(products))
        subsets = [list(some) for count in counts for some in combinations(products, count)]
    seen = set()
    for subset in subsets:
        stages = _with_second_stage(problem, subset)
        is_exact = {number for number in products if stages[number]} == set(subset)
        if stages not in seen and is_exact and _is_legal(problem, stages):
            seen.add(stages)
            yield stages


def _with_second_stage(problem: Problem, products: Sequence[int]) -> tuple[int, ...]:
    stages = [0] * len(problem.tasks)
    waiting = list(products)
    while waiting:
        number = waiting.pop()
        if not stages[number]:
            stages[number] = 1
            waiting += [one.target for one in problem.outputs[number]]
    for number in reversed(range(len(problem.tasks))):
        if not stages[number] and _feeds_second_stage(problem, stages, number):
            stages[number] = 1
    return tuple(stages)


def _feeds_second_stage(problem: Problem, stages: Sequence[int], number: int) -> bool:
    """Whether only stage 1 uses a task, and carrying its inputs takes no more registers."""
    task, outputs = problem.tasks[number], problem.outputs[number]
    if task.is_product or not outputs or not all(stages[one.target] for one in outputs):
        return False
    sources = {one.source for one in problem.inputs[number] if not stages[one.source]}
    return sum(problem.tasks[source].registers for source in sources) <= task.registers


def _is_legal(problem: Problem, stages: Sequence[int]) -> bool:
    return all(stages[one.source] <= stages[one.target] for one in problem.dependences)


# ---- the order of an iteration -------------------------------------------------------------------


def list_schedule(problem: Problem, stages: Sequence[int]) -> tuple[int, ...] | None:
    """An order of the tasks, None if there is none.

    Of the ready tasks, the first of: a product; a task that leads to a product; one that waits for
    no product; one that waits for the earliest product. Program order breaks ties.
    """
    predecessors: list[set[int]] = [set() for _ in problem.tasks]
    for one in problem.dependences:
        delay = stages[one.target] - stages[one.source] + one.distance
        if delay == 0 and one.source != one.target:
            predecessors[one.target].add(one.source)
        elif delay > 0 and one.in_registers:
            # The product reads the old value first, so that one set of registers is enough.
            predecessors[one.source].add(one.target)
    successors: list[list[int]] = [[] for _ in problem.tasks]
    for number, earlier in enumerate(predecessors):
        for task in earlier:
            successors[task].append(number)
    leading = _leading(problem, predecessors)
    missing = [len(earlier) for earlier in predecessors]
    ready = {number for number, count in enumerate(missing) if not count}
    order: list[int] = []
    issued: dict[int, int] = {}  # the products of this iteration, numbered from 1
    waited = 0  # the latest product that is known to be done
    while ready:
        waits = {number: _waits_for(problem, stages, issued, number) for number in ready}
        ranks = {
            number: (
                *_rank(problem.tasks[number], waits[number], waited, number in leading),
                number,
            )
            for number in ready
        }
        chosen = min(ready, key=ranks.__getitem__)
        order.append(chosen)
        ready.remove(chosen)
        if problem.tasks[chosen].is_product:
            issued[chosen] = len(issued) + 1
        waited = max(waited, waits[chosen])
        for number in successors[chosen]:
            missing[number] -= 1
            if not missing[number]:
                ready.add(number)
    return tuple(order) if len(order) == len(problem.tasks) else None


def _rank(task: Task, waits: int, waited: int, is_leading: bool) -> tuple[int, int]:
    if task.is_product:
        return 0, 0
    if waits > waited:
        return 3, waits
    return (1 if is_leading else 2), 0


def _waits_for(
    problem: Problem, stages: Sequence[int], issued: Mapping[int, int], number: int
) -> int:
    """The latest product of this iteration that must be done before a task; 0 for none."""
    if problem.tasks[number].is_product:
        return 0
    used = (
        issued.get(one.source, 0)
        for one in problem.inputs[number]
        if stages[number] - stages[one.source] + one.distance == 0
    )
    return max(used, default=0)


def _leading(problem: Problem, predecessors: Sequence[set[int]]) -> set[int]:
    """The tasks on which a product of the same iteration depends."""
    found: set[int] = set()
    waiting = [number for number, task in enumerate(problem.tasks) if task.is_product]
    while waiting:
        new = predecessors[waiting.pop()] - found
        found |= new
        waiting += new
    return found
