"""Matrix products by `wgmma`: four warps multiply a tile of 64 rows, from shared memory.

Layouts of what threads hold (accumulators, the first factor if it is not in shared memory), which
of their registers an instruction takes, and descriptors of factors in shared memory.

Shapes:   tiles are (…, M, K), (…, K, N) and (…, M, N), axes before the last two of extent 1
Source:   PTX ISA, "Asynchronous warpgroup level matrix multiply-accumulate operations": "Matrix
          Shape", "Register Fragments", "Canonical Layouts", "Matrix Descriptor Format"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.layout.layout import LANES, Basis, Layout
from tilec.layout.mma import Mma
from tilec.layout.over_warps import Places, doubling
from tilec.layout.swizzled import PATTERN_ROWS, SwizzledTile

WARPGROUP_WARPS = 4
WARPGROUP_THREADS = LANES * WARPGROUP_WARPS
ROWS = 64  # of an instruction
# Of an accumulator: a thread has two rows in each 64, and of every eight columns of a row, four
# lanes have two each.
ROWS_OF_THREAD, GROUP_COLUMNS, ROW_LANES = 2, 8, 4
STEP_BYTES = 32  # along k, of an instruction
MOST_COLUMNS = 256
WORD_BYTES = 4
# Where an instruction of a wide tile may begin: then any chunk of 16-bit elements begins there too.
_PIECE = 64

_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1}
_TOTALS = {
    "f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "f8e4m3": ("f32", "f16"),
    "f8e5m2": ("f32", "f16"), "i8": ("i32",), "u8": ("i32",),
}  # fmt: skip
_FAMILIES = ({"f8e4m3", "f8e5m2"}, {"i8", "u8"})


@dataclass(frozen=True)
class Wgmma:
    """The element types of an instruction, by their names in the language; 64 rows, any columns."""

    a: str
    b: str
    total: str

    @property
    def element_bytes(self) -> int:
        return _BYTES[self.a]

    @property
    def k(self) -> int:
        return STEP_BYTES // self.element_bytes


def wgmma_for(a: str, b: str, total: str) -> Wgmma | None:
    """The instruction that multiplies these element types, adding to `total`; None: there is none.

    The two f8 types may meet, and so may `i8` and `u8`.
    """
    if a not in _BYTES or total not in _TOTALS[a]:
        return None
    meet = a == b or any({a, b} <= family for family in _FAMILIES)
    return Wgmma(a, b, total) if meet else None


def fits(shape: Sequence[int], warpgroups: int) -> bool:
    """Whether `wgmma` can compute a product of this shape, each warpgroup its share of the rows."""
    *batch, rows, columns = shape
    if any(extent != 1 for extent in batch) or rows % (ROWS * warpgroups):
        return False
    # A warpgroup's rows are neighbours: its number is the highest bits of a row.
    has_halves = warpgroups == 1 or rows & (rows - 1) == 0
    return has_halves and (columns % 16 == 0 or columns == 8)


# ---- what threads hold ---------------------------------------------------------------------------


def accumulator_layout(shape: Sequence[int], warpgroups: int) -> Layout:
    """The layout of a product: pairs of columns, rows 8 down, columns by eight, then 64 rows down.

    Assumes:  `fits`
    """
    assert fits(shape, warpgroups), f"{tuple(shape)} by {warpgroups} warpgroups"
    c = Mma(16, 8, 16, 2).c
    places = Places(shape)
    across = [places.at(0, n) for n in doubling(8, places.block[-1])]
    return _layout(shape, warpgroups, c.register, c.lane, across)


def is_accumulator_layout(layout: Layout) -> bool:
    """Whether `wgmma` can add to a tile that threads hold so."""
    warpgroups, left = divmod(layout.warps, WARPGROUP_WARPS)
    if layout.rank < 2 or left or not fits(layout.shape, warpgroups):
        return False
    return layout == accumulator_layout(layout.shape, warpgroups)


def a_register_layout(shape: Sequence[int], warpgroups: int, element_bytes: int) -> Layout:
    """The layout of a first factor in registers: words along k, rows 8 down, k, then 64 rows down.

    Assumes:  the extent of k is a multiple of the instruction's, and rows are as in `fits`
    """
    assert fits((*shape[:-1], 8), warpgroups), f"{tuple(shape)} by {warpgroups} warpgroups"
    a = _fragment(element_bytes).a
    places = Places(shape)
    along = [places.at(0, k) for k in doubling(STEP_BYTES // element_bytes, places.block[-1])]
    return _layout(shape, warpgroups, a.register, a.lane, along)


def _fragment(element_bytes: int) -> Mma:
    """What one warp has of an instruction is what it has of an `mma` as long along k."""
    return Mma(16, 8, STEP_BYTES // element_bytes, WORD_BYTES // element_bytes)


def _layout(
    shape: Sequence[int],
    warpgroups: int,
    register: Sequence[tuple[int, int]],
    lane: Sequence[tuple[int, int]],
    beyond: Sequence[Basis],
) -> Layout:
    places = Places(shape)
    own = places.block[-2] // warpgroups  # rows of a warpgroup within the block
    rows = [*doubling(16, ROWS), *doubling(own, places.block[-2])]
    return Layout(
        tuple(shape),
        (
            *(places.at(*place) for place in register),
            *beyond,
            *(places.at(row, 0) for row in doubling(ROWS, own)),
        ),
        tuple(places.at(*place) for place in lane),
        tuple(places.at(row, 0) for row in rows),
    )


# ---- instructions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """What one instruction adds to: 64 rows by `columns`, and its registers in their order.

    Units:    `row` counts from the first row of the warpgroup
    """

    row: int
    column: int
    columns: int
    registers: tuple[int, ...]


def blocks(accumulator: Layout) -> list[Block]:
    """The blocks of a product, rows outermost.

    Assumes:  `is_accumulator_layout`
    """
    *_, rows, columns = accumulator.shape
    held = _held(accumulator)
    return [
        Block(
            row,
            column,
            count,
            tuple(
                held[row + down, column + across + side]
                for across in range(0, count, 8)
                for down in (0, 8)
                for side in (0, 1)
            ),
        )
        for row in range(0, rows * WARPGROUP_WARPS // accumulator.warps, ROWS)
        for column, count in _pieces(columns)
    ]


def columns_of_instructions(columns: int) -> list[int]:
    """How many columns each of the instructions has that a row of blocks takes."""
    return [count for _, count in _pieces(columns)]


def a_words(a: Layout, row: int, k: int, element_bytes: int) -> list[int]:
    """The four words that an instruction takes of a first factor in registers.

    Words are numbered as registers are when neighbours along k share one.

    Units:    `row` counts from the first row of the warpgroup
    """
    held = _held(a)
    word = WORD_BYTES // element_bytes
    firsts = [held[row + down, k + along] for along in (0, 4 * word) for down in (0, 8)]
    assert all(first % word == 0 for first in firsts), f"{a} splits words"
    return [first // word for first in firsts]


def _held(layout: Layout) -> dict[tuple[int, int], int]:
    """Row and column -> the register in which the first thread holds it."""
    table = layout.table()[0, 0, :, -2:].tolist()
    return {(row, column): register for register, (row, column) in enumerate(table)}


def _pieces(columns: int) -> list[tuple[int, int]]:
    """First column and number of columns of each instruction: as few as can be, of like width."""
    count = -(-columns // MOST_COLUMNS)
    width = columns if count == 1 else -(-columns // (count * _PIECE)) * _PIECE
    return [(first, min(width, columns - first)) for first in range(0, columns, width)]


# ---- factors in shared memory --------------------------------------------------------------------

_MODES = {128: 1, 64: 2, 32: 3}


@dataclass(frozen=True)
class SharedOperand:
    """A factor in shared memory; `k_major` if it is contiguous along k.

    Units:    everything in bytes, but coordinates
    """

    tile: SwizzledTile
    k_major: bool

    @property
    def k(self) -> int:
        return self.tile.shape[-1] if self.k_major else self.tile.rows

    @property
    def across(self) -> int:
        """The extent of the other axis: M or N."""
        return self.tile.rows if self.k_major else self.tile.shape[-1]

    @property
    def descriptor(self) -> int:
        """All fields of the descriptor but the address, which is bits 0 to 13.

        The leading offset is that from one chunk to the next, the stride offset that from eight
        rows of a chunk to the next eight. Along k an instruction never leaves a chunk that is
        contiguous along k, so that the leading offset then counts for nothing.
        """
        leading = 16 if self.k_major else self.tile.chunk_bytes
        stride = PATTERN_ROWS * self.tile.swizzle
        return _field(leading) << 16 | _field(stride) << 32 | _MODES[self.tile.swizzle] << 62

    def offset(self, across: int, k: int) -> int:
        """What is added to the tile's address for an instruction that begins at this place."""
        row, column = (across, k) if self.k_major else (k, across)
        assert row % PATTERN_ROWS == 0, f"row {row} is inside a pattern"
        chunk, inside = divmod(column * self.tile.element_bytes, self.tile.swizzle)
        assert self.k_major or inside == 0, f"column {column} is inside a chunk"
        return chunk * self.tile.chunk_bytes + row * self.tile.swizzle + inside


def shared_operand(tile: SwizzledTile, k_axis: int) -> SharedOperand | None:
    """The factor that a tile is whose axis `k_axis` is k; None: no instruction takes it.

    The other axis is the one of an extent other than 1, or the last; if the last axis is k, all
    others are one, row-major.
    """
    k_major = k_axis == len(tile.shape) - 1
    if k_major:
        return SharedOperand(tile, True) if tile.rows % PATTERN_ROWS == 0 else None
    only_k = tile.rows == tile.shape[k_axis]
    if tile.element_bytes != 2 or not only_k or tile.rows % (STEP_BYTES // 2):
        return None
    return SharedOperand(tile, False)


def _field(offset: int) -> int:
    assert 0 <= offset < 1 << 18 and offset % 16 == 0, f"{offset} bytes do not fit a descriptor"
    return offset >> 4
