"""Conversion through shared memory: every element is written once, then read where it is wanted.

The buffer holds the tile once; the order of elements in it is a linear map of the block, chosen so
that
- the lowest bits of an offset run over elements which one thread has on both sides, or on one
  side, so that accesses are vectors; or over what a row of a matrix runs over, where `ldmatrix` or
  `stmatrix` can move what threads hold;
- the highest bits (those that do not choose a bank) are a space that no two lanes of one
  wavefront differ by, on either side: two spaces of equal dimension always have a common
  complement, which is the swizzle.
Where that leaves a choice, the one with the fewest wavefronts is taken.

Source:  "Linear Layouts", on optimal swizzling
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilec.layout.banks import BANKS, Banks, bank_conflicts
from tilec.layout.facts import unique_holders
from tilec.layout.layout import LANE_BITS, LANES, Layout
from tilec.layout.linear_map import LinearMap, Reduced, combine, intersection
from tilec.layout.matrix_access import (
    ROW_BYTES,
    Holding,
    MatrixAccesses,
    MatrixForm,
    matrix_accesses,
    matrix_forms,
)
from tilec.layout.shared_access import ThreadAccesses, thread_accesses

VECTOR_BYTES = 16  # PTX ISA, "ld" and "st": .v4 of 32 bits is the widest access


@dataclass(frozen=True)
class SharedMemory:
    """Write, barrier, read. The buffer has `elements` elements and is aligned to 16 bytes.

    In a write, register numbers are the source's, in a read the target's. `warp_local` tells that
    each warp reads only what it wrote itself, so that a barrier of the warp is enough. If the
    buffer is used again, a barrier must come before. `wavefronts` counts one warp's accesses.
    """

    elements: int
    write: ThreadAccesses
    read: ThreadAccesses
    warp_local: bool
    wavefronts: int

    @property
    def instructions(self) -> int:
        """How many accesses each thread makes, and how many offsets it computes for them."""
        sides = (self.write.accesses, self.read.accesses)
        return sum(len(side) + len({access.xor for access in side}) for side in sides)


def shared_memory_plan(
    source: Layout,
    target: Layout,
    element_bytes: int,
    banks: Banks = BANKS,
    *,
    has_stmatrix: bool = False,
    has_ldmatrix: bool = True,
) -> SharedMemory:
    """The plan that converts `source` to `target` through shared memory.

    Assumes:  equal shapes and numbers of warps; `element_bytes` is 1, 2, 4 or 8
    """
    writer = _side(source, element_bytes, writes=True, has_matrices=has_stmatrix)
    reader = _side(target, element_bytes, writes=False, has_matrices=has_ldmatrix)
    orders = _orders(writer, reader, element_bytes, banks)
    plans = (_assemble(source, target, writer, reader, order, element_bytes) for order in orders)
    return min(plans, key=lambda plan: (plan.wavefronts, plan.instructions))


@dataclass(frozen=True)
class _Side:
    """One side of the conversion: vectors are row-major indices in the block.

    `lane` and `warp` have zeros at bits that are masked out.
    """

    register: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]
    bits: int
    repeats: int
    register_mask: int = 0
    lane_mask: int = 0
    warp_mask: int = 0
    forms: tuple[MatrixForm, ...] = ()  # in which matrices can be moved

    @cached_property
    def own(self) -> Reduced:
        """What one thread holds."""
        return Reduced(self.register)

    def form_of(self, low: Sequence[int]) -> MatrixForm | None:
        """The form whose rows the lowest bits of an offset run over."""
        return next((form for form in self.forms if form.row == tuple(low[: len(form.row)])), None)

    def at_once(self, low: Sequence[int], element_bytes: int, banks: Banks) -> tuple[int, ...]:
        """The vectors of what one wavefront serves: the lanes of an access, or rows."""
        form = self.form_of(low)
        if form is not None:
            return form.rows
        vector_bytes = element_bytes << _leading(self, low)
        words = max(1, vector_bytes // banks.word_bytes)
        return self.lane[: LANE_BITS - (words.bit_length() - 1)]


def _side(layout: Layout, element_bytes: int, *, writes: bool, has_matrices: bool) -> _Side:
    register, lane, warp = (
        tuple(map(layout.flat, vectors)) for vectors in (layout.register, layout.lane, layout.warp)
    )
    bits, repeats = layout.linear.rows, prod(layout.repeats)
    forms = tuple(matrix_forms(register, lane, element_bytes)) if has_matrices else ()
    if not writes:
        return _Side(register, lane, warp, bits, repeats, forms=forms)
    holders = unique_holders(layout)
    # Lanes that hold copies would write them.
    forms = () if holders.lane else forms
    return _Side(
        register,
        tuple(0 if holders.lane >> bit & 1 else v for bit, v in enumerate(lane)),
        tuple(0 if holders.warp >> bit & 1 else v for bit, v in enumerate(warp)),
        bits, repeats, holders.register, holders.lane, holders.warp, forms,
    )  # fmt: skip


def _orders(
    writer: _Side, reader: _Side, element_bytes: int, banks: Banks
) -> Iterator[tuple[int, ...]]:
    """Candidates for the order of elements: the basis of the block, lowest bit of offset first."""
    most = (VECTOR_BYTES // element_bytes).bit_length() - 1
    word = max(0, (banks.word_bytes // element_bytes).bit_length() - 1)
    threads = Reduced((*writer.lane, *writer.warp, *reader.lane, *reader.warp))
    for form in (*reader.forms, *writer.forms):
        yield _order(writer, reader, list(form.row), element_bytes, banks)
    both = intersection(writer.register, reader.register)
    common = [vector for vector in both if threads.add(vector)][:most]
    for extender in (None, writer, reader):
        low = list(common)
        if extender is not None:
            taken = Reduced((*low, *extender.lane, *extender.warp))
            low += [vector for vector in extender.register if taken.add(vector)]
            low = low[:most]
        for filler in ((writer.lane, reader.lane), (reader.lane, writer.lane)):
            yield _order(
                writer, reader, _filled(low, word, filler, writer.bits), element_bytes, banks
            )


def _filled(
    low: Sequence[int], bits: int, lanes: tuple[tuple[int, ...], tuple[int, ...]], block_bits: int
) -> list[int]:
    """`low`, extended to a word: by what lanes of both sides differ by, of the first, of any."""
    filled = list(low)
    span = Reduced(filled)
    units = [1 << bit for bit in range(block_bits)]
    for vector in (*intersection(*lanes), *lanes[0], *units):
        if len(filled) >= min(bits, block_bits):
            break
        if span.add(vector):
            filled.append(vector)
    return filled


def _order(
    writer: _Side, reader: _Side, low: list[int], element_bytes: int, banks: Banks
) -> tuple[int, ...]:
    """The whole basis of the block: `low`, then the bits that choose a bank, then the others."""
    # Threads come first in the complement of `low`: their offsets are multiples of a vector then.
    span = Reduced(low)
    units = [1 << bit for bit in range(writer.bits)]
    rows = [v for side in (writer, reader) if (form := side.form_of(low)) for v in form.rows]
    candidates = (*rows, *writer.lane, *writer.warp, *reader.lane, *reader.warp, *units)
    rest = [vector for vector in candidates if span.add(vector)]
    inverse = LinearMap((*low, *rest), writer.bits).right_inverse()
    assert inverse is not None, "low and rest are a basis"

    at_once = [
        tuple(inverse(v) >> len(low) for v in side.at_once(low, element_bytes, banks))
        for side in (writer, reader)
    ]
    bank_bits = (banks.bytes_at_once // element_bytes).bit_length() - 1 - len(low)
    high = _avoiding(at_once[0], at_once[1], len(rest), max(0, len(rest) - bank_bits))
    taken = Reduced(high)
    bank = [1 << bit for bit in range(len(rest)) if taken.add(1 << bit)]
    return (*low, *(combine(rest, vector) for vector in (*bank, *high)))


def _leading(side: _Side, low: Sequence[int]) -> int:
    """How many of the lowest bits of an offset run over what one thread has."""
    return next((i for i, vector in enumerate(low) if vector not in side.own), len(low))


def _avoiding(one: Sequence[int], other: Sequence[int], bits: int, count: int) -> list[int]:
    """`count` independent vectors of `bits` bits that meet neither span, as far as possible."""
    both = Reduced(shared := intersection(one, other))
    only_one = [vector for vector in one if both.add(vector)]
    both = Reduced(shared)
    only_other = [vector for vector in other if both.add(vector)]
    pairs = [a ^ b for a, b in zip(only_one, only_other, strict=False)]
    span = Reduced((*one, *other))
    outside = [1 << bit for bit in range(bits) if span.add(1 << bit)]
    found = Reduced()
    worse = [*only_one, *only_other, *(1 << bit for bit in range(bits))]
    return [vector for vector in (*outside, *pairs, *worse) if found.add(vector)][:count]


def _assemble(
    source: Layout,
    target: Layout,
    writer: _Side,
    reader: _Side,
    order: tuple[int, ...],
    element_bytes: int,
) -> SharedMemory:
    write = _accesses(writer, order, element_bytes)
    read = _accesses(reader, order, element_bytes)
    warp_local = not writer.warp_mask and _stays_in_warp(source, target)
    wavefronts = _wavefronts(write, element_bytes) + _wavefronts(read, element_bytes)
    return SharedMemory(prod(source.shape), write, read, warp_local, wavefronts)


def _accesses(side: _Side, order: tuple[int, ...], element_bytes: int) -> ThreadAccesses:
    offset = LinearMap(order, side.bits).right_inverse()
    assert offset is not None, "the order is a basis of the block"
    single = _single_accesses(side, order, offset, element_bytes)
    form = side.form_of(order)
    if form is None:
        return single
    held = Holding(
        side.register, side.warp, side.bits, side.repeats, side.register_mask, side.warp_mask
    )
    matrices = matrix_accesses(form, held, offset, element_bytes)
    if matrices is None:
        return single

    def cost(accesses: ThreadAccesses) -> tuple[int, int]:
        return _wavefronts(accesses, element_bytes), len(accesses.accesses)

    return min(matrices, single, key=cost)


def _single_accesses(
    side: _Side, order: tuple[int, ...], offset: LinearMap, element_bytes: int
) -> ThreadAccesses:
    lane, warp = tuple(map(offset, side.lane)), tuple(map(offset, side.warp))
    most = (VECTOR_BYTES // element_bytes).bit_length() - 1
    vector_bits = min(most, _leading(side, order))
    while any(vector & ((1 << vector_bits) - 1) for vector in (*lane, *warp)):
        vector_bits -= 1
    steps = [side.own.solve(vector) for vector in order[:vector_bits]]
    places = _places(side, offset, [step for step in steps if step is not None])
    return thread_accesses(lane, warp, places, side.lane_mask, side.warp_mask)


def _places(
    side: _Side, offset: LinearMap, steps: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """The vectors that a thread accesses: registers, and the offset of the first of them."""
    units = [1 << bit for bit in range(len(side.register)) if not side.register_mask >> bit & 1]
    taken = Reduced(steps)
    others = [unit for unit in units if taken.add(unit)]
    for repeat in range(side.repeats):
        base = repeat << len(side.register)
        for choice in range(1 << len(others)):
            register = combine(others, choice)
            place = offset(combine(side.register, register))
            register ^= combine(steps, place & ((1 << len(steps)) - 1))
            vector = (base | register ^ combine(steps, i) for i in range(1 << len(steps)))
            yield tuple(vector), place >> len(steps) << len(steps), repeat << side.bits


def _wavefronts(thread: ThreadAccesses, element_bytes: int) -> int:
    """The wavefronts of all accesses of a warp: by linearity each takes what the first takes."""
    first = thread.accesses[0]
    addresses = [
        thread.offset(first, lane, 0) * element_bytes if thread.takes_part(lane, 0) else None
        for lane in range(LANES)
    ]
    width = element_bytes * len(first.registers)
    if isinstance(thread, MatrixAccesses):
        width = ROW_BYTES
    return len(thread.accesses) * bank_conflicts(addresses, width)


def _stays_in_warp(source: Layout, target: Layout) -> bool:
    within = Reduced(map(source.flat, (*source.register, *source.lane)))
    warps = zip(source.warp, target.warp, strict=True)
    differences = [source.flat(one) ^ target.flat(other) for one, other in warps]
    moved = [*map(target.flat, (*target.register, *target.lane)), *differences]
    return all(vector in within for vector in moved)
