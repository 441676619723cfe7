"""How a variant overlaps copies with products: who copies what ahead, how far, and why so.

Nobody needs it to launch a kernel. It is empty where all threads of a block do everything one after
the other. Places in the source are one-based; a file is empty where nobody knows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ScheduledRole:
    """Warps of a block that do one part of the program.

    Units:    registers of a thread; 0 for what the launch gives
    """

    name: Literal["loader", "math"]
    warps: int
    registers: int


@dataclass(frozen=True)
class ScheduledTile:
    """A tile that is copied to shared memory, by the axes of its tensor.

    Units:    bytes; `swizzle` is that of a row
    """

    tensor: str
    element: str
    shape: tuple[int, ...]
    swizzle: int
    bytes: int


@dataclass(frozen=True)
class ScheduledChannel:
    """A ring of `depth` slots, each of which holds all of these tiles; `fill` is what copies them.

    Units:    bytes of one slot
    """

    file: str
    line: int
    column: int
    fill: Literal["TMA", "cp.async", "registers"]
    depth: int
    slot_bytes: int
    tiles: tuple[ScheduledTile, ...]


@dataclass(frozen=True)
class ScheduledProduct:
    """A product that goes on while its threads do: `count` instructions of a warpgroup each time.

    The axis along which a factor lies in memory is `k` (summed), `m` (rows) or `n` (columns); one
    that is computed is in `registers`.
    """

    file: str
    line: int
    column: int
    instruction: str
    count: int
    left: Literal["k", "m", "registers"]
    right: Literal["k", "n"]


@dataclass(frozen=True)
class ScheduledTurn:
    """One turn of a loop: the cycles for which each unit of a multiprocessor is busy, at least.

    `copy_cycles` are those in which tiles come from L2.
    """

    file: str
    line: int
    column: int
    tensor_cycles: int
    shared_cycles: int
    copy_cycles: int

    @property
    def bound(self) -> int:
        """Units:    cycles that a turn takes, at least"""
        return max(self.tensor_cycles, self.shared_cycles, self.copy_cycles)

    @property
    def limit(self) -> Literal["tensor cores", "shared memory", "copies"]:
        """The unit that is busy for the longest time."""
        if self.tensor_cycles == self.bound:
            return "tensor cores"
        return "shared memory" if self.shared_cycles == self.bound else "copies"


@dataclass(frozen=True)
class ScheduledTask:
    """An operation of a software pipeline in one steady interval, as one warpgroup executes it.

    A task of stage 1 belongs to the iteration before that of stage 0. Threads issue a product at
    its start and go on; it ends when the tensor cores are done, which may be in the next interval.

    Units:    cycles, by estimate, from the start of the interval
    """

    operation: str
    file: str
    line: int
    column: int
    unit: Literal["tensor cores", "threads"]
    stage: int
    start: int
    end: int


@dataclass(frozen=True)
class ScheduledPipeline:
    """A loop that is software-pipelined; `tasks` in the order in which threads execute them.

    Units:    cycles an iteration, by estimate: the initiation interval, that of the loop as
              written, and for how long each unit is busy; registers of a thread that are live at
              most between two tasks
    """

    file: str
    line: int
    column: int
    interval: int
    interval_as_written: int
    tensor_cycles: int
    thread_cycles: int
    live_registers: int
    tasks: tuple[ScheduledTask, ...]

    @property
    def is_best(self) -> bool:
        """Whether no interval is shorter: one unit is busy all the time."""
        return self.interval <= max(self.tensor_cycles, self.thread_cycles)


@dataclass(frozen=True)
class ScheduledChoice:
    """What was decided, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class ScheduleReport:
    """All of it for one variant; so many rows of programs are walked together."""

    roles: tuple[ScheduledRole, ...] = ()
    channels: tuple[ScheduledChannel, ...] = ()
    products: tuple[ScheduledProduct, ...] = ()
    turns: tuple[ScheduledTurn, ...] = ()
    rows_together: int = 1
    choices: tuple[ScheduledChoice, ...] = ()
    pipelines: tuple[ScheduledPipeline, ...] = ()
