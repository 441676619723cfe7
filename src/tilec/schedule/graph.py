"""The dependence graph of a loop body: the operations that take time, and their dependences.

Operations that take no time are no nodes: scalars, views, constants, broadcasts, and loads that
the producer warp copies. Each user may recompute them. A dependence leads through them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from tilec.ir.effects import Effect, effect_of
from tilec.ir.types import is_tile, view_facts
from tilec.ir.walk import operands_within
from tilec.layout.wgmma import ROWS_OF_THREAD, WARPGROUP_THREADS
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import shape_of
from tilec.schedule.bound import busy
from tilec.schedule.plan import Schedule
from tilec.schedule.problem import Dependence, Problem, Task
from tilec.schedule.products import Computed
from tilec.schedule.work import thread_cycles
from tilec.target.description import Target

_REGISTER_BITS = 32
_A, _C = 0, 2  # operands of a product
# Longer loops keep program order: the search is quadratic.
_MOST_OPERATIONS = 1000


@dataclass(frozen=True)
class Graph:
    """A loop body as a problem; `nodes` are the operations of `problem.tasks`."""

    loop: ir.OpView
    nodes: tuple[ir.OpView, ...]
    problem: Problem


def graph_of(
    loop: ir.OpView, schedule: Schedule, target: Target, spared: Collection[ir.OpView] = ()
) -> Graph | None:
    """The graph of a `scf.for`; None if the body is too long, or if it has side effects or control
    flow, so that none of it may move to another iteration.

    `spared` takes no time in a steady iteration: masks that are known there.
    """
    assert target.rates is not None and target.roles is not None, "it has roles"
    [body] = loop.regions[0].blocks
    *ops, _ = body.operations
    if len(ops) > _MOST_OPERATIONS or not all(_may_move(op) for op in ops):
        return None
    products = {one.op.operation: one for one in schedule.products}
    copies = {
        one.load.operation
        for channel in schedule.channels
        for fill in channel.fills
        for one in fill
    }
    threads = WARPGROUP_THREADS * schedule.team_groups
    nodes, tasks = [], []
    for op in ops:
        if op.operation in copies:
            continue
        is_product = op.operation in products
        if is_product:
            cycles = busy([products[op.operation]], 0, target.rates).tensor
        else:
            cycles = round(thread_cycles(op, target.rates))
        if cycles or effect_of(op) is not Effect.NONE:
            nodes.append(op)
            taken = 0 if op in spared else cycles
            tasks.append(Task(is_product, taken, _registers(op, threads)))
    from_registers = {p.op.operation for p in schedule.products if isinstance(p.a, Computed)}
    problem = Problem(
        tuple(tasks),
        tuple(dict.fromkeys(dependences_of(body, nodes, from_registers))),
        schedule.team_groups,
        target.roles.held_registers,
        target.rates.issue_cycles,
    )
    return Graph(loop, tuple(nodes), problem)


def _may_move(op: ir.OpView) -> bool:
    effect = effect_of(op)
    if effect is Effect.NONE:
        return True
    access = rules()[op.operation.name].access(op)
    # What nobody writes while the kernel runs may be read in any iteration.
    is_constant = access is not None and view_facts(access.view.type).own == "shared"
    return effect is Effect.READS and is_constant


def _registers(op: ir.OpView, threads: int) -> int:
    return sum(_registers_of(result, threads) for result in op.results if is_tile(result))


def _registers_of(value: ir.Value, threads: int) -> int:
    bits = bit_width(ir.RankedTensorType(value.type).element_type)
    return max(ROWS_OF_THREAD, prod(shape_of(value)) * bits // (_REGISTER_BITS * threads))


# ---- edges ---------------------------------------------------------------------------------------


def dependences_of(
    body: ir.Block, nodes: Sequence[ir.OpView], from_registers: set[ir.Operation]
) -> Iterator[Dependence]:
    """The dependences between nodes, by number; some products read operand A `from_registers`."""
    numbers = {op.operation: number for number, op in enumerate(nodes)}
    yielded = list(list(body.operations)[-1].operands)
    for target, op in enumerate(nodes):
        for place, value in enumerate(operands_within(op)):
            for source, distance in _sources(value, body, yielded, numbers):
                yield Dependence(
                    source,
                    target,
                    distance,
                    in_registers=op.operation in from_registers and place == _A,
                    is_accumulator=place == _C and _is_product(op) and _is_product(nodes[source]),
                )


def _is_product(op: ir.OpView) -> bool:
    return rules()[op.operation.name].multiplied(op) is not None


def _sources(
    value: ir.Value, body: ir.Block, yielded: Sequence[ir.Value], numbers: dict[ir.Operation, int]
) -> Iterator[tuple[int, int]]:
    """The nodes that a value is computed from, and how many iterations before."""
    waiting, seen = [(value, 0)], set()
    while waiting:
        one, distance = waiting.pop()
        # A value that the loop only passes from variable to variable has no source in it.
        if (one, distance) in seen or distance > len(yielded):
            continue
        seen.add((one, distance))
        if isinstance(one.owner, ir.Block):
            if one.owner == body and one.arg_number > 0:
                waiting.append((yielded[one.arg_number - 1], distance + 1))
            continue
        maker = one.owner.operation
        if maker.block != body:
            continue
        if maker in numbers:
            yield numbers[maker], distance
        else:
            waiting += [(operand, distance) for operand in operands_within(maker.opview)]
