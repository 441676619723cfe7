"""Factors that math warps write to shared memory for products: `warp.buffer`, `warp.write`.

A buffer has one place, or two that take turns: threads write the one while products read the other.
What was written is there for products, which read by the asynchronous proxy, once each thread that
wrote has made a fence (`warp.show`) and all have met (`warp.join_warps`).

Layout:   a thread has 16 bytes of neighbours along the contiguous axis of memory; lanes go along
          the other one. Eight lanes then write the eight rows of a pattern, whose pieces lie in
          different banks. So do they read slots in which rows lie alike; where they lie the other
          way, the single elements that neighbouring lanes read are neighbours.
Source:   PTX ISA, "Async proxy", "wgmma.fence"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mlir import ir

from tilec.ir.dialects import arith, llvm, nvvm, scf
from tilec.layout import LANE_BITS, LANES, Layout
from tilec.layout.banks import bank_conflicts, least_wavefronts
from tilec.layout.facts import unique_holders
from tilec.layout.over_warps import doubling
from tilec.layout.swizzled import SwizzledTile
from tilec.layout.traffic import Traffic
from tilec.ops.between_threads import to_memory
from tilec.ops.build import number_of
from tilec.ops.channel import SharedTile, tiles_of
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import bit_width, i32, llvm_ptr, pack, unpack
from tilec.ops.lowering import Lowered, Lowering, assert_disjoint
from tilec.ops.notes import Moved
from tilec.ops.rules import OpRules, Places, Placing, shape_of
from tilec.ops.slot_read import ByThread, axes_of, by_tensor, reads_of

_WIDEST = 16  # bytes of one access


@dataclass(frozen=True)
class Buffer:
    """`next` is the number of the place that is written next (a variable); None where there is one.

    Units:    `address` (i32) in bytes of shared memory
    """

    address: ir.Value
    tile: SwizzledTile
    depth: int
    next: ir.Value | None


def written_type(buffer: ir.Value) -> ir.Type:
    """The type of the memory that a `warp.write` to a `warp.buffer` gives."""
    [kind] = ir.ArrayAttr(buffer.owner.opview.attributes["tiles"])
    return ir.TypeAttr(kind).value


@lru_cache(maxsize=64)
def layout_for(shape: tuple[int, ...], axes: tuple[int, ...], width: int, warps: int) -> Layout:
    """How threads hold a tile of this shape that is written: `width` neighbours each."""
    block = [extent & -extent for extent in shape]
    rank = len(shape)
    contiguous = axes.index(rank - 1)

    def at(axis: int, coordinate: int) -> tuple[int, ...]:
        return tuple(coordinate if a == axis else 0 for a in range(rank))

    along = [at(contiguous, bit) for bit in doubling(1, block[contiguous])]
    across = [
        at(axis, bit)
        for axis in sorted(range(rank), key=lambda a: axes[a], reverse=True)
        if axis != contiguous
        for bit in doubling(1, block[axis])
    ]
    own = min(width.bit_length() - 1, len(along))
    left = [*across, *along[own:]]
    bits = LANE_BITS + warps.bit_length() - 1
    threads = [*left[:bits], *[at(0, 0)] * (bits - len(left))]
    return Layout(
        shape,
        (*along[:own], *left[bits:]),
        tuple(threads[:LANE_BITS]),
        tuple(threads[LANE_BITS:]),
    )


class _Create(OpRules):
    name = "warp.buffer"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        depth, [tile] = number_of(op, "depth"), tiles_of(op)
        address = lowering.ring(depth * tile.bytes, tile.alignment)
        if depth == 1:
            return [Buffer(address, tile, depth, None)]
        following = lowering.variable()
        llvm.store(i32(0), following)
        return [Buffer(address, tile, depth, following)]


class _Write(OpRules):
    name = "warp.write"

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        tile = ir.RankedTensorType(op.operands[1].type)
        width = _WIDEST * 8 // bit_width(tile.element_type)
        shape = tuple(shape_of(op.operands[1]))
        return Places((None, layout_for(shape, tuple(axes_of(op)), width, placing.warps)), (None,))

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        return 0.0  # there is one layout only

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        buffer, fragment = operands
        assert isinstance(buffer, Buffer) and isinstance(fragment, ir.Value)
        layout, axes = layout_of(op.operands[1].type), axes_of(op)
        place = SharedTile(_next_place(buffer), buffer.tile)
        element = str(ir.VectorType(fragment.type).element_type)
        took = _traffic(layout, buffer.tile, axes)
        lowering.note(Moved("factor", (element,), layout, layout, took))
        takes_part = _takes_part(layout, lowering)
        if takes_part is None:
            _store(place, layout, axes, fragment, lowering)
            return [place]
        branch = scf.IfOp(takes_part)
        with ir.InsertionPoint(branch.then_block):
            _store(place, layout, axes, fragment, lowering)
            scf.yield_([])
        return [place]


class _Show(OpRules):
    name = "warp.show"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        nvvm.fence_proxy(
            ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
            space=ir.Attribute.parse("#nvvm.shared_space<cta>"),
        )
        return []


class _JoinWarps(OpRules):
    name = "warp.join_warps"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        lowering.barrier()
        return []


def _next_place(buffer: Buffer) -> ir.Value:
    """The address (i32) of the place that is written, after which comes the next one."""
    if buffer.next is None:
        return buffer.address
    assert buffer.depth == 2, "two places take turns"
    number = llvm.load(ir.IntegerType.get_signless(32), buffer.next)
    llvm.store(arith.xori(number, i32(1)), buffer.next)
    return arith.addi(buffer.address, arith.muli(number, i32(buffer.tile.bytes)))


def _takes_part(layout: Layout, lowering: Lowering) -> ir.Value | None:
    """Whether this thread has what no other one has (i1); None: all do."""
    holders = unique_holders(layout)
    mask = holders.lane | holders.warp << LANE_BITS
    if mask == 0:
        return None
    return arith.cmpi(arith.CmpIPredicate.eq, arith.andi(lowering.thread, i32(mask)), i32(0))


def _store(
    place: SharedTile,
    layout: Layout,
    axes: list[int],
    fragment: ir.Value,
    lowering: Lowering,
) -> None:
    assert_disjoint(layout)
    elements = [to_memory(value) for value in unpack(fragment)]
    alignment = place.tile.element_bytes
    accesses = reads_of(layout, place.tile, axes)
    thread = ByThread.of(place, layout, axes, lowering)
    for start, registers in zip(accesses.starts, accesses.registers, strict=True):
        stored = pack([elements[numbers[0]] for numbers in registers])
        pointer = llvm.inttoptr(llvm_ptr(3), thread.address(start))
        llvm.store(stored, pointer, alignment=accesses.width * alignment)


def _traffic(layout: Layout, tile: SwizzledTile, axes: list[int]) -> Traffic:
    """Of the first warp: others write rows of the same pattern."""
    accesses = reads_of(layout, tile, axes)
    width = accesses.width * tile.element_bytes
    firsts = [elements[0][0] for elements in accesses.registers]
    places = [
        [tile.offset_of(by_tensor(layout.coordinates(one, lane, 0), axes)) for lane in range(LANES)]
        for one in firsts
    ]
    return Traffic(
        stores=len(firsts),
        wavefronts=sum(bank_conflicts(one, width) for one in places),
        least_wavefronts=sum(least_wavefronts(one, width) for one in places),
    )


RULES: tuple[OpRules, ...] = (_Create(), _Write(), _Show(), _JoinWarps())
