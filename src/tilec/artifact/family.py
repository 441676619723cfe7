"""Instances of one kernel that do the same at different speeds, and which of them is for a shape.

The instances of a kernel that take the same types are a *family*: tiles of other sizes, for other
extents. A launcher picks a member by the extents of a launch: by what was measured on its card at
these extents, if there is such a figure, else by the model below. Both are data, and all of the
model's arithmetic is of integers, so that every launcher picks the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilec.artifact.expression import Expression, Value, evaluate_exactly

# Multiprocessors come in groups, which clusters of more than a pair do not fill: about one of so
# many is left over.
_PAIR = 2
_LEFT_OVER = 16


@dataclass(frozen=True)
class Part:
    """Something that each program of a variant does `turns` times.

    Units:    cycles of a multiprocessor: `alone_cycles` pass if no other program is there; the
              others are those for which a unit is taken from other programs
    """

    turns: Expression
    tensor_cycles: int
    shared_cycles: int
    memory_cycles: int
    thread_cycles: int
    alone_cycles: int

    @property
    def busy_cycles(self) -> tuple[int, int, int, int]:
        """Of each unit: tensor cores, shared memory, memory, and what issues instructions."""
        return self.tensor_cycles, self.shared_cycles, self.memory_cycles, self.thread_cycles


@dataclass(frozen=True)
class Cost:
    """What a variant takes, as far as a choice needs it; without parts, nobody knows.

    `blocks_per_sm` blocks are on a multiprocessor at one time. Each program is done by so many
    blocks together; parts are what one of them does. Clusters have `cluster_blocks`.

    Units:    `start_cycles` pass once in a launch; `memory_cycles` at least, while what all
              programs read comes from memory; `first_cycles` are waited for what nobody read
              before, by all blocks together
    """

    blocks_per_sm: int = 1
    start_cycles: int = 0
    parts: tuple[Part, ...] = ()
    blocks_per_program: int = 1
    memory_cycles: Expression = 0
    first_cycles: Expression = 0
    cluster_blocks: int = 1

    def cycles(self, programs: int, values: Mapping[str, Value], multiprocessors: int) -> int:
        """How long a launch takes, by the multiprocessor that has the most to do.

        Either each of its blocks does one program, or its part of one, after the other, none of
        which can be faster than alone. Or a unit of it is busy all the time, or all wait for
        memory: then the waits of the first part, which a program does once, hide behind others, but
        for those of the last program.
        """
        busy = [0, 0, 0, 0]
        alone = 0
        for part in self.parts:
            turns = max(0, int(evaluate_exactly(part.turns, values)))
            busy = [sum_ + turns * one for sum_, one in zip(busy, part.busy_cycles, strict=True)]
            alone += turns * part.alone_cycles
        if max(self.blocks_per_program, self.cluster_blocks) > _PAIR:
            multiprocessors -= multiprocessors // _LEFT_OVER
        blocks_of_sm = -(-programs * self.blocks_per_program // multiprocessors)
        rounds = -(-blocks_of_sm // self.blocks_per_sm)
        memory = int(evaluate_exactly(self.memory_cycles, values))
        blocks = min(programs * self.blocks_per_program, multiprocessors * self.blocks_per_sm)
        first = int(evaluate_exactly(self.first_cycles, values)) // max(1, blocks)
        hidden = max(blocks_of_sm * max(busy), memory, first)
        if hidden:
            hidden += max(0, self.parts[0].alone_cycles - max(self.parts[0].busy_cycles))
        return self.start_cycles + max(rounds * alone, hidden)


@dataclass(frozen=True)
class Measured:
    """The fastest member at some extents, in the order of the family's `dims`.

    Units:    microseconds of a launch
    """

    extents: tuple[int, ...]
    member: str
    us: float


@dataclass(frozen=True)
class Table:
    """What was measured on one card, which CUDA calls by this name."""

    card: str
    measured: tuple[Measured, ...]


@dataclass(frozen=True)
class Family:
    """Instances that are launched as one: `members` are their symbols.

    `name` is the kernel's with the types (`matmul__bf16`), `kernel` the kernel's.
    """

    name: str
    kernel: str
    dims: tuple[str, ...]
    members: tuple[str, ...]
    tables: tuple[Table, ...] = ()

    def measured(self, card: str) -> dict[tuple[int, ...], str]:
        """The member for each shape that was measured on a card."""
        return {
            one.extents: one.member
            for table in self.tables
            if table.card == card
            for one in table.measured
        }
