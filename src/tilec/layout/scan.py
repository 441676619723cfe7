"""Scans: which registers, lanes and warps combine along an axis of a tile, in its order.

Algorithm: the bits of the coordinate along the axis are held by register, lane and warp bits. From
the lowest on, neighbours that are held by one kind make a *level*; the odd rest of the extent is
one more, in registers. A level joins the blocks of elements that the levels below it made.
1. Upwards: each level finds what is before each of its blocks within the level, and the total of
   all of them, which is a block of the next level. In a thread that is a running combination;
   between lanes, log2 shuffles, each of which gives the total of the lower half to the upper half
   (Sklansky, "Conditional-sum addition logic"), one that fetches it from the lane before, and one
   for the total of all; between warps, each writes its totals to shared memory, and after a barrier
   every thread combines those of all warps.
2. Downwards: what is before a block is what is before its parent, then what is before it within
   its level.
The order is that of the axis everywhere, so that the combination need not be commutative.

The usual layout (vectors of neighbours in a thread, then lanes, warps, more registers) gives four
levels. Any order of the bits will do, as long as each bit of the axis has one place of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from tilec.layout.layout import LANE_BITS, Basis, Layout, LayoutError
from tilec.layout.linear_map import Reduced
from tilec.layout.shared_access import ThreadAccesses, thread_accesses


@dataclass(frozen=True)
class InThread:
    """`runs[b]` are the blocks of a thread, in order, that are block b of the next level."""

    runs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LaneStep:
    """Lanes with `bit` set, after the XOR with `flip`, take the total of those before them.

    It is held by the lane `((lane ^ flip) & ~bit | below) ^ flip`.
    """

    bit: int
    below: int
    flip: int

    def takes(self, lane: int) -> bool:
        return bool((lane ^ self.flip) & self.bit)

    def source(self, lane: int) -> int:
        return ((lane ^ self.flip) & ~self.bit | self.below) ^ self.flip


@dataclass(frozen=True)
class BetweenLanes:
    """Lanes that differ in the bits of `mask` are in the order of those bits, or in the other one.

    `spreads`: whether every lane needs the total of all, or only the last lane.
    """

    mask: int
    reverse: bool
    spreads: bool

    @property
    def flip(self) -> int:
        """What makes the first lane's bits of `mask` 0 and the last lane's 1."""
        return self.mask if self.reverse else 0

    @property
    def steps(self) -> tuple[LaneStep, ...]:
        bits = [1 << bit for bit in range(LANE_BITS) if self.mask >> bit & 1]
        return tuple(LaneStep(bit, self.mask & (bit - 1), self.flip) for bit in bits)

    def before(self, lane: int) -> int:
        """The lane before one that is not the first."""
        place = lane ^ self.flip
        return (place & ~self.mask | ((place & self.mask) - 1) & self.mask) ^ self.flip

    def last(self, lane: int) -> int:
        return (lane | self.mask) ^ self.flip


@dataclass(frozen=True)
class BetweenWarps:
    """Totals through shared memory: write, barrier, read.

    A thread has a number, the XOR of `position[i]` over the set bits i of its warp; that is its
    place among the `partials` that it reads, the first of which is before all others, or after all
    of them (`reverse`). Registers of `write` and `read` are blocks. A read gives one block all its
    `partials`. If the buffer of `elements`
    elements is used again, a barrier must come before.
    """

    elements: int
    partials: int
    position: tuple[int, ...]
    reverse: bool
    write: ThreadAccesses
    read: ThreadAccesses

    @property
    def order(self) -> tuple[int, ...]:
        """The partials in the order in which they combine."""
        places = range(self.partials)
        return tuple(reversed(places)) if self.reverse else tuple(places)


Level = InThread | BetweenLanes | BetweenWarps


@dataclass(frozen=True)
class ScanPlan:
    """How a tile of `layout` is scanned: registers are the blocks of the first of `levels`.

    `tops[b]` is a register of the tile in block b after the last level: what the scan starts from
    is before that block.
    """

    layout: Layout
    levels: tuple[Level, ...]
    tops: tuple[int, ...]


def can_scan(layout: Layout, axis: int) -> bool:
    """Whether each bit of the axis is held by one register, lane or warp bit that holds it only."""
    vectors = [v for v in (*layout.register, *layout.lane, *layout.warp) if v[axis]]
    units = all(sum(v) == v[axis] and v[axis] & (v[axis] - 1) == 0 for v in vectors)
    return units and len(vectors) == layout.block[axis].bit_length() - 1


@lru_cache(maxsize=256)
def scan_plan(layout: Layout, axis: int, *, reverse: bool = False) -> ScanPlan:
    """The plan that scans a tile along an axis, from its end on if `reverse`.

    Assumes:  the combination is associative
    Raises:   LayoutError if the axis is not there, or `can_scan` says no
    """
    if not 0 <= axis < layout.rank:
        raise LayoutError(f"expected an axis of a tile of rank {layout.rank}, got {axis}")
    if not can_scan(layout, axis):
        raise LayoutError(f"expected a place for each bit of axis {axis}, got {layout}")
    planner = _Planner(layout, axis, reverse)
    runs = _runs(layout, axis)
    levels = [planner.level(kind, bits, runs[n + 1 :]) for n, (kind, bits) in enumerate(runs)]
    return ScanPlan(layout, tuple(levels), tuple(b.register for b in planner.blocks))


_REGISTER, _LANE, _WARP = range(3)

# A kind, and the bits of its number that hold neighbouring bits of the axis, low ones first. The
# repeats of the block count as one more bit of registers, which has no number.
_Run = tuple[int, tuple[int, ...]]


def _runs(layout: Layout, axis: int) -> list[_Run]:
    place: dict[int, tuple[int, int]] = {}
    for kind, vectors in enumerate((layout.register, layout.lane, layout.warp)):
        for index, vector in enumerate(vectors):
            if vector[axis]:
                place[vector[axis].bit_length() - 1] = kind, index
    places = [place[bit] for bit in sorted(place)]
    if layout.repeats[axis] > 1:
        places.append((_REGISTER, len(layout.register)))
    runs: list[_Run] = []
    for kind, index in places:
        # Lanes are ordered by their numbers.
        if runs and runs[-1][0] == kind and not (kind == _LANE and index < runs[-1][1][-1]):
            runs[-1] = kind, (*runs[-1][1], index)
        else:
            runs.append((kind, (index,)))
    return runs


@dataclass(frozen=True)
class _Block:
    """What registers of a thread are at some level: neighbours along the axis.

    `row` is the same for registers that differ along the axis alone; `place` counts blocks along
    it, in thread 0; `register` is one of the registers.
    """

    row: tuple[int, ...]
    place: int
    register: int


class _Planner:
    def __init__(self, layout: Layout, axis: int, reverse: bool) -> None:
        self.layout, self.axis, self.reverse = layout, axis, reverse
        self.done = 0  # bits of the axis below the next level
        self.below: Level | None = None
        own = sum(1 << bit for bit, vector in enumerate(layout.register) if vector[axis])
        low = (1 << len(layout.register)) - 1
        blocks = []
        for register, coordinates in enumerate(layout.table()[0, 0].tolist()):
            repeat = [c // n for c, n in zip(coordinates, layout.block, strict=True)]
            row = (register & low & ~own, *repeat[:axis], *repeat[axis + 1 :])
            blocks.append(_Block(row, coordinates[axis], register))
        self.blocks = tuple(blocks)

    def level(self, kind: int, bits: tuple[int, ...], above: Sequence[_Run]) -> Level:
        """The next level, of these bits; then `blocks` are those of the level after it."""
        made: Level
        match kind:
            case 0:
                made = self._in_thread(len(bits), is_last=not above)
            case 1:
                # Warps take the total from the last lane.
                spreads = bool(above) and above[0][0] != _WARP
                made = BetweenLanes(sum(1 << bit for bit in bits), self.reverse, spreads)
                self._go_up(len(bits))
            case _:
                made = self._between_warps(bits)
                self._go_up(len(bits))
        self.below = made
        return made

    def _go_up(self, bits: int) -> None:
        """Blocks of several threads joined: a thread has as many as before."""
        self.done += bits
        self.blocks = tuple(_Block(b.row, b.place >> bits, b.register) for b in self.blocks)

    def _in_thread(self, bits: int, *, is_last: bool) -> InThread:
        parents: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for number, block in enumerate(self.blocks):
            # The repeats are above all bits of the block.
            place = 0 if is_last else block.place >> bits
            parents.setdefault((block.row, place), []).append(number)
        runs = [
            tuple(sorted(run, key=lambda n: self.blocks[n].place, reverse=self.reverse))
            for run in parents.values()
        ]
        self.blocks = tuple(
            _Block(row, place, self.blocks[run[0]].register)
            for (row, place), run in zip(parents, runs, strict=True)
        )
        self.done += bits
        return InThread(tuple(runs))

    def _between_warps(self, bits: tuple[int, ...]) -> BetweenWarps:
        layout, slots = self.layout, _Slots(self.layout, self.axis, self.done, len(bits))
        register, lane, warp = (
            tuple(map(slots.of, vectors)) for vectors in (layout.register, layout.lane, layout.warp)
        )
        places = [slots.place(self._coordinates(block)) for block in self.blocks]
        unique = {place: (number,) for number, place in reversed(list(enumerate(places)))}
        free = _free((*register, *lane, *warp)) >> len(register)
        free_lanes, free_warps = free & ((1 << LANE_BITS) - 1), free >> LANE_BITS
        last = self.below.last(0) if isinstance(self.below, BetweenLanes) else 0
        partials = 1 << len(bits)
        write = thread_accesses(
            lane, warp, [(number, xor, add) for (xor, add), number in sorted(unique.items())],
            lane_mask=free_lanes, warp_mask=free_warps, lane_value=last,
        )  # fmt: skip
        read = thread_accesses(
            tuple(map(slots.first, lane)), tuple(map(slots.first, warp)),
            [((n,) * partials, slots.first(xor), add) for n, (xor, add) in enumerate(places)],
        )  # fmt: skip
        position = tuple(
            1 << bits.index(bit) if bit in bits else 0 for bit in range(len(layout.warp))
        )
        return BetweenWarps(
            slots.count * prod(layout.repeats), partials, position, self.reverse, write, read
        )

    def _coordinates(self, block: _Block) -> list[int]:
        found: list[int] = self.layout.table()[0, 0, block.register].tolist()
        return found


class _Slots:
    """The numbering of totals in shared memory: those along the axis side by side.

    `count` is how many there are in a block of the layout.
    """

    def __init__(self, layout: Layout, axis: int, done: int, bits: int) -> None:
        self.layout, self.axis, self.done, self.bits = layout, axis, done, bits
        self.count = prod(layout.block) >> done

    def of(self, vector: Basis) -> int:
        """The slot of a coordinate within the block; XOR of coordinates is XOR of slots."""
        row = 0
        for axis, (coordinate, extent) in enumerate(zip(vector, self.layout.block, strict=True)):
            if axis != self.axis:
                row = row * extent + coordinate
        return row * (self.layout.block[self.axis] >> self.done) + (vector[self.axis] >> self.done)

    def first(self, slot: int) -> int:
        """The first of the slots that are read together with this one."""
        return slot >> self.bits << self.bits

    def place(self, coordinates: Sequence[int]) -> tuple[int, int]:
        """A constant to XOR and one to add: the slot of any coordinates, with repeats."""
        block = self.layout.block
        repeat = [c // n for c, n in zip(coordinates, block, strict=True)]
        number = int(np.ravel_multi_index(repeat, self.layout.repeats))
        inside = tuple(c % n for c, n in zip(coordinates, block, strict=True))
        return self.of(inside), number * self.count


def _free(columns: Sequence[int]) -> int:
    """The mask of the columns that are combinations of earlier ones."""
    pivots = Reduced(columns).pivots
    return sum(1 << index for index in range(len(columns)) if index not in pivots)
