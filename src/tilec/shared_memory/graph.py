"""The flow of control between accesses to shared memory, as a graph that the verifier searches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from mlir import ir

from tilec.shared_memory.accesses import (
    Alloc,
    Arrived,
    Barrier,
    Branch,
    Commit,
    Fence,
    Loop,
    Send,
    Skeleton,
    Touch,
    Unit,
    Wait,
)


@dataclass(frozen=True)
class Problem:
    """Two operations out of order, or data that is lost before it is read."""

    what: str
    first: ir.OpView
    second: ir.OpView

    def __str__(self) -> str:
        return f"{self.what}: {self.first}, then {self.second}"


@dataclass(frozen=True)
class Turn:
    """The way from the end of a loop's turn to its start; rings turn by a slot."""

    rings: frozenset[int]


@dataclass(frozen=True)
class Left:
    """The way out of a loop that turns rings."""

    rings: frozenset[int]


Payload: TypeAlias = (
    "Touch | Barrier | Commit | Arrived | Send | Fence | Wait | Alloc | Turn | Left | None"
)


@dataclass
class Graph:
    """The flow of control: what happens at each node, and where it may go on."""

    payloads: list[Payload] = field(default_factory=list)
    after: list[set[int]] = field(default_factory=list)
    before: list[set[int]] = field(default_factory=list)

    def node(self, payload: Payload) -> int:
        self.payloads.append(payload)
        self.after.append(set())
        self.before.append(set())
        return len(self.payloads) - 1

    def op(self, number: int) -> ir.OpView:
        """The operation of an access."""
        payload = self.payloads[number]
        assert isinstance(payload, Touch | Send), "problems are those of accesses"
        return payload.op

    def connect(self, sources: set[int], target: int) -> None:
        self.before[target] |= sources
        for source in sources:
            self.after[source].add(target)

    def add(self, skeleton: Skeleton, entries: set[int]) -> set[int]:
        """Draw a skeleton that is entered from these nodes; gives those that it is left from."""
        ends = entries
        for item in skeleton:
            match item:
                case Touch() | Barrier() | Send() | Fence() | Wait() | Alloc():
                    ends = self._after_step(item, ends)
                case Commit() | Arrived():
                    ends = self._after_step(item, ends)
                case Unit(_, touches):
                    # Each thread takes it or not; in whatever order, within a thread.
                    for touch in touches:
                        ends = self._joined(ends | self._after_step(touch, ends))
                case Branch(_, ways):
                    ends = self._joined(set().union(*[self.add(way, ends) for way in ways]))
                case Loop(_, parts, rings):
                    ends = self._after_loop(parts, rings, ends)
        return ends

    def _after_step(self, payload: Payload, ends: set[int]) -> set[int]:
        number = self.node(payload)
        self.connect(ends, number)
        return {number}

    def _after_loop(
        self, parts: tuple[Skeleton, ...], rings: frozenset[int], entries: set[int]
    ) -> set[int]:
        head = self.node(None)
        self.connect(entries, head)
        # It is left from the end of a part, or never entered: what leads back is for turns only.
        left, ends = set(entries), {head}
        for part in parts:
            ends = self.add(part, ends)
            left = left | ends
        turn = self.node(Turn(rings))
        self.connect(ends, turn)
        self.connect({turn}, head)
        return {self._beyond(rings, left)} if rings else self._joined(left)

    def _joined(self, ends: set[int]) -> set[int]:
        """One node behind these: else each node that follows would have an edge from each of them,
        and of branches after branches all from all."""
        if len(ends) == 1:
            return ends
        number = self.node(None)
        self.connect(ends, number)
        return {number}

    def _beyond(self, rings: frozenset[int], left: set[int]) -> int:
        number = self.node(Left(rings))
        self.connect(left, number)
        return number
