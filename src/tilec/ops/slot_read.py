"""`warp.read`: elements of a tile in a slot, as registers of the threads that compute with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mlir import ir

from tilec.ir.dialects import arith, llvm
from tilec.layout import LANES, Layout, blocked
from tilec.layout.banks import bank_conflicts, least_wavefronts
from tilec.layout.costs import ARITHMETIC
from tilec.layout.swizzled import SwizzledTile, swizzled
from tilec.layout.traffic import Traffic
from tilec.ops.between_threads import from_memory
from tilec.ops.channel import SharedTile, tile_of
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import bit_width, i32, in_memory, in_registers, llvm_ptr, pack, unpack
from tilec.ops.lowering import Lowered, Lowering, assert_disjoint, register_coordinates
from tilec.ops.notes import Moved
from tilec.ops.packed_words import from_pieces
from tilec.ops.rules import OpRules, Places, Placing, shape_of

_WIDEST = 16  # bytes of one access
_WORD_BITS = 32


@dataclass(frozen=True)
class Reads:
    """Accesses to a tile by threads that hold it in a layout, `width` elements each.

    `starts` are the coordinates, by the tensor's axes, at which thread 0 reads, and `registers`
    those that get the elements, one list for each element of an access.
    """

    width: int
    starts: tuple[tuple[int, ...], ...]
    registers: tuple[tuple[tuple[int, ...], ...], ...]


def reads_of(layout: Layout, tile: SwizzledTile, axes: Sequence[int]) -> Reads:
    """The widest accesses; `axes` says which axis of the tensor each axis of the layout is."""
    held: dict[tuple[int, ...], list[int]] = {}
    for register, place in enumerate(register_coordinates(layout)):
        held.setdefault(by_tensor(place, axes), []).append(register)
    width = _WIDEST // tile.element_bytes
    while not _is_whole(held, width):
        width //= 2
    starts = tuple(sorted(place for place in held if place[-1] % width == 0))
    registers = tuple(
        tuple(tuple(held[_beside(start, i)]) for i in range(width)) for start in starts
    )
    return Reads(width, starts, registers)


def _is_whole(held: dict[tuple[int, ...], list[int]], width: int) -> bool:
    """Whether a thread has all of each so many neighbours, or none."""
    return all(_beside(p, i - p[-1] % width) in held for p in held for i in range(width))


def _beside(place: tuple[int, ...], distance: int) -> tuple[int, ...]:
    return (*place[:-1], place[-1] + distance)


def by_tensor(place: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(place[list(axes).index(axis)] for axis in range(len(axes)))


class _Read(OpRules):
    """The slot is full: what the hardware copied is there for all threads that waited for that."""

    name = "warp.read"
    flexible = True

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        tile, axes = tile_of(op.operands[0].type), axes_of(op)
        order = [axes.index(axis) for axis in reversed(range(len(axes)))]
        width = _WIDEST // tile.element_bytes
        return Places((None,), (blocked(shape_of(op.results[0]), placing.warps, order, width),))

    def serve(
        self, op: ir.OpView, wanted: Layout, placing: Placing
    ) -> tuple[Layout | None, ...] | None:
        return (None,)

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        [layout] = places.results
        assert layout is not None
        reads = reads_of(layout, tile_of(op.operands[0].type), axes_of(op))
        return ARITHMETIC * 4.0 * len(reads.starts)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [source] = operands
        assert isinstance(source, SharedTile)
        layout = layout_of(op.results[0].type)
        held = in_registers(ir.RankedTensorType(op.results[0].type).element_type)
        took = _traffic(layout, source.tile, axes_of(op))
        lowering.note(Moved("slot", (str(held),), layout, layout, took))
        # No load of another turn, nor one of this turn before its slot is full.
        llvm.inline_asm(None, [], "", "~{memory}", has_side_effects=True)
        return [_loaded(source, layout, axes_of(op), held, lowering)]


def _traffic(layout: Layout, tile: SwizzledTile, axes: list[int]) -> Traffic:
    """Of the first warp: others read rows of the same pattern."""
    reads = reads_of(layout, tile, axes)
    width = reads.width * tile.element_bytes
    firsts = [elements[0][0] for elements in reads.registers]
    places = [
        [tile.offset_of(by_tensor(layout.coordinates(one, lane, 0), axes)) for lane in range(LANES)]
        for one in firsts
    ]
    return Traffic(
        loads=len(firsts),
        wavefronts=sum(bank_conflicts(one, width) for one in places),
        least_wavefronts=sum(least_wavefronts(one, width) for one in places),
    )


def axes_of(op: ir.OpView) -> list[int]:
    """Which axis of the tensor each axis of what is read is."""
    return [ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(op.attributes["axes"])]


def _loaded(
    source: SharedTile, layout: Layout, axes: list[int], held: ir.Type, lowering: Lowering
) -> ir.Value:
    """The fragment of elements of type `held`."""
    assert_disjoint(layout)
    reads = reads_of(layout, source.tile, axes)
    thread = ByThread.of(source, layout, axes, lowering)
    stored = in_memory(held)
    order = _order_of_words(reads, layout.registers) if stored == held else None
    size = reads.width * bit_width(stored)
    piece = ir.VectorType.get([reads.width], stored)
    if order is not None:
        piece = _words_of(size)
    loaded = [
        llvm.load(piece, llvm.inttoptr(llvm_ptr(3), thread.address(start)), alignment=size // 8)
        for start in reads.starts
    ]
    if order is not None:
        ordered = [loaded[number] for number in order]
        pieces = [w for one in ordered for w in (unpack(one) if size > _WORD_BITS else [one])]
        return from_pieces(pieces, ir.VectorType.get([layout.registers], held))
    found: dict[int, ir.Value] = {}
    for one, registers in zip(loaded, reads.registers, strict=True):
        for element, numbers in zip(unpack(one), registers, strict=True):
            found.update(dict.fromkeys(numbers, element))
    return pack([from_memory(found[register], held) for register in range(len(found))])


def _words_of(bits: int) -> ir.Type:
    """What an access of so many bits gives: an integer, or several words."""
    one = ir.IntegerType.get_signless(min(bits, _WORD_BITS))
    return one if bits <= _WORD_BITS else ir.VectorType.get([bits // _WORD_BITS], one)


def _order_of_words(reads: Reads, count: int) -> list[int] | None:
    """Which access gives which registers, if each gives neighbours, in their order: nothing of what
    it loads has to be taken apart then. None otherwise."""
    by_first: dict[int, int] = {}
    for number, registers in enumerate(reads.registers):
        if any(len(numbers) != 1 for numbers in registers):
            return None
        [first] = registers[0]
        if [n for [n] in registers] != list(range(first, first + reads.width)):
            return None
        by_first[first] = number
    if sorted(by_first) != list(range(0, count, reads.width)):
        return None
    return [by_first[first] for first in sorted(by_first)]


@dataclass(frozen=True)
class ByThread:
    """Where a thread accesses a tile in shared memory: the parts (i32) that are its own.

    Units:    bytes
    """

    tile: SwizzledTile
    first: ir.Value
    near: ir.Value

    @staticmethod
    def of(place: SharedTile, layout: Layout, axes: Sequence[int], lowering: Lowering) -> ByThread:
        """For a tile that threads hold in a layout; `axes` is that of `reads_of`."""
        own = [lowering.thread_coordinate(layout, axes.index(axis)) for axis in range(len(axes))]
        far, near = _place_of_thread(place.tile, own)
        return ByThread(place.tile, arith.addi(place.address, far), near)

    def address(self, start: Sequence[int]) -> ir.Value:
        """The address (i32) of what the first thread has at these coordinates."""
        beyond, within = _place(self.tile, start)
        near = arith.xori(self.near, i32(within)) if within else self.near
        place = arith.addi(self.first, near)
        return arith.addi(place, i32(beyond)) if beyond else place


def _place(tile: SwizzledTile, coordinate: Sequence[int]) -> tuple[int, int]:
    """Where an element is: what is added, a multiple of the pattern, and what is XORed in it.

    Coordinates of threads and registers have no bits in common, so that both parts of the place of
    their sum are those of each, added and XORed.
    """
    row = 0
    for c, extent in zip(coordinate[:-1], tile.shape[:-1], strict=True):
        row = row * extent + c
    chunk, inside = divmod(coordinate[-1], tile.chunk_elements)
    place = chunk * tile.chunk_bytes + row * tile.swizzle + inside * tile.element_bytes
    near = place % tile.alignment
    return place - near, swizzled(near, tile.swizzle)


def _place_of_thread(tile: SwizzledTile, own: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """The same (i32) for a coordinate that is known to the thread only.

    Assumes:  there is one row, or the last but one extent is a multiple of the pattern's rows
    """
    row = i32(0)
    for c, extent in zip(own[:-1], tile.shape[:-1], strict=True):
        row = arith.addi(arith.muli(row, i32(extent)), c)
    chunk = arith.divui(own[-1], i32(tile.chunk_elements))
    inside = arith.remui(own[-1], i32(tile.chunk_elements))
    parts = ((chunk, tile.chunk_bytes), (row, tile.swizzle), (inside, tile.element_bytes))
    place = reduce(arith.addi, (arith.muli(value, i32(size)) for value, size in parts))
    near = arith.andi(place, i32(tile.alignment - 1))
    pieces = arith.andi(arith.shrui(near, i32(3)), i32(tile.swizzle - 16))
    return arith.subi(place, near), arith.xori(near, pieces)


RULES: tuple[OpRules, ...] = (_Read(),)
