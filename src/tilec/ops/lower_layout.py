"""A change of layout on a GPU: registers renamed, shuffles, or shared memory, as its plan says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import or_

from mlir import ir

from tilec.ir.dialects import arith, llvm, scf, vector
from tilec.layout import LANE_BITS, Layout
from tilec.layout.conversion import ConversionPlan, RegisterPermutation, plan_conversion
from tilec.layout.matrix_access import MatrixAccesses
from tilec.layout.shared_access import ThreadAccesses
from tilec.layout.shared_memory import SharedMemory
from tilec.layout.shuffle import Shuffle, Swap
from tilec.layout.traffic import Traffic, of_conversion, of_extract, of_rows
from tilec.ops.between_threads import (
    from_memory,
    read_shared,
    shuffle_from,
    takes_part,
    to_memory,
    write_shared,
)
from tilec.ops.fragments import (
    bit_width,
    element_offset,
    i32,
    in_memory,
    pack,
    select_registers,
    unpack,
)
from tilec.ops.instruction_set import has_stmatrix
from tilec.ops.lowering import Lowering
from tilec.ops.notes import Moved
from tilec.ops.pieces import PIECE_BYTES, Place, fits_at_once, through_pieces
from tilec.ops.shared_matrices import read_matrices, write_matrices


def lower_conversion(
    source: Layout, target: Layout, fragment: ir.Value, lowering: Lowering
) -> ir.Value:
    """The fragment of the target layout, from that of the source."""
    element_bytes = bit_width(ir.VectorType(fragment.type).element_type) // 8
    is_whole = fits_at_once(prod(source.shape) * element_bytes)
    plan = plan_conversion(
        source,
        target,
        element_bytes,
        has_stmatrix=has_stmatrix() and is_whole,
        has_ldmatrix=is_whole,
    )
    _note(plan, source, target, fragment, lowering)
    return _converted(plan, fragment, lowering)


def _note(
    plan: ConversionPlan, source: Layout, target: Layout, fragment: ir.Value, lowering: Lowering
) -> None:
    element = ir.VectorType(fragment.type).element_type
    moved = _within_pieces(of_conversion(plan, bit_width(element) // 8))
    lowering.note(Moved("conversion", (str(element),), source, target, moved))


def _within_pieces(moved: Traffic) -> Traffic:
    """Counted as if all went at once, through the memory that a piece takes."""
    return replace(moved, shared_bytes=min(moved.shared_bytes, PIECE_BYTES))


def _converted(plan: ConversionPlan, fragment: ir.Value, lowering: Lowering) -> ir.Value:
    match plan:
        case RegisterPermutation(order):
            return select_registers(fragment, order)
        case Shuffle():
            return pack(_shuffle(plan, unpack(fragment), lowering))
        case SharedMemory():
            return _through_shared(plan, fragment, lowering)


def read_as_needed(
    source: Layout, target: Layout, fragment: ir.Value, lowering: Lowering
) -> Callable[[int], Held]:
    """The target's registers by their numbers; what is in shared memory is read when it is asked
    for, once, in the block that this is called in."""
    element = ir.VectorType(fragment.type).element_type
    size = bit_width(element) // 8
    plan = plan_conversion(source, target, size)
    _note(plan, source, target, fragment, lowering)
    if not isinstance(plan, SharedMemory):
        whole = _converted(plan, fragment, lowering)
        return lambda register: Held(whole, register)
    buffer = lowering.shared_bytes(plan.elements * size, by_warp=plan.warp_local)
    _write(buffer, plan.write, fragment, lowering)
    return read_where_used(buffer, plan.read, element, lowering)


def read_where_used(
    buffer: ir.Value, accesses: ThreadAccesses, element: ir.Type, lowering: Lowering
) -> Callable[[int], Held]:
    """Registers by their numbers, read from shared memory when they are asked for, once."""
    access_of = {register: a for a in accesses.accesses for register in a.registers}
    found: dict[int, Held] = {}

    def held(register: int) -> Held:
        if register not in found:
            one = replace(accesses, accesses=(access_of[register],))
            loaded = _read(buffer, one, element, lowering)
            for place, other in enumerate(sorted(one.accesses[0].registers)):
                found[other] = Held(loaded, place)
        return found[register]

    return held


@dataclass(frozen=True)
class Held:
    """A register: an element of what was loaded at once."""

    fragment: ir.Value
    place: int

    @property
    def count(self) -> int:
        """How many elements were loaded at once."""
        return int(ir.VectorType(self.fragment.type).shape[0])

    @property
    def value(self) -> ir.Value:
        return vector.extract(self.fragment, [], [self.place])


def _shuffle(plan: Shuffle, registers: Sequence[ir.Value], lowering: Lowering) -> list[ir.Value]:
    offered = _swapped(plan.gather, registers, lowering)
    values = []
    for step in plan.rounds:
        if plan.is_move(step):
            values.append(offered[step.register])
            continue
        lane = lowering.thread_number((*plan.lane, *plan.warp))
        if step.lane_xor:
            lane = arith.xori(lane, i32(step.lane_xor))
        values.append(shuffle_from(offered[step.register], lane))
    return _swapped(plan.scatter, [values[n] for n in plan.placement], lowering)


def _swapped(
    swaps: Sequence[Swap], registers: Sequence[ir.Value], lowering: Lowering
) -> list[ir.Value]:
    found = list(registers)
    for swap in swaps:
        mask = swap.lane_mask | swap.warp_mask << (LANE_BITS)
        parity = lowering.thread_number(
            tuple(mask >> bit & 1 for bit in range(LANE_BITS + _warp_bits(lowering)))
        )
        swaps_here = arith.cmpi(arith.CmpIPredicate.ne, parity, i32(0))
        found = [
            arith.select(swaps_here, found[r ^ swap.register_xor], found[r])
            for r in range(len(found))
        ]
    return found


def _warp_bits(lowering: Lowering) -> int:
    return lowering.warps.bit_length() - 1


def _through_shared(plan: SharedMemory, fragment: ir.Value, lowering: Lowering) -> ir.Value:
    element = ir.VectorType(fragment.type).element_type
    size = plan.elements * bit_width(element) // 8
    if not fits_at_once(size):
        return _through_pieces(plan, fragment, lowering)
    buffer = lowering.shared_bytes(size, by_warp=plan.warp_local)
    _write(buffer, plan.write, fragment, lowering)
    return _read(buffer, plan.read, element, lowering)


def _through_pieces(plan: SharedMemory, fragment: ir.Value, lowering: Lowering) -> ir.Value:
    registers = unpack(fragment)
    writes, reads = _places(plan.write, lowering), _places(plan.read, lowering)
    writes_here = takes_part(plan.write, lowering)
    return pack(through_pieces(plan.elements, writes, writes_here, reads, registers, lowering))


def _places(accesses: ThreadAccesses, lowering: Lowering) -> list[Place]:
    """Where a thread's accesses are in the whole buffer."""
    assert not isinstance(accesses, MatrixAccesses), "a plan of this size has none"
    thread = lowering.thread_number((*accesses.lane, *accesses.warp))
    varying = reduce(or_, (*accesses.lane, *accesses.warp))
    found = []
    for access in accesses.accesses:
        start = arith.xori(thread, i32(access.xor)) if access.xor else thread
        at = arith.addi(start, i32(access.add)) if access.add else start
        found.append(Place(access.registers, at, access.add, access.add + varying))
    return found


def _write(
    buffer: ir.Value, accesses: ThreadAccesses, fragment: ir.Value, lowering: Lowering
) -> None:
    element = ir.VectorType(fragment.type).element_type
    if isinstance(accesses, MatrixAccesses):
        if in_memory(element) != element:
            fragment = pack([to_memory(r) for r in unpack(fragment)])
        write_matrices(buffer, accesses, fragment, lowering)
    else:
        write_shared(buffer, accesses, [to_memory(r) for r in unpack(fragment)], lowering)


def _read(
    buffer: ir.Value, accesses: ThreadAccesses, element: ir.Type, lowering: Lowering
) -> ir.Value:
    held = in_memory(element)
    if isinstance(accesses, MatrixAccesses):
        fragment = read_matrices(buffer, accesses, held, lowering)
        if held == element:
            return fragment
        return pack([from_memory(r, element) for r in unpack(fragment)])
    read = read_shared(buffer, accesses, held, lowering)
    return pack([from_memory(read[r][0], element) for r in sorted(read)])


def through_rows(
    source: Layout, target: Layout, registers: Sequence[ir.Value], lowering: Lowering
) -> list[ir.Value]:
    """The same elements in row-major order under another shape, where registers cannot say so."""
    element = registers[0].type
    held = in_memory(element)
    size = bit_width(element) // 8
    moved = _within_pieces(of_rows(source, target, size))
    lowering.note(Moved("reshape", (str(element),), source, target, moved))
    unique = lowering.holds_unique(source)
    places = _row_major(source, lowering)
    elements = prod(source.shape)
    if not fits_at_once(elements * size):
        writes, reads = (
            [Place((register,), at, 0, elements - 1) for register, at in enumerate(of)]
            for of in (places, _row_major(target, lowering))
        )
        return through_pieces(elements, writes, unique, reads, registers, lowering)
    buffer = lowering.shared_bytes(elements * size)
    if unique is None:
        _write_rows(buffer, places, registers)
    else:
        branch = scf.IfOp(unique)
        with ir.InsertionPoint(branch.then_block):
            _write_rows(buffer, places, registers)
            scf.yield_([])
    read = []
    for place in _row_major(target, lowering):
        pointer = element_offset(buffer, place, held)
        read.append(from_memory(llvm.load(held, pointer, alignment=size), element))
    return read


def _write_rows(
    buffer: ir.Value, places: Sequence[ir.Value], registers: Sequence[ir.Value]
) -> None:
    for place, register in zip(places, registers, strict=True):
        value = to_memory(register)
        pointer = element_offset(buffer, place, value.type)
        llvm.store(value, pointer, alignment=bit_width(value.type) // 8)


def _row_major(layout: Layout, lowering: Lowering) -> list[ir.Value]:
    """The row-major index (i32) of the element in each register."""
    places = []
    for row in lowering.coordinates(layout):
        place = i32(0)
        for coordinate, extent in zip(row, layout.shape, strict=True):
            place = arith.addi(arith.muli(place, i32(extent)), coordinate)
        places.append(place)
    return places


def lower_extract(
    layout: Layout, fragment: ir.Value, indices: Sequence[ir.Value], lowering: Lowering
) -> ir.Value:
    """One element, for every thread; the indices (index) are inside the tile."""
    registers = unpack(fragment)
    if prod(layout.shape) == 1:
        return registers[0]
    element = registers[0].type
    size = bit_width(element) // 8
    buffer = lowering.shared_bytes(size)
    moved = of_extract(layout, size)
    lowering.note(Moved("extract", (str(element),), layout, layout, moved))
    unique = lowering.holds_unique(layout)
    wanted = [arith.index_cast(ir.IntegerType.get_signless(32), i) for i in indices]
    for row, register in zip(lowering.coordinates(layout), registers, strict=True):
        here = _equal(row, wanted)
        branch = scf.IfOp(here if unique is None else arith.andi(here, unique))
        with ir.InsertionPoint(branch.then_block):
            llvm.store(to_memory(register), buffer, alignment=size)
            scf.yield_([])
    return from_memory(llvm.load(in_memory(element), buffer, alignment=size), element)


def _equal(left: Sequence[ir.Value], right: Sequence[ir.Value]) -> ir.Value:
    total: ir.Value | None = None
    for a, b in zip(left, right, strict=True):
        term = arith.cmpi(arith.CmpIPredicate.eq, a, b)
        total = term if total is None else arith.andi(total, term)
    assert total is not None, "a tile of several elements has axes"
    return total
