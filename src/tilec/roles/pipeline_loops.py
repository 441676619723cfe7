"""The forms that the loops around products may take: pipelined, in which stages; and split.

A loop is pipelined if that shortens its initiation interval by estimate, and if all of its products
can still be scheduled. One with masks is split where they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlir import ir

from tilec.artifact.schedule_report import ScheduledPipeline, ScheduledTask
from tilec.ir.walk import operations
from tilec.ops.notes import place_of
from tilec.ops.registry import rules
from tilec.schedule.graph import Graph, graph_of
from tilec.schedule.plan import NoSchedule, Reason, Schedule
from tilec.schedule.problem import Event, Solution, interval_of, timeline_of
from tilec.schedule.reason import at
from tilec.schedule.solve import solve
from tilec.target.description import Target
from tilec.transforms.expand_loop import Stages, expand_loop, reorder_loop
from tilec.transforms.sink_row_sums import sink_row_sums
from tilec.transforms.split_loops import masked_operations, split_loops

# Of the interval, that pipelining must save: estimates are not more precise.
_LEAST_SAVED = 0.03

Plan = Callable[[ir.OpView], Schedule | NoSchedule]


@dataclass(frozen=True)
class Form:
    """A function and its schedule; `reasons` say how its loops differ from the source."""

    function: ir.OpView
    schedule: Schedule
    reasons: tuple[Reason, ...] = ()
    pipelines: tuple[ScheduledPipeline, ...] = ()


def pipeline_loops(form: Form, target: Target, plan: Plan, *, is_fast: bool) -> Form | None:
    """A copy with pipelined loops; None if no loop gains.

    `plan` schedules a function; `is_fast` allows another order of summation. Needs a current
    location.
    """
    if not _loops_of(form.schedule):
        return None
    copy = form.function.operation.clone().opview
    reasons = _sink_row_sums(plan(copy)) if is_fast else []
    before = plan(copy)  # of the operations of the copy
    pipelines: list[ScheduledPipeline] = []
    if isinstance(before, Schedule):
        assert target.rates is not None, "it has roles"
        # The steady iterations of a loop that is split later have no masks.
        spared = masked_operations(copy, target.rates)
        graphs = [graph_of(loop, before, target, spared) for loop in _loops_of(before)]
        pipelines = [p for graph in graphs if graph is not None and (p := _pipeline(graph))]
        reasons += map(_why, pipelines)
    return _planned(copy, reasons, replace(form, pipelines=tuple(pipelines)), plan)


def split_masked_loops(form: Form, target: Target, plan: Plan) -> Form | None:
    """A copy with loops split where masks change; None if no loop gains.

    The arguments are those of `pipeline_loops`. Needs a current location.
    """
    assert target.rates is not None, "it has roles"
    copy = form.function.operation.clone().opview
    return _planned(copy, split_loops(copy, target.rates), form, plan)


def changed_forms(form: Form, target: Target, plan: Plan, *, is_fast: bool) -> Iterator[Form]:
    """Copies of a function with other loops, the best one first.

    The arguments are those of `pipeline_loops`. Needs a current location.
    """
    if form.schedule.teams > 1 or form.schedule.split is not None:
        return
    pipelined = pipeline_loops(form, target, plan, is_fast=is_fast)
    # Pipelined first: what is in flight where one part of a split loop ends goes on in the next.
    for one in (pipelined, form):
        if one is not None and (split := split_masked_loops(one, target, plan)) is not None:
            yield split
        if one is not None and one is not form:
            yield one


def _planned(copy: ir.OpView, reasons: Sequence[Reason], before: Form, plan: Plan) -> Form | None:
    """A changed copy as a form; None, and the copy erased, unless `reasons` say that something
    changed, and as many products are scheduled as before."""
    schedule = plan(copy) if reasons else NoSchedule()
    if isinstance(schedule, NoSchedule) or (
        _left_out(copy, schedule) > _left_out(before.function, before.schedule)
    ):
        copy.operation.erase()
        return None
    return Form(copy, schedule, (*before.reasons, *reasons), before.pipelines)


def _sink_row_sums(schedule: Schedule | NoSchedule) -> list[Reason]:
    loops = _loops_of(schedule) if isinstance(schedule, Schedule) else []
    made = [loop for one in loops if (loop := sink_row_sums(one)) is not None]
    why = "each lane sums its own columns: `fast_math` allows another order of summation"
    return [Reason(f"row sums are exchanged after the loop{at(loop)}", why) for loop in made]


def _loops_of(schedule: Schedule) -> list[ir.OpView]:
    """The loops with several products directly in their body."""
    blocks = [product.op.operation.block for product in schedule.products]
    several = dict.fromkeys(block for block in blocks if blocks.count(block) > 1)
    return [block.owner.opview for block in several if block.owner.name == "scf.for"]


def _left_out(function: ir.OpView, schedule: Schedule) -> int:
    """How many products are not scheduled."""
    every = [rules()[op.operation.name].multiplied(op) for op in operations(function)]
    return len(every) - every.count(None) - len(schedule.products)


def _pipeline(graph: Graph) -> ScheduledPipeline | None:
    """Rewrites a loop if its interval gets shorter, and describes it then."""
    count = len(graph.nodes)
    solution, before = solve(graph.problem), interval_of(graph.problem, (0,) * count, range(count))
    if solution.interval > (1 - _LEAST_SAVED) * before:
        return None
    described = _described(graph, solution, before)
    _rewrite(graph, solution)
    return described


def _described(graph: Graph, solution: Solution, before: int) -> ScheduledPipeline:
    problem, place = graph.problem, place_of(graph.loop.location)
    events = timeline_of(problem, solution.stages, solution.order)
    return ScheduledPipeline(
        Path(place.file).name,
        place.line,
        place.column,
        solution.interval,
        before,
        problem.tensor_cycles,
        problem.thread_cycles,
        solution.registers,
        tuple(_task(graph, solution, event) for event in events),
    )


def _task(graph: Graph, solution: Solution, event: Event) -> ScheduledTask:
    op = graph.nodes[event.task]
    place = place_of(op.location)
    return ScheduledTask(
        op.operation.name,
        Path(place.file).name,
        place.line,
        place.column,
        "tensor cores" if graph.problem.tasks[event.task].is_product else "threads",
        solution.stages[event.task],
        event.start,
        event.end,
    )


def _why(one: ScheduledPipeline) -> Reason:
    what = "software pipeline" if any(task.stage for task in one.tasks) else "another order"
    place = f" at {one.file}:{one.line}:{one.column}" if one.file else ""
    took = f"{one.interval} cycles by estimate, {one.interval_as_written} as written"
    return Reason(f"{what} of the loop{place}", f"an iteration takes {took}")


def _rewrite(graph: Graph, solution: Solution) -> None:
    order = tuple(graph.nodes[number] for number in solution.order)
    pairs = zip(graph.nodes, solution.stages, strict=True)
    second = frozenset(op.operation for op, stage in pairs if stage)
    if second:
        expand_loop(graph.loop, Stages(order, second))
    else:
        reorder_loop(graph.loop, order)
