"""Tiles that leave a kernel with roles: box by box through shared memory (`layout/boxes.py`).

By copies: each warp writes its box, tells the hardware so (`fence.proxy.async`), and one thread of
it begins a copy, which goes on beside whatever comes next: also the next program. Two buffers take
turns; before a box is written again the copy from its buffer must have read it, which the thread
that began it waits for. What is left to wait for at the end, the role does.

By rows, where a tensor is not aligned: the warp stores its box row by row, element by element.

Source:   PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk.wait_group", "Async proxy"
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mlir import ir

from tilec.ir.dialects import arith, nvvm, scf
from tilec.ir.types import is_tile
from tilec.layout import LANE_BITS, LANES, Layout
from tilec.layout.boxes import Box, Boxes, boxes_of
from tilec.layout.matrix_access import MatrixAccesses
from tilec.layout.shared_access import Access as SharedAccess
from tilec.layout.shared_access import ThreadAccesses
from tilec.layout.traffic import NONE, of_reads, of_writes
from tilec.ops.between_threads import as_in_memory, read_shared, write_shared
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import bit_width, byte_offset, i32, in_memory, unpack
from tilec.ops.global_memory import Use, store, store_masked
from tilec.ops.instruction_set import has_stmatrix
from tilec.ops.lowering import ELECTED, Lowered, Lowering, TensorMap, View
from tilec.ops.notes import Moved
from tilec.ops.pending import begin, registers_of
from tilec.ops.shared_matrices import write_matrices
from tilec.ops.thread_access import Access

# The attribute of a store whose tile may go so: how, and to which parameter.
SENT = "warp.sent"
By: TypeAlias = Literal["copies", "rows"]
# Buffers of a tile that take turns.
BUFFERS = 2
# Registers: what is computed at once, to hide the latency of instructions; and how far ahead loads
# begin, to hide that of L2. What is loaded element by element takes twice the registers.
_PIECE = 8
_AHEAD, _AHEAD_BY_ELEMENTS = 40, 16


@dataclass(frozen=True)
class Sending:
    """How the tile of a store leaves, and to which parameter."""

    by: By
    param: str

    def attribute(self) -> ir.Attribute:
        by, param = ir.StringAttr.get(self.by), ir.StringAttr.get(self.param)
        return ir.DictAttr.get({"by": by, "param": param})


def sending_of(op: ir.OpView) -> Sending | None:
    """How the tile of a store may leave, as a schedule says; None: it says nothing."""
    if SENT not in op.attributes:
        return None
    told = ir.DictAttr(op.attributes[SENT])
    by = ir.StringAttr(told["by"]).value
    return Sending("copies" if by == "copies" else "rows", ir.StringAttr(told["param"]).value)


def boxes_sent(tile: ir.Value) -> Boxes | None:
    """The boxes of a tile whose layout has some."""
    if not is_tile(tile):
        return None
    element = ir.RankedTensorType(tile.type).element_type
    return boxes_of(layout_of(tile.type), bit_width(element) // 8)


def map_of(parameter: str, boxes: Boxes) -> TensorMap:
    return TensorMap(parameter, boxes.box.shape, boxes.box.swizzle, writes=True)


def send_by_copies(
    boxes: Boxes,
    layout: Layout,
    view: View,
    starts: Sequence[ir.Value],
    fragment: Lowered,
    lowering: Lowering,
) -> None:
    """Begin copies of a tile to where it starts in the tensor (i32, one an axis)."""
    lowering.is_sending = True
    _note(boxes, layout, in_memory(view.element), lowering, is_read=False)
    target = lowering.tensor_map(map_of(view.parameter, boxes))
    whole = boxes.box.bytes << len(layout.warp)
    buffers = [
        lowering.sent_bytes(whole, boxes.box.alignment)
        for _ in range(min(BUFFERS, len(boxes.boxes)))
    ]
    lane = arith.andi(lowering.thread, i32(LANES - 1))
    is_first = arith.cmpi(arith.CmpIPredicate.eq, lane, i32(0))
    own = [_of_warp(layout, axis, lowering) for axis in range(layout.rank)]
    warp_bits = (1 << number for number in range(len(layout.warp)))
    number = lowering.thread_number((*[0] * LANE_BITS, *warp_bits))
    place = arith.muli(number, i32(boxes.box.bytes))
    pieces = _Pieces(boxes.boxes, fragment, _AHEAD)
    for count, box in enumerate(boxes.boxes):
        buffer = buffers[count % len(buffers)]
        nvvm.cp_async_bulk_wait_group(_still_read(count, len(boxes.boxes), len(buffers)), read=True)
        _write(buffer, box, pieces, lowering)
        nvvm.fence_proxy(
            ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
            space=ir.Attribute.parse("#nvvm.shared_space<cta>"),
        )
        branch = scf.IfOp(is_first)
        branch.attributes[ELECTED] = ir.UnitAttr.get()
        with ir.InsertionPoint(branch.then_block):
            first = [
                _sum(arith.addi(start, mine), near)
                for start, mine, near in zip(starts, own, box.start, strict=True)
            ]
            # The hardware has the innermost axis first.
            nvvm.cp_async_bulk_tensor_global_shared_cta(
                target, byte_offset(buffer, place), first[::-1]
            )
            nvvm.cp_async_bulk_commit_group()
            scf.yield_([])


def send_by_rows(
    boxes: Boxes,
    access: Callable[[Layout], Access],
    fragment: Lowered,
    lowering: Lowering,
    use: Use,
) -> None:
    """Store a tile by rows of its boxes; `access` is that of a layout."""
    here = access(boxes.by_rows)
    here.note("store")
    element = here.element
    _note(boxes, boxes.by_rows, element, lowering, is_read=True)
    whole = boxes.box.bytes << len(boxes.by_rows.warp)
    buffers = [lowering.shared_bytes(whole, by_warp=True) for _ in range(BUFFERS)]
    groups = {register: group for group in here.groups for register in group.registers}
    pieces = _Pieces(boxes.boxes, fragment, _AHEAD_BY_ELEMENTS)
    for count, box in enumerate(boxes.boxes):
        buffer = buffers[count % len(buffers)]
        _write(buffer, box, pieces, lowering)
        read = read_shared(buffer, box.reads, element, lowering)
        for group in dict.fromkeys(groups[register] for register in sorted(read)):
            elements = [read[register][0] for register in group.registers]
            mask = here.mask(group)
            if mask is None:
                store(here.address(group), elements, use)
            else:
                store_masked(here.address(group), mask, elements, use)


def wait_until_sent() -> None:
    """Until hardware has read all that it copies: a block's shared memory goes with the block."""
    nvvm.cp_async_bulk_wait_group(0, read=True)


def _note(
    boxes: Boxes, layout: Layout, element: ir.Type, lowering: Lowering, *, is_read: bool
) -> None:
    """What writing the boxes of a tile takes, and reading them, if threads do that."""
    size = bit_width(element) // 8
    took = NONE
    for box in boxes.boxes:
        took += of_writes(box.writes, size) + (of_reads(box.reads, size) if is_read else NONE)
    lowering.note(Moved("box", (str(element),), layout, boxes.by_rows, took))


class _Pieces:
    """The registers of boxes, made a few at a time just before they are written.

    What they need from memory is begun `ahead` registers before.
    """

    def __init__(self, boxes: Sequence[Box], fragment: Lowered, ahead: int) -> None:
        self._fragment = fragment
        self._left = [one for box in boxes for one in _accesses_of_pieces(box)]
        self._ahead = ahead
        self._begun = self._made = 0

    def next(self) -> tuple[ThreadAccesses, ir.Value]:
        """The next accesses, and what they write: registers as in memory, numbered anew."""
        while self._begun < len(self._left) and self._held() < self._ahead:
            begin(self._fragment, _registers(self._left[self._begun]))
            self._begun += 1
        accesses = self._left[self._made]
        self._made += 1
        held = _registers(accesses)
        places = {register: place for place, register in enumerate(held)}
        own = tuple(
            replace(one, registers=tuple(places[r] for r in one.registers))
            for one in accesses.accesses
        )
        piece = as_in_memory(registers_of(self._fragment, held))
        return replace(accesses, accesses=own), piece

    def _held(self) -> int:
        """The registers that were begun and not made."""
        return sum(len(_registers(one)) for one in self._left[self._made : self._begun])


def _accesses_of_pieces(box: Box) -> Iterator[ThreadAccesses]:
    """The accesses that write a box, several together where each has few registers."""
    together: list[SharedAccess] = []
    for one in box.writes.accesses:
        together.append(one)
        if sum(len(each.registers) for each in together) >= _PIECE:
            yield replace(box.writes, accesses=tuple(together))
            together = []
    if together:
        yield replace(box.writes, accesses=tuple(together))


def _registers(accesses: ThreadAccesses) -> list[int]:
    return sorted({register for one in accesses.accesses for register in one.registers})


def _write(buffer: ir.Value, box: Box, pieces: _Pieces, lowering: Lowering) -> None:
    for _ in _accesses_of_pieces(box):
        accesses, piece = pieces.next()
        if isinstance(accesses, MatrixAccesses):
            assert has_stmatrix(), "kernels with roles have `stmatrix`"
            write_matrices(buffer, accesses, piece, lowering)
        else:
            write_shared(buffer, accesses, unpack(piece), lowering)


def _still_read(count: int, boxes: int, buffers: int) -> int:
    """How many of the copies that were begun last may go on when box `count` is written.

    Those that came after the last one from this buffer: in this tile, or the one before.
    """
    if count >= buffers:
        return buffers - 1
    last = max(other for other in range(boxes) if other % buffers == count % buffers)
    return boxes - 1 - last + count


def _of_warp(layout: Layout, axis: int, lowering: Lowering) -> ir.Value:
    """The first coordinate (i32) of this warp's part."""
    return lowering.thread_number((*[0] * LANE_BITS, *(vector[axis] for vector in layout.warp)))


def _sum(value: ir.Value, near: int) -> ir.Value:
    return arith.addi(value, i32(near)) if near else value
