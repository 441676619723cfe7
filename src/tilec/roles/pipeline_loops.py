"""Software pipelining: which loops around products are pipelined, and in which stages.

A loop is pipelined if that shortens its initiation interval by estimate, and if all of its products
can still be scheduled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.registry import rules
from tilec.schedule.graph import Graph, graph_of
from tilec.schedule.plan import NoSchedule, Reason, Schedule
from tilec.schedule.problem import Solution, interval_of
from tilec.schedule.reason import at
from tilec.schedule.solve import solve
from tilec.target.description import Target
from tilec.transforms.expand_loop import Stages, expand_loop, reorder_loop
from tilec.transforms.sink_row_sums import sink_row_sums

# Of the interval, that pipelining must save: estimates are not more precise.
_LEAST_SAVED = 0.03

Plan = Callable[[ir.OpView], Schedule | NoSchedule]


def pipeline_loops(
    function: ir.OpView, schedule: Schedule, target: Target, plan: Plan, *, is_fast: bool
) -> tuple[ir.OpView, Schedule] | None:
    """A copy of the function with pipelined loops, and its schedule; None if no loop gains.

    `plan` schedules a function; `is_fast` allows another order of summation. Needs a current
    location.
    """
    if schedule.teams > 1 or schedule.split is not None or not _loops_of(schedule):
        return None
    copy = function.operation.clone().opview
    reasons = _sink_row_sums(plan(copy)) if is_fast else []
    before = plan(copy)  # of the operations of the copy
    if isinstance(before, Schedule):
        graphs = [graph_of(loop, before, target) for loop in _loops_of(before)]
        reasons += [why for graph in graphs if graph is not None and (why := _pipeline(graph))]
    if reasons:
        made = plan(copy)
        if isinstance(made, Schedule) and _left_out(copy, made) <= _left_out(function, schedule):
            return copy, replace(made, reasons=(*made.reasons, *reasons))
    copy.operation.erase()
    return None


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


def _pipeline(graph: Graph) -> Reason | None:
    """Rewrites a loop if its interval gets shorter, and says so."""
    count = len(graph.nodes)
    solution, before = solve(graph.problem), interval_of(graph.problem, (0,) * count, range(count))
    if solution.interval > (1 - _LEAST_SAVED) * before:
        return None
    what = "software pipeline" if any(solution.stages) else "another order"
    why = f"an iteration takes {solution.interval} cycles by estimate, {before} as written"
    reason = Reason(f"{what} of the loop{at(graph.loop)}", why)
    _rewrite(graph, solution)
    return reason


def _rewrite(graph: Graph, solution: Solution) -> None:
    order = tuple(graph.nodes[number] for number in solution.order)
    pairs = zip(graph.nodes, solution.stages, strict=True)
    second = frozenset(op.operation for op, stage in pairs if stage)
    if second:
        expand_loop(graph.loop, Stages(order, second))
    else:
        reorder_loop(graph.loop, order)
