"""Accesses to shared memory that move matrices: `ldmatrix` and `stmatrix`.

A matrix has eight rows of 16 bytes, each at an address of its own, which a lane names; a thread
gets or gives 32 bits of each matrix. Whether a layout is held so follows from its vectors: a row is
what the lowest bits of an offset run over, and what eight rows differ by is a space of three bits.

Source:   PTX ISA, "ldmatrix" and "stmatrix"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.layout.linear_map import LinearMap, Reduced, combine
from tilec.layout.shared_access import ThreadAccesses, thread_accesses

ROW_BYTES = 16
ROWS = 8
WORD_BYTES = 4  # what a thread has of a matrix
MOST_MATRICES = 4


@dataclass(frozen=True)
class MatrixAccesses(ThreadAccesses):
    """Accesses of up to four matrices each.

    The offset of a lane is that of the row which it names: lane l names row l % 8 of matrix l // 8;
    lanes beyond the last matrix name none. `access.registers` are, for each matrix, the elements of
    the thread's word. Thread t has word t % 4 of row t // 4; or, `transposed`, where elements have
    16 bits, element t // 4 of row 2 (t % 4) and of the next.
    """

    matrices: int = 1
    transposed: bool = False

    def takes_part(self, lane: int, warp: int) -> bool:
        return lane < ROWS * self.matrices and super().takes_part(lane, warp)


@dataclass(frozen=True)
class MatrixForm:
    """How a layout would be moved: `row` are the vectors that a row runs over, lowest bit of the
    offset first, `rows` those by which the eight rows of a matrix differ."""

    row: tuple[int, ...]
    rows: tuple[int, int, int]
    transposed: bool


def matrix_forms(
    register: Sequence[int], lane: Sequence[int], element_bytes: int
) -> Iterator[MatrixForm]:
    """The forms of a layout whose threads hold words of neighbouring registers."""
    if element_bytes > WORD_BYTES:
        return
    word_bits = (WORD_BYTES // element_bytes).bit_length() - 1
    if len(register) < word_bits:
        return
    word, across, down = tuple(register[:word_bits]), tuple(lane[:2]), lane[2:]
    straight = MatrixForm((*word, *across), (down[0], down[1], down[2]), False)
    forms = [straight]
    if element_bytes == 2:
        forms.append(MatrixForm(tuple(down), (word[0], across[0], across[1]), True))
    for form in forms:
        span = Reduced()
        if all(span.add(vector) for vector in form.row):
            yield form


@dataclass(frozen=True)
class Holding:
    """What threads hold: vectors of register, lane and warp bits, and the repeats of the block.

    Registers whose bit is in `register_mask`, and warps that have one of `warp_mask`, hold copies.
    """

    register: tuple[int, ...]
    warp: tuple[int, ...]
    bits: int
    repeats: int
    register_mask: int = 0
    warp_mask: int = 0


def matrix_accesses(
    form: MatrixForm, held: Holding, offset: LinearMap, element_bytes: int
) -> MatrixAccesses | None:
    """The accesses that move what is held in this form, each vector lying at its `offset`.

    None if offsets are not as the form needs them: rows that run over the lowest bits and begin at
    multiples of 16 bytes.
    """
    word_bits = (WORD_BYTES // element_bytes).bit_length() - 1
    inside = ROW_BYTES // element_bytes - 1
    if [offset(vector) for vector in form.row] != [1 << i for i in range(len(form.row))]:
        return None
    if any(offset(vector) & inside for vector in (*form.rows, *held.warp)):
        return None
    # What other registers may add to the place within a row: what the word itself runs over.
    reached = 0 if form.transposed else (1 << word_bits) - 1
    places = [offset(vector) for vector in held.register]
    if any(place & inside & ~reached for place in places[word_bits:]):
        return None
    if held.register_mask & ((1 << word_bits) - 1):
        return None
    words = [1 << bit for bit in range(word_bits)]
    others = [
        1 << bit for bit in range(word_bits, len(places)) if not held.register_mask >> bit & 1
    ]
    several = others[: MOST_MATRICES.bit_length() - 1]
    more = others[len(several) :]

    def place_of(register: int) -> int:
        return combine(places, register) & ~inside

    def registers(first: int) -> tuple[int, ...]:
        found = []
        for matrix in range(1 << len(several)):
            start = first ^ combine(several, matrix)
            start ^= combine(words, combine(places, start) & reached)
            found += [start ^ combine(words, i) for i in range(1 << word_bits)]
        return tuple(found)

    def accesses() -> Iterator[tuple[tuple[int, ...], int, int]]:
        for repeat in range(held.repeats):
            for choice in range(1 << len(more)):
                first = combine(more, choice)
                base = repeat << len(places)
                chosen = tuple(base | register for register in registers(first))
                yield chosen, place_of(first), repeat << held.bits

    named = [*(offset(vector) for vector in form.rows), *map(place_of, several)]
    named += [0] * (5 - len(named))
    threads = thread_accesses(
        tuple(named),
        tuple(offset(vector) for vector in held.warp),
        accesses(),
        warp_mask=held.warp_mask,
    )
    return MatrixAccesses(
        threads.lane,
        threads.warp,
        threads.accesses,
        warp_mask=threads.warp_mask,
        matrices=1 << len(several),
        transposed=form.transposed,
    )
