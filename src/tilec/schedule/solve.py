"""The best order and stages that are found for the tasks of a loop.

Products are what a turn is divided at: some of them are done a turn later, with all that follows
from them, and with what only they take if that is less to keep than what it gives. For each way to
do so the tasks of a turn are listed, one after the other (`listed`); the shortest interval wins,
the fewest stages and the order as written before others.

Everything is decided by numbers and by the order as written, so that the answer is the same on
every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tilec.schedule.problem import Placed, Problem, Task, interval_of, words_of

# Products of a loop of which every choice is tried; of more, those from one on.
_FEW = 5


def solve(problem: Problem) -> Placed:
    """The best of what is tried; as written, if nothing that fits is better."""
    tasks = range(len(problem.tasks))
    best = _placed(problem, (0,) * len(problem.tasks), tuple(tasks))
    for stages in _stages(problem):
        order = listed(problem, stages)
        if order is None:
            continue
        found = _placed(problem, stages, order)
        if found.words <= problem.most_words and found.interval < best.interval:
            best = found
    return best


def _placed(problem: Problem, stages: tuple[int, ...], order: tuple[int, ...]) -> Placed:
    interval = interval_of(problem, stages, order)
    return Placed(stages, order, interval, words_of(problem, stages, order))


# ---- stages --------------------------------------------------------------------------------------


def _stages(problem: Problem) -> Iterator[tuple[int, ...]]:
    """In one stage, in another order than written; then with some products a turn later."""
    yield (0,) * len(problem.tasks)
    products = [number for number, task in enumerate(problem.tasks) if task.is_product]
    if len(products) > _FEW:
        chosen = [products[first:] for first in range(1, len(products))]
    else:
        counts = range(1, len(products))
        chosen = [list(some) for count in counts for some in combinations(products, count)]
    seen = set()
    for late in chosen:
        stages = _with_late(problem, late)
        is_of_products = {number for number in products if stages[number]} == set(late)
        if stages not in seen and is_of_products and _may_be(problem, stages):
            seen.add(stages)
            yield stages


def _with_late(problem: Problem, late: Sequence[int]) -> tuple[int, ...]:
    stages = [0] * len(problem.tasks)
    waiting = list(late)
    while waiting:
        number = waiting.pop()
        if stages[number]:
            continue
        stages[number] = 1
        waiting += [need.target for need in problem.given[number] if need.distance == 0]
        # What takes the sums of the last turn comes with them.
        waiting += [need.target for need in problem.given[number] if need.distance == 1]
    for number in reversed(range(len(problem.tasks))):
        if not stages[number] and _is_for_late_ones(problem, stages, number):
            stages[number] = 1
    return tuple(stages)


def _is_for_late_ones(problem: Problem, stages: Sequence[int], number: int) -> bool:
    """Whether only tasks of stage 1 take what a task gives, and what it takes itself is less to
    keep for a turn."""
    task, given = problem.tasks[number], problem.given[number]
    if task.is_product or not given or not all(stages[need.target] for need in given):
        return False
    taken = {need.source for need in problem.needed[number] if not stages[need.source]}
    return sum(problem.tasks[source].words for source in taken) <= task.words


def _may_be(problem: Problem, stages: Sequence[int]) -> bool:
    return all(stages[need.source] <= stages[need.target] for need in problem.needs)


# ---- the order of a turn -------------------------------------------------------------------------


def listed(problem: Problem, stages: Sequence[int]) -> tuple[int, ...] | None:
    """Tasks one after the other: a product as soon as there is one that may begin; else what does
    not wait for a product, what leads to one first; else as written. None if there is no order."""
    before: list[set[int]] = [set() for _ in problem.tasks]
    for need in problem.needs:
        delay = stages[need.target] - stages[need.source] + need.distance
        if delay == 0 and need.source != need.target:
            before[need.target].add(need.source)
        elif delay > 0 and need.is_held:
            before[need.source].add(need.target)  # else a turn would have it twice
    leading = _leading(problem, before)
    after: list[list[int]] = [[] for _ in problem.tasks]
    for number, earlier in enumerate(before):
        for task in earlier:
            after[task].append(number)
    open_ = [len(earlier) for earlier in before]
    ready = {number for number, count in enumerate(open_) if not count}
    order: list[int] = []
    begun: dict[int, int] = {}  # products of the turn: the first has number 1
    over = 0  # so many of them are waited for
    while ready:
        waits = {number: _waited(problem, stages, begun, number) for number in ready}
        ranks = {
            number: _rank(problem.tasks[number], waits[number], over, number in leading)
            for number in ready
        }
        chosen = min(ready, key=lambda number: (ranks[number], number))
        order.append(chosen)
        ready.remove(chosen)
        if problem.tasks[chosen].is_product:
            begun[chosen] = len(begun) + 1
        over = max(over, waits[chosen])
        for number in after[chosen]:
            open_[number] -= 1
            if not open_[number]:
                ready.add(number)
    return tuple(order) if len(order) == len(problem.tasks) else None


def _rank(task: Task, waits: int, over: int, is_leading: bool) -> tuple[int, int]:
    """The least is taken first; `waits` is the last product that it waits for, `over` the last one
    that has been waited for."""
    if task.is_product:
        return 0, 0
    if waits > over:
        return 3, waits
    return (1 if is_leading else 2), 0


def _waited(problem: Problem, stages: Sequence[int], begun: Mapping[int, int], number: int) -> int:
    """The last product of the turn that is over where a task is done; 0 for none."""
    if problem.tasks[number].is_product:
        return 0
    return max(
        (
            begun.get(need.source, 0)
            for need in problem.needed[number]
            if stages[number] - stages[need.source] + need.distance == 0
        ),
        default=0,
    )


def _leading(problem: Problem, before: Sequence[set[int]]) -> set[int]:
    """What products of the same turn come behind."""
    found: set[int] = set()
    waiting = [number for number, task in enumerate(problem.tasks) if task.is_product]
    while waiting:
        new = before[waiting.pop()] - found
        found |= new
        waiting += new
    return found
