"""The dependence graph of a loop's body: which operations take time, and what they wait for.

Operations that take none are in no node: numbers, views, constants and broadcasts, which each place
that takes them can have for itself, and loads that the loader does. What goes through them goes
from node to node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from tilec.ir.effects import Effect, effect_of
from tilec.ir.types import is_tile, view_facts
from tilec.layout.wgmma import WARPGROUP_THREADS
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import shape_of
from tilec.schedule.bound import busy
from tilec.schedule.plan import Schedule
from tilec.schedule.problem import Need, Problem, Task
from tilec.schedule.products import Computed
from tilec.schedule.work import thread_cycles
from tilec.target.description import Target

_WORD_BITS = 32
# Longer loops stay as they are written: what is tried takes the square of their length.
_MOST_OPERATIONS = 1000
# A row or column of sums has so many places in a thread.
_LEAST_WORDS = 2


@dataclass(frozen=True)
class Graph:
    """The body of a loop whose copies and products overlap.

    `nodes` are the operations that take time, in the order of `problem.tasks`.
    """

    loop: ir.OpView
    nodes: tuple[ir.OpView, ...]
    problem: Problem


def graph_of(loop: ir.OpView, schedule: Schedule, target: Target) -> Graph | None:
    """The graph of a `scf.for`; None if it is long, or if something in it has an effect, or control
    flow of its own, so that nothing of it may be done in another turn."""
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
        if op.operation in products:
            cycles = busy([products[op.operation]], 0, target.rates).tensor
        elif op.operation in copies:
            continue
        else:
            cycles = round(thread_cycles(op, target.rates))
        if cycles or effect_of(op) is not Effect.NONE:
            nodes.append(op)
            tasks.append(Task(op.operation in products, cycles, _words(op, threads)))
    held = {p.op.operation for p in schedule.products if isinstance(p.a, Computed)}
    needs = tuple(dict.fromkeys(needs_of(body, nodes, held)))
    problem = Problem(
        tuple(tasks),
        needs,
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
    return effect is Effect.READS and access is not None and _is_shared(access.view)


def _is_shared(view: ir.Value) -> bool:
    """Whether nobody writes to it while the kernel runs."""
    return view_facts(view.type).own == "shared"


def _words(op: ir.OpView, threads: int) -> int:
    return sum(_words_of(result, threads) for result in op.results if is_tile(result))


def _words_of(value: ir.Value, threads: int) -> int:
    bits = bit_width(ir.RankedTensorType(value.type).element_type)
    return max(_LEAST_WORDS, prod(shape_of(value)) * bits // (_WORD_BITS * threads))


# ---- edges ---------------------------------------------------------------------------------------


def needs_of(body: ir.Block, nodes: Sequence[ir.OpView], held: set[ir.Operation]) -> Iterator[Need]:
    """What each node takes of others, by their numbers; `held` are products that take their first
    factor from registers."""
    numbers = {op.operation: number for number, op in enumerate(nodes)}
    handed = list(list(body.operations)[-1].operands)
    for target, op in enumerate(nodes):
        is_product = rules()[op.operation.name].multiplied(op) is not None
        for place, value in enumerate(_taken(op)):
            for source, distance in _made_by(value, body, handed, numbers):
                yield Need(
                    source,
                    target,
                    distance,
                    is_held=op.operation in held and place == 0,
                    is_added_to=is_product and place == 2 and _multiplies(nodes[source]),
                )


def _multiplies(op: ir.OpView) -> bool:
    return rules()[op.operation.name].multiplied(op) is not None


def _taken(op: ir.OpView) -> list[ir.Value]:
    """Its operands, and what its regions take from outside."""
    inside = [
        value
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
        for value in inner.operands
    ]
    return [*op.operands, *inside]


def _made_by(
    value: ir.Value, body: ir.Block, handed: Sequence[ir.Value], numbers: dict[ir.Operation, int]
) -> Iterator[tuple[int, int]]:
    """The nodes that a value comes from, and how many turns before."""
    waiting, seen = [(value, 0)], set()
    while waiting:
        one, distance = waiting.pop()
        if (one, distance) in seen:
            continue
        seen.add((one, distance))
        if distance > len(handed):  # carried round and round, and made by nothing
            continue
        if isinstance(one.owner, ir.Block):
            if one.owner == body and one.arg_number > 0:
                waiting.append((handed[one.arg_number - 1], distance + 1))
            continue
        maker = one.owner.operation
        if maker.block != body:
            continue
        if maker in numbers:
            yield numbers[maker], distance
        else:
            waiting += [(operand, distance) for operand in _taken(maker.opview)]
