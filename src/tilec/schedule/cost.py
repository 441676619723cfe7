"""What a program takes, by its operations on tiles: the data of which launchers choose members.

It is a model, and for a choice among instances of one kernel only: what they have in common may be
wrong. A unit of a multiprocessor is busy for what its rate says (`target/`). In a loop whose copies
and products overlap, a turn takes as long as its busiest unit. Elsewhere one thing comes after the
other: loads wait for memory, once for all that stand together, and reductions for other threads.

How good its choices are on an H100 is in docs/tuning.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from mlir import ir

from tilec.artifact.expression import Expression
from tilec.artifact.family import Cost, Part
from tilec.ops.rules import shape_of
from tilec.schedule.plan import NoSchedule, Schedule
from tilec.schedule.split import Split
from tilec.schedule.stages import Stages
from tilec.schedule.turn_cost import Turn
from tilec.schedule.walk import Launch, Walk, element_bytes, quotient
from tilec.target.description import Rates, Target

_WARP, _WORD = 32, 4


@dataclass(frozen=True)
class Work:
    """What programs of a variant do, before there is machine code; without parts, nobody knows.

    `at_once` programs are on a multiprocessor at one time; None: as many as there is room for.
    `spilling` is the part in which registers run out, `threads` do a program: 0 for all of a block.
    All programs together read `read_bytes` from memory, and wait for `first_cycles` for what nobody
    read before, if that is known.
    """

    parts: tuple[Part, ...] = ()
    at_once: int | None = None
    blocks_per_program: int = 1
    spilling: int = -1
    threads: int = 0
    read_bytes: Expression = 0
    first_cycles: Expression = 0
    cluster_blocks: int = 1


def work_of(
    function: ir.OpView,
    schedule: Schedule | NoSchedule,
    target: Target,
    launch: Launch,
    warps: int,
    stages: Stages | None = None,
) -> Work:
    """What programs of `warps` warps do; nothing is known where the target has no rates.

    Assumes:  the function is as the schedule was planned for, whose operations are still there
    """
    if target.rates is None:
        return Work()
    walk = Walk(schedule, target.rates, launch, stages)
    [block] = function.regions[0].blocks
    walk.into(block, walk.turns[0])
    if not isinstance(schedule, Schedule):
        return Work(walk.parts(warps))
    if not schedule.is_persistent:
        walk.turns[0].waits += target.rates.load_latency  # until the first copies are there
    if schedule.split is not None:
        _add_up(walk.turns[0], schedule.split, target.rates)
    first, *others = walk.parts(warps)
    # Products that are under way leave threads of a loop nothing to do, and nothing to spill.
    spilling = -1 if any(turn.threads for turn in walk.turns[1:]) else 0
    threads = warps * _WARP
    memory = walk.read_bytes(), walk.first_cycles()
    work = Work((first, *others), None, 1, spilling, threads, *memory)
    if schedule.cluster is not None:
        work = replace(work, cluster_blocks=schedule.cluster.blocks)
    if schedule.is_persistent:
        # Teams do a program each: what one does alone hides under what the other one does.
        return replace(work, at_once=schedule.teams)
    blocks = schedule.split_blocks
    parts = (_of_one_block(first, blocks, target.rates), *others)
    return replace(work, parts=parts, blocks_per_program=blocks)


def cost_of(work: Work, blocks: int, threads: int, spilled_bytes: int, target: Target) -> Cost:
    """The cost of a variant, where a multiprocessor has room for so many blocks of `threads`.

    Units:    `spilled_bytes` are those of a thread, in the part that says so
    """
    rates = target.rates
    if rates is None or not work.parts:
        return Cost()
    threads = work.threads or threads
    # They go the way to shared memory, and are waited for, beside the other warps of a scheduler.
    moving = spilled_bytes * threads // rates.shared_bytes
    warps = max(1, threads // _WARP // rates.schedulers)
    waiting = spilled_bytes // _WORD * rates.spill_latency // warps
    parts = list(work.parts)
    spills = parts[work.spilling]
    parts[work.spilling] = replace(
        spills,
        shared_cycles=spills.shared_cycles + moving,
        alone_cycles=spills.alone_cycles + moving + waiting,
    )
    at_once = max(1, blocks) if work.at_once is None else work.at_once
    floor = quotient(work.read_bytes, rates.memory_bytes)
    return Cost(
        at_once,
        rates.load_latency,
        tuple(parts),
        work.blocks_per_program,
        floor,
        work.first_cycles,
        work.cluster_blocks,
    )


def _add_up(turn: Turn, split: Split, rates: Rates) -> None:
    """What blocks take to begin together, and to add up sums once they have theirs."""
    sums = sum(prod(shape_of(one)) * element_bytes(one.type) for one in split.loop.results)
    moved = sums if split.blocks == 2 else 2 * sums
    turn.waits += rates.meeting(split.blocks) + round(moved / rates.l2_bytes)


def _of_one_block(part: Part, blocks: int, rates: Rates) -> Part:
    """What is done once a program, and by one of its blocks. Of what they take to begin together no
    more than half is hidden by other blocks."""
    if blocks == 1:
        return part
    waits = rates.meeting(blocks) // 2
    tensor, shared, memory, threads = (cycles // blocks + waits for cycles in part.busy_cycles)
    return Part(part.turns, tensor, shared, memory, threads, part.alone_cycles)
