"""What is too large for shared memory at once goes through it in pieces.

A piece is a slice of the buffer that all of it would take: in each round every thread writes what
it has of the slice, then reads what it wants of it. Where it depends on the thread whether an
access is of the slice, a write is a branch, and what was read is chosen or left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.ir.dialects import arith, llvm, scf
from tilec.ops.between_threads import from_memory, to_memory
from tilec.ops.fragments import bit_width, element_offset, i32, in_memory, pack, unpack
from tilec.ops.lowering import SHARED_ALIGNMENT, Lowering

# Units: bytes, a power of two. Every target has more; what lives beside it has room, too.
PIECE_BYTES = 64 * 1024


def fits_at_once(size: int) -> bool:
    """Whether so many bytes go through shared memory as a whole."""
    return size <= PIECE_BYTES


@dataclass(frozen=True)
class Place:
    """Neighbouring elements of the whole buffer, from element `at` (i32) on, and their registers.

    `at` is from `least` to `most`, and a multiple of the number of registers, a power of two.
    """

    registers: tuple[int, ...]
    at: ir.Value
    least: int
    most: int


def through_pieces(
    elements: int,
    writes: Sequence[Place],
    writes_here: ir.Value | None,
    reads: Sequence[Place],
    registers: Sequence[ir.Value],
    lowering: Lowering,
) -> list[ir.Value]:
    """The registers that `reads` name, in their order, of a buffer of so many elements.

    `writes_here` (i1): whether this thread writes at all; None: all do.
    """
    element = registers[0].type
    held = [to_memory(register) for register in registers]
    size = bit_width(element) // 8
    piece = PIECE_BYTES // size
    buffer = lowering.shared_bytes(min(elements, piece) * size)
    found: dict[int, ir.Value] = {}
    for start in range(0, elements, piece):
        slice_ = _Slice(buffer, start, piece, size)
        if writes_here is None:
            slice_.write(writes, held)
        else:
            branch = scf.IfOp(writes_here)
            with ir.InsertionPoint(branch.then_block):
                slice_.write(writes, held)
                scf.yield_([])
        slice_.read(reads, in_memory(element), found)
    return [from_memory(found[r], element) for r in sorted(found)]


@dataclass(frozen=True)
class _Slice:
    """Elements `start` to `start + count` of the whole, in a buffer of their own."""

    buffer: ir.Value
    start: int
    count: int
    size: int

    def write(self, places: Sequence[Place], held: Sequence[ir.Value]) -> None:
        for place in places:
            if not self._meets(place):
                continue
            here = self._holds(place)
            if here is None:
                self._store(place, held)
                continue
            branch = scf.IfOp(here)
            with ir.InsertionPoint(branch.then_block):
                self._store(place, held)
                scf.yield_([])

    def read(self, places: Sequence[Place], element: ir.Type, found: dict[int, ir.Value]) -> None:
        for place in places:
            if not self._meets(place):
                continue
            here = self._holds(place)
            kind = ir.VectorType.get([len(place.registers)], element)
            # An element of another slice is that many elements further on: some number.
            loaded = unpack(llvm.load(kind, self._pointer(place, element), **self._aligned(place)))
            for register, value in zip(place.registers, loaded, strict=True):
                if here is not None and register in found:
                    value = arith.select(here, value, found[register])
                found[register] = value

    def _meets(self, place: Place) -> bool:
        """Whether some thread's element may be of this slice."""
        return place.least < self.start + self.count and place.most >= self.start

    def _holds(self, place: Place) -> ir.Value | None:
        """Whether it is of this slice (i1); None: it is for every thread."""
        if self.start <= place.least and place.most < self.start + self.count:
            return None
        number = arith.shrui(place.at, i32(self.count.bit_length() - 1))
        return arith.cmpi(arith.CmpIPredicate.eq, number, i32(self.start // self.count))

    def _store(self, place: Place, held: Sequence[ir.Value]) -> None:
        values = pack([held[register] for register in place.registers])
        pointer = self._pointer(place, held[0].type)
        llvm.store(values, pointer, **self._aligned(place))

    def _pointer(self, place: Place, element: ir.Type) -> ir.Value:
        inside = arith.andi(place.at, i32(self.count - 1))
        return element_offset(self.buffer, inside, element)

    def _aligned(self, place: Place) -> dict[str, int]:
        return {"alignment": min(SHARED_ALIGNMENT, len(place.registers) * self.size)}
