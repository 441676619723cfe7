"""One variant of a kernel at one grid, and the frames that carry its arguments to the device.

A frame is made once and used again: an array of 64-bit cells, one for each slot of the machine
code but its tensor maps, in which what shapes decide is filled in already, and the driver's
function that launches with what the cells hold. A launch takes a frame out of the entry's list and
puts it back, so that two threads never fill one frame; the driver has read the cells when its
function returns.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from tilec.artifact.manifest import Kernel, Variant
    from tilec.runtime.tiled_map import TiledMap

Cells: TypeAlias = "array[int]"  # of unsigned 64-bit numbers; little-endian, as all CUDA hosts are
Start: TypeAlias = Callable[[int], None]  # launches on the stream of this address
Frame: TypeAlias = "tuple[Cells, Start]"

# What launches borrow, in the units of which `UnderWay` allows so many (launch.py).
_BYTES_OF_WEIGHT = 256 * 1024

_ALL_BITS = 2**64 - 1


class Named(Protocol):
    """A kernel or a pipeline, of which messages tell the symbol."""

    @property
    def symbol(self) -> str: ...


class Started(Protocol):
    """What a handle is of: one launch, or all of a pipeline.

    `grid` is None if nothing is to run; `weight` says how much memory is borrowed, 1 for a launch
    of small tensors.
    """

    @property
    def kernel(self) -> Named: ...

    @property
    def device(self) -> int | None: ...

    @property
    def grid(self) -> tuple[int, int, int] | None: ...

    @property
    def weight(self) -> int: ...


class MapSlot(NamedTuple):
    """A tensor map that an entry passes: the cell with the tensor's address, the map but for that
    address, and what the driver made of it at the addresses that it has had."""

    pointer: int
    told: TiledMap
    known: dict[int, object]


class Entry:
    """What the driver launches: a variant and its grid, which is None if no program is to run.

    `weight` says how much memory a launch borrows: 1 for a launch of small tensors.
    """

    __slots__ = ("device", "fixed", "frames", "grid", "kernel", "maps", "variant", "weight")

    def __init__(
        self,
        kernel: Kernel,
        variant: Variant,
        device: int | None,
        grid: tuple[int, int, int] | None,
        fixed: Sequence[int],
        borrowed_bytes: int,
        maps: Sequence[MapSlot] = (),
    ) -> None:
        self.kernel = kernel
        self.variant = variant
        self.device = device
        self.grid = grid
        self.fixed = fixed
        self.maps = maps
        self.weight = weight_of(borrowed_bytes)
        self.frames: list[Frame] = []

    def cells(self) -> Cells:
        """Cells for one more frame, without addresses and scalars."""
        return array("Q", [value & _ALL_BITS for value in self.fixed])


class Node(NamedTuple):
    """One launch of a graph: what the cells hold when the graph is built or updated, and the
    earlier nodes that it comes after. `early`: it may start while the one before it still runs."""

    entry: Entry
    cells: Cells
    after: tuple[int, ...]
    early: bool


def weight_of(borrowed_bytes: int) -> int:
    """The weight of what borrows so much memory."""
    return 1 + borrowed_bytes // _BYTES_OF_WEIGHT
