"""What the code of a variant does with memory and between threads: the report of a build.

Nobody needs it to launch a kernel. `tilec inspect` shows it, and tests hold it against the code.
Places in the source are one-based; a file is empty where nobody knows it. Layouts are named by
their number in the table of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tilec.artifact.schedule_report import ScheduleReport


@dataclass(frozen=True)
class HeldLayout:
    """Which element of a tile each register of each thread holds (docs/inspect.md).

    Bits of register, lane and warp number each stand for the row-major index of an element in a
    block whose extents are the largest powers of two in `shape`; an element's place is the XOR of
    those of the set bits. The block is repeated along each axis, in registers.
    """

    shape: tuple[int, ...]
    register: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]


@dataclass(frozen=True)
class TileAccess:
    """One access of a tile to global memory.

    `masked`: an element may be outside. `sectors` are those of 32 bytes that one instruction of a
    warp touches, where rows lie far apart and indices that are data name places far apart;
    `least_sectors` would hold what it moves.

    Units:    `vector_bytes` of one instruction of a thread, of which it has `instructions`
    """

    file: str
    line: int
    column: int
    kind: Literal["load", "store", "gather", "scatter", "atomic"]
    tensor: str
    element: str
    layout: int
    vector_bytes: int
    instructions: int
    masked: bool
    sectors: int
    least_sectors: int


@dataclass(frozen=True)
class Movement:
    """Values that change registers or threads: a change of layout, a reduction, a scan, and so on.

    Units:    `folds` (two registers combined), `shuffles`, `selects`, `stores` and `loads` (of
              shared memory) are instructions of a thread; wavefronts are those of a warp, the least
              if no two lanes met in a bank
    """

    file: str
    line: int
    column: int
    kind: Literal[
        "conversion",
        "reduction",
        "scan",
        "flip",
        "reshape",
        "extract",
        "slot",
        "factor",
        "box",
        "sums",
    ]
    elements: tuple[str, ...]
    source: int
    target: int
    folds: int
    shuffles: int
    selects: int
    stores: int
    loads: int
    shared_bytes: int
    wavefronts: int
    least_wavefronts: int

    @property
    def way(self) -> Literal["registers", "shuffles", "shared memory"]:
        """The furthest that values go."""
        if self.stores:
            return "shared memory"
        return "shuffles" if self.shuffles else "registers"

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts of a warp that nothing but conflicts makes necessary."""
        return self.wavefronts - self.least_wavefronts


@dataclass(frozen=True)
class Product:
    """One matrix product: `count` instructions a thread; layouts of the factors and the sums."""

    file: str
    line: int
    column: int
    instruction: str
    count: int
    left: int
    right: int
    sums: int


@dataclass(frozen=True)
class SharedBuffer:
    """Bytes of a block's shared memory, for one purpose; several may share bytes."""

    file: str
    line: int
    column: int
    offset: int
    bytes: int


@dataclass(frozen=True)
class LoweringReport:
    """All of it for one variant, each list in the order of the code; loops count once."""

    accesses: tuple[TileAccess, ...] = ()
    movements: tuple[Movement, ...] = ()
    products: tuple[Product, ...] = ()
    buffers: tuple[SharedBuffer, ...] = ()
    block_barriers: int = 0
    warp_barriers: int = 0
    schedule: ScheduleReport = field(default_factory=ScheduleReport)

    @property
    def bank_conflicts(self) -> int:
        return sum(movement.bank_conflicts for movement in self.movements)
