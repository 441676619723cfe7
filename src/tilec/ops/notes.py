"""What lowering notes of its own work, for those who want to know what their program became.

A note is plain data without anything of the IR. `tilec.codegen.record` makes the report of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mlir import ir

from tilec.layout import Layout
from tilec.layout.traffic import Traffic

AccessKind: TypeAlias = Literal["load", "store", "gather", "scatter", "atomic"]
MoveKind: TypeAlias = Literal[
    "conversion", "reduction", "scan", "flip", "reshape", "extract", "slot", "factor", "box", "sums"
]


@dataclass(frozen=True)
class Place:
    """Where an operation stands in the source; a file's name is empty where nobody knows it.

    Units:    one-based
    """

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Accessed:
    """A tile that moved between registers and global memory.

    Units:    `width` in elements, of one instruction; `instructions` of a thread
    """

    kind: AccessKind
    parameter: str
    layout: Layout
    element_bytes: int
    width: int
    instructions: int
    is_masked: bool
    contiguous: int | None  # the axis along which neighbours in the tile are so in memory


@dataclass(frozen=True)
class Moved:
    """Values that changed registers or threads; `elements` are those of the tiles, as IR types."""

    kind: MoveKind
    elements: tuple[str, ...]
    source: Layout
    target: Layout
    traffic: Traffic


@dataclass(frozen=True)
class Multiplied:
    """A matrix product, of `count` instructions a thread."""

    instruction: str
    count: int
    left: Layout
    right: Layout
    sums: Layout


Note = Accessed | Moved | Multiplied


@dataclass(frozen=True)
class PlacedBuffer:
    """A buffer in shared memory.

    Units:    bytes
    """

    place: Place
    offset: int
    size: int


@dataclass(frozen=True)
class SharedMemoryUse:
    """What the code of a kernel takes of shared memory, in the end.

    Units:    bytes of a block; barriers as they stand in the code
    """

    bytes: int = 0
    buffers: tuple[PlacedBuffer, ...] = ()
    block_barriers: int = 0
    warp_barriers: int = 0


def place_of(location: ir.Location) -> Place:
    """The place of an operation; of several that were merged, the first that has one."""
    if location.is_a_fused():
        places = map(place_of, location.locations)
        return next((place for place in places if place.file), Place("", 0, 0))
    if location.is_a_callsite():
        return place_of(location.callee)
    if location.is_a_name():
        return place_of(location.child_loc)
    if not location.is_a_file():
        return Place("", 0, 0)
    return Place(location.filename, location.start_line, location.start_col)
