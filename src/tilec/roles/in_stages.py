"""Loops whose products overlap with what threads do, turn by turn: which are made so, and when.

A loop is made into stages where its turns get shorter by that, as far as is estimated, and where
all of its products can be scheduled then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mlir import ir

from tilec.ir.walk import operations
from tilec.ops.notes import place_of
from tilec.ops.registry import rules
from tilec.schedule.graph import Graph, graph_of
from tilec.schedule.plan import NoSchedule, Reason, Schedule
from tilec.schedule.problem import Placed, interval_of
from tilec.schedule.solve import solve
from tilec.target.description import Target
from tilec.transforms.expand_loop import Stages, expand_loop, reorder_loop
from tilec.transforms.sum_late import sum_late

# Of the interval, which must be saved: estimates are no better than that.
_LEAST_SAVED = 0.03

Plan = Callable[[ir.OpView], Schedule | NoSchedule]


def in_stages(
    function: ir.OpView, schedule: Schedule, target: Target, plan: Plan, *, is_fast: bool
) -> tuple[ir.OpView, Schedule] | None:
    """A copy of the function with loops in stages, and its schedule; None if none gains by that.

    `plan` schedules a function; if `is_fast`, sums may be rounded in another order. Needs a current
    location.
    """
    if schedule.teams > 1 or schedule.split is not None or not _loops_of(schedule):
        return None
    copy = function.operation.clone().opview
    reasons = _summed_late(plan(copy)) if is_fast else []
    before = plan(copy)  # it names the operations of the copy
    if isinstance(before, Schedule):
        graphs = [graph_of(loop, before, target) for loop in _loops_of(before)]
        reasons += [why for graph in graphs if graph is not None and (why := _made_shorter(graph))]
    if reasons:
        made = plan(copy)
        if isinstance(made, Schedule) and _left_out(copy, made) <= _left_out(function, schedule):
            return copy, replace(made, reasons=(*made.reasons, *reasons))
    copy.operation.erase()
    return None


def _summed_late(schedule: Schedule | NoSchedule) -> list[Reason]:
    loops = _loops_of(schedule) if isinstance(schedule, Schedule) else []
    made = [loop for one in loops if (loop := sum_late(one)) is not None]
    why = "each thread adds up its own, and rounds in another order than written (`fast_math`)"
    return [Reason(f"sums of rows are exchanged behind the loop{_at(loop)}", why) for loop in made]


def _made_shorter(graph: Graph) -> Reason | None:
    """Makes a loop what is estimated to be shorter, if there is such a form, and says why."""
    placed, before = solve(graph.problem), _interval_as_written(graph)
    if placed.interval > (1 - _LEAST_SAVED) * before:
        return None
    reason = _reason(graph, placed, before)
    _carry_out(graph, placed)
    return reason


def _loops_of(schedule: Schedule) -> list[ir.OpView]:
    """The innermost loops in which several products begin."""
    blocks = [product.op.operation.block for product in schedule.products]
    several = dict.fromkeys(block for block in blocks if blocks.count(block) > 1)
    return [block.owner.opview for block in several if block.owner.name == "scf.for"]


def _left_out(function: ir.OpView, schedule: Schedule) -> int:
    """How many products are not scheduled."""
    every = [rules()[op.operation.name].multiplied(op) for op in operations(function)]
    return len(every) - every.count(None) - len(schedule.products)


def _interval_as_written(graph: Graph) -> int:
    count = len(graph.nodes)
    return interval_of(graph.problem, (0,) * count, range(count))


def _carry_out(graph: Graph, placed: Placed) -> None:
    order = tuple(graph.nodes[number] for number in placed.order)
    staged = zip(graph.nodes, placed.stages, strict=True)
    late = frozenset(op.operation for op, stage in staged if stage)
    if late:
        expand_loop(graph.loop, Stages(order, late))
    else:
        reorder_loop(graph.loop, order)


def _reason(graph: Graph, placed: Placed, before: int) -> Reason:
    what = "stages" if any(placed.stages) else "another order"
    why = f"a turn takes {placed.interval} cycles by estimate, {before} as written"
    return Reason(f"{what} of the loop{_at(graph.loop)}", why)


def _at(loop: ir.OpView) -> str:
    place = place_of(loop.location)
    return f" at {Path(place.file).name}:{place.line}:{place.column}" if place.file else ""
