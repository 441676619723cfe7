"""Orders and stages of the tasks of a loop: intervals by hand, and what holds of every solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.schedule.problem import Dependence, Problem, Task, interval_of, registers_of, timeline_of
from tilec.schedule.solve import list_schedule, solve

# Scores, a factor for sums and weights made of them, and rounded; sums, which are scaled; their
# product with values.
SCORES, FACTOR, WEIGHTS, ROUNDED, SCALED, VALUES = range(6)
SOFTMAX = Problem(
    tasks=(
        Task(True, 1024, 64),
        Task(False, 50, 2),
        Task(False, 1450, 64),
        Task(False, 100, 32),
        Task(False, 128, 64),
        Task(True, 1024, 64),
    ),
    dependences=(
        Dependence(SCORES, WEIGHTS, 0),
        Dependence(WEIGHTS, ROUNDED, 0),
        Dependence(SCORES, FACTOR, 0),
        Dependence(FACTOR, SCALED, 0),
        Dependence(VALUES, SCALED, 1),
        Dependence(ROUNDED, VALUES, 0, in_registers=True),
        Dependence(SCALED, VALUES, 0, is_accumulator=True),
    ),
    groups=2,
    register_limit=192,
    issue_cycles=32,
)
AS_WRITTEN = (0, 0, 0, 0, 0, 0)


def test_the_interval_of_a_softmax_as_written() -> None:
    # A group's product takes 512; its threads wait for the first one in the turn, and for the other
    # one before the next turn begins the first.
    assert interval_of(SOFTMAX, AS_WRITTEN, range(6)) == 512 + 1500 + 100 + 128 + 512


def test_a_softmax_overlaps_with_the_product_of_the_turn_before() -> None:
    found = solve(SOFTMAX)
    assert found.stages == (0, 0, 0, 0, 1, 1)
    assert found.order == (SCORES, SCALED, VALUES, FACTOR, WEIGHTS, ROUNDED)
    # The second product is begun when the first is over; then weights are made beside it.
    assert found.interval == 512 + 32 + 1500 + 100
    # Sums, scores, and weights of the turn before while both products are under way, with a factor.
    assert found.registers == 64 + 64 + 32 + 2


def test_the_timeline_of_a_pipelined_softmax() -> None:
    found = solve(SOFTMAX)
    events = timeline_of(SOFTMAX, found.stages, found.order)
    # Threads go on 32 cycles after they issued scores. Values are issued when the scores are done,
    # and take 512 beside the weights, which therefore start 32 after the scores' end.
    assert [(one.task, one.start, one.end) for one in events] == [
        (SCORES, 0, 512),
        (SCALED, 32, 160),
        (VALUES, 512, 1024),
        (FACTOR, 544, 594),
        (WEIGHTS, 594, 2044),
        (ROUNDED, 2044, 2144),
    ]


def test_nothing_is_done_later_than_registers_allow() -> None:
    tight = replace(SOFTMAX, register_limit=161)
    assert solve(tight).stages == AS_WRITTEN


def test_products_that_only_add_up_are_left_as_they_are() -> None:
    sums = Problem(
        (Task(True, 1024, 64), Task(True, 1024, 64)),
        (Dependence(0, 0, 1, is_accumulator=True), Dependence(1, 1, 1, is_accumulator=True)),
        groups=2, register_limit=192, issue_cycles=32,
    )  # fmt: skip
    found = solve(sums)
    assert (found.stages, found.order, found.interval) == ((0, 0), (0, 1), 2048)


def test_a_product_is_not_begun_behind_what_does_not_need_it() -> None:
    tasks = (Task(False, 300, 2), Task(True, 400, 64), Task(False, 100, 64))
    problem = Problem(tasks, (Dependence(1, 2, 0),), groups=1, register_limit=192, issue_cycles=32)
    # As written: 300, then 400 of waiting, 100. Else the 300 are done beside the product.
    assert interval_of(problem, (0, 0, 0), (0, 1, 2)) == 800
    assert solve(problem).order == (1, 0, 2)
    assert solve(problem).interval == 500


def test_what_makes_registers_anew_waits_for_the_product_that_reads_them() -> None:
    tasks = (Task(False, 100, 32), Task(True, 400, 64))
    dependences = (Dependence(0, 1, 0, in_registers=True), Dependence(1, 1, 1, is_accumulator=True))
    problem = Problem(tasks, dependences, groups=1, register_limit=192, issue_cycles=32)
    assert interval_of(problem, (0, 0), (0, 1)) == 500


@pytest.mark.parametrize("late", [AS_WRITTEN, (0, 0, 0, 0, 1, 1)])
def test_words_are_those_between_tasks(late: tuple[int, ...]) -> None:
    """By the definition: what was made before a place, and is taken behind it."""
    order = list_schedule(SOFTMAX, late)
    assert order is not None
    turns = [(task, turn - late[task]) for turn in range(6) for task in order]
    made = {one: place for place, one in enumerate(turns)}
    most = 0
    for place in range(3 * len(order), 4 * len(order)):
        held = {
            (need.source, iteration - need.distance)
            for (target, iteration), at in made.items()
            for need in SOFTMAX.dependences
            if need.target == target and at > place
            and made.get((need.source, iteration - need.distance), 99) <= place
        }  # fmt: skip
        most = max(most, sum(SOFTMAX.tasks[source].registers for source, _ in held))
    assert registers_of(SOFTMAX, late, order) == most


# ---- all problems --------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    count = draw(st.integers(1, 5))
    tasks = tuple(
        Task(draw(st.booleans()), draw(st.integers(1, 50)), draw(st.integers(1, 8)))
        for _ in range(count)
    )
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    dependences = []
    for first, second in draw(st.lists(pairs, max_size=7, unique=True)):
        # In its turn a task takes what stands before it.
        distance = 0 if first < second else draw(st.integers(1, 2))
        held = tasks[second].is_product and not tasks[first].is_product and draw(st.booleans())
        dependences.append(Dependence(first, second, distance, in_registers=held))
    return Problem(tasks, tuple(dependences), draw(st.integers(1, 2)), draw(st.integers(4, 40)), 3)


def _may_be_done_so(problem: Problem, stages: Sequence[int], order: Sequence[int]) -> bool:
    """By the definition: whatever a task takes was made before, in some turn."""
    over: set[tuple[int, int]] = set()
    for turn in range(8):
        for task in order:
            iteration = turn - stages[task]
            taken = [n for n in problem.dependences if n.target == task and iteration >= n.distance]
            if iteration >= 0 and any(
                (n.source, iteration - n.distance) not in over for n in taken
            ):
                return False
            over.add((task, iteration))
    return True


@settings(deadline=None, max_examples=150)
@given(problems())
def test_a_solution_can_be_done_and_is_no_longer_than_what_was_written(problem: Problem) -> None:
    found, count = solve(problem), len(problem.tasks)
    assert sorted(found.order) == list(range(count))
    assert _may_be_done_so(problem, found.stages, found.order)
    written = interval_of(problem, (0,) * count, range(count))
    assert problem.resource_bound <= found.interval <= written
    if (found.stages, found.order) != ((0,) * count, tuple(range(count))):
        assert found.registers <= problem.register_limit and found.interval < written


@settings(deadline=None, max_examples=25)
@given(problems())
def test_no_interval_is_below_the_best_of_all(problem: Problem) -> None:
    count = len(problem.tasks)
    best = min(
        interval_of(problem, stages, order)
        for stages in product((0, 1), repeat=count)
        for order in permutations(range(count))
        if _may_be_done_so(problem, stages, order)
    )
    assert best <= solve(problem).interval
