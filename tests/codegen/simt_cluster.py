"""Blocks that run at one time and reach into each other's shared memory.

What is found beside what is in one block: a block that is used before it has made its barriers, or
when it may have gone.

Source:   PTX ISA, "barrier.cluster", "mapa", "fence.mbarrier_init", "cp.async.bulk.tensor"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
from mlir import ir
from simt_barriers import MBarrier, Meeting
from simt_memory import SHARED_BASE, SimtError
from simt_strands import Chance, Clock, Strands, Timing, join

Array = Any

# Units: bytes; between the shared memory of a block and that of the next, as addresses have it.
BLOCK_APART = 1 << 24


class Cluster:
    """Machines of blocks, by their rank."""

    def __init__(self, timing: Timing) -> None:
        self.machines: list[Any] = []
        self.turns: dict[int, int] = {}  # of the meeting that strands have come to, by number
        self.chance = Chance(timing)
        self.strands = Strands(self.chance, self.progress)
        self.meeting = Meeting(0, 0)
        self.numbers = count(1)
        self.visible: set[int] = set()  # barriers, by identity
        self.have_met: set[int] = set()  # strands that have waited for the others, by number
        self.arrived: list[tuple[Any, int, int]] = []  # at a machine: a strand, and its time
        self.left: dict[int, Clock] = {}  # by rank: what a block had seen at its end

    def join(self, machine: Any) -> int:
        self.machines.append(machine)
        return len(self.machines) - 1

    def next_copy(self) -> int:
        return -next(self.numbers)

    def progress(self) -> bool:
        """Finish a copy that is under way."""
        able = [machine for machine in self.machines if machine.copies]
        return bool(able) and able[self.chance.one_of(len(able), 0)].finish_one()

    def chosen(self, mask: int) -> Iterator[Any]:
        """The machines whose bit is set."""
        if not 0 < mask < 1 << len(self.machines):
            raise SimtError(f"a copy to blocks {mask:b} of {len(self.machines)}")
        for rank, machine in enumerate(self.machines):
            if mask >> rank & 1:
                yield machine

    def expect_here(self, machine: Any, barrier: MBarrier, by: int) -> None:
        """That block `by` may use a barrier of another one now."""
        if not self.may_see(self.machines[by], barrier):
            raise SimtError(f"{barrier} of another block is used, which may not have made it")
        if machine.rank in self.left:
            raise SimtError(f"{barrier} is of a block that has gone")

    def may_see(self, machine: Any, barrier: MBarrier) -> bool:
        """Whether these threads of a block waited until all blocks had made their barriers."""
        return id(barrier) in self.visible and self.has_met(machine)

    def has_met(self, machine: Any) -> bool:
        return not self.have_met.isdisjoint((self.strands.current.number, machine.strand))

    def arrive(self, by: Any, address: int) -> None:
        machine = self.machines[(address - SHARED_BASE) // BLOCK_APART]
        barrier = machine.barrier(address, by=by.rank)
        clock = self.strands.current.released()
        if machine is not by:
            number = self.strands.current.number
            self.arrived.append((machine, number, clock[number]))
        barrier.arrive(clock)

    def read(self, by: Any, addresses: Array, size: int) -> Array:
        """What is in the shared memory of other blocks, (n, size) bytes."""
        found = np.zeros((len(addresses), size), np.uint8)
        ranks = (addresses - SHARED_BASE) // BLOCK_APART
        for rank in np.unique(ranks):
            if not self.has_met(by):
                raise SimtError("a block is used that may not have begun")
            if rank in self.left:
                raise SimtError("a block has gone when another one uses its memory")
            machine = self.machines[rank]
            chosen = ranks == rank
            found[chosen] = machine.seen_by_others(addresses[chosen], size)
            number = self.strands.current.number
            time = self.strands.current.clock[number]
            if machine is not by:
                self.arrived.append((machine, number, time))
        return found

    def leave(self, machine: Any) -> None:
        """The last thread of a block has gone."""
        self.left[machine.rank] = dict(self.strands.current.clock)

    def expect_nobody_late(self) -> None:
        """Each block was there when others arrived at its barriers, whatever happened first."""
        for machine, number, time in self.arrived:
            if self.left[machine.rank].get(number, -1) < time:
                raise SimtError("a block may have gone when another one uses its memory")


def _arrive(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "a barrier of the cluster")
    cluster = self.machine.cluster
    cluster.meeting.threads = sum(machine.threads for machine in cluster.machines)
    strand = cluster.strands.current
    cluster.turns[strand.number] = cluster.meeting.turn
    # If it is relaxed, only barriers that were made, and fenced, have an order.
    is_relaxed = op.operation.name.endswith("relaxed")
    if cluster.meeting.arrive(len(active), {} if is_relaxed else strand.released()):
        for machine in cluster.machines if not is_relaxed else ():
            machine.memory.clock.block += 1
        made = (one for machine in cluster.machines for one in machine.barriers.values())
        cluster.visible |= {id(one) for one in made if one.is_fenced}
    return []


def _wait(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, "a barrier of the cluster")
    cluster = self.machine.cluster
    number = cluster.strands.current.number
    # Those who arrived together may wait in roles of their own.
    turn = cluster.turns.get(number, cluster.turns.get(self.machine.strand))
    if turn is None:
        raise SimtError("a block waits for a meeting to which it has not come")
    cluster.strands.wait(
        lambda: cluster.meeting.turn != turn, lambda: f"the cluster at {cluster.meeting}"
    )
    join(cluster.strands.current.clock, cluster.meeting.ended)
    cluster.have_met.add(number)
    return []


def _map(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    address, rank = operands
    ranks = rank[active]
    if len(ranks) and not 0 <= ranks.min() <= ranks.max() < len(self.machine.cluster.machines):
        raise SimtError("there is no such block in the cluster")
    return [address + (rank.astype(np.int64) - self.machine.rank) * BLOCK_APART]


RULES: dict[str, Callable[[Any, ir.OpView, list[Array], Array], list[Array]]] = {
    "nvvm.cluster.arrive": _arrive,
    "nvvm.cluster.arrive.relaxed": _arrive,
    "nvvm.cluster.wait": _wait,
    "nvvm.mapa": _map,
}
