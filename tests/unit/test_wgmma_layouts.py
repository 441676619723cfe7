"""`wgmma`: fragments against the figures of the PTX ISA written out as formulas, and descriptors
against what its canonical layouts say that an instruction reads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.codegen.simt_wgmma import a_place, addresses, sums_place
from tilec.layout import Layout, blocked
from tilec.layout.mma import Mma
from tilec.layout.mma import accumulator_layout as mma_accumulator_layout
from tilec.layout.swizzled import SwizzledTile
from tilec.layout.wgmma import (
    SharedOperand,
    Wgmma,
    a_register_layout,
    a_words,
    accumulator_layout,
    blocks,
    fits,
    is_accumulator_layout,
    shared_operand,
    wgmma_for,
)

# ---- instructions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "total", "k"),
    [
        ("f16", "f16", "f32", 16), ("f16", "f16", "f16", 16), ("bf16", "bf16", "f32", 16),
        ("tf32", "tf32", "f32", 8), ("f8e4m3", "f8e4m3", "f32", 32),
        ("f8e5m2", "f8e4m3", "f16", 32), ("i8", "i8", "i32", 32), ("u8", "i8", "i32", 32),
    ],
)  # fmt: skip
def test_which_types_have_an_instruction(a: str, b: str, total: str, k: int) -> None:
    found = wgmma_for(a, b, total)
    assert found == Wgmma(a, b, total)
    assert found.k == k


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [
        ("f16", "bf16", "f32"), ("bf16", "bf16", "bf16"), ("bf16", "bf16", "f16"),
        ("f32", "f32", "f32"), ("f64", "f64", "f64"), ("i8", "i8", "f32"), ("i16", "i16", "i32"),
        ("i8", "f8e4m3", "i32"),
    ],
)  # fmt: skip
def test_which_have_none(a: str, b: str, total: str) -> None:
    assert wgmma_for(a, b, total) is None


# ---- accumulators --------------------------------------------------------------------------------

SHAPES = [
    ((64, 8), 1), ((64, 16), 1), ((128, 128), 1), ((128, 128), 2), ((256, 128), 2), ((64, 48), 1),
    ((128, 96), 2), ((256, 144), 2), ((256, 192), 2), ((128, 256), 2), ((64, 272), 1),
    ((256, 320), 4), ((1, 128, 64), 2), ((192, 64), 1), ((1, 1, 64, 512), 1),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "warpgroups"), SHAPES)
def test_blocks_hold_what_the_instruction_adds_to(shape: tuple[int, ...], warpgroups: int) -> None:
    layout = accumulator_layout(shape, warpgroups)
    *_, rows, columns = shape
    table = layout.table()
    assert table.shape[:2] == (4 * warpgroups, 32)
    taken = set()
    for block in blocks(layout):
        assert block.columns % 8 == 0 and block.columns <= 256
        rows_columns = np.stack(sums_place(block.columns), axis=-1)
        expected = rows_columns.reshape(4, 32, -1, 2)
        for group in range(warpgroups):
            origin = [group * rows // warpgroups + block.row, block.column]
            found = table[4 * group : 4 * group + 4][:, :, list(block.registers), -2:]
            np.testing.assert_array_equal(found, expected + origin)
        taken.update(block.registers)
    # Every register belongs to one instruction, and no element is held twice.
    assert taken == set(range(layout.registers))
    assert sum(len(b.registers) for b in blocks(layout)) == layout.registers
    assert layout.registers * 128 * warpgroups == rows * columns


@pytest.mark.parametrize(("shape", "warpgroups"), SHAPES)
def test_as_few_instructions_as_can_be(shape: tuple[int, ...], warpgroups: int) -> None:
    *_, rows, columns = shape
    found = blocks(accumulator_layout(shape, warpgroups))
    assert len(found) == rows // 64 // warpgroups * -(-columns // 256)
    # Chunks of 16-bit elements begin where instructions do; 8-bit integers have columns by 16.
    assert all(block.column % 64 == 0 for block in found)
    assert columns == 8 or all(block.columns % 16 == 0 for block in found)


def test_registers_of_one_instruction_are_neighbours_where_there_are_no_repeats() -> None:
    first, second = blocks(accumulator_layout((128, 256), 1))
    assert (*first.registers, *second.registers) == tuple(range(256))


@pytest.mark.parametrize(("shape", "warpgroups"), SHAPES)
def test_accumulators_are_recognised(shape: tuple[int, ...], warpgroups: int) -> None:
    assert is_accumulator_layout(accumulator_layout(shape, warpgroups))


@pytest.mark.parametrize(
    "layout",
    [
        blocked((128, 128), 4, (1, 0)),
        blocked((4096,), 4, (0,)),
        mma_accumulator_layout((128, 64), 4, Mma(16, 8, 16, 2)),
        mma_accumulator_layout((64, 64), 2, Mma(16, 8, 16, 2)),
        blocked((64, 64), 8, (1, 0)),
    ],
)
def test_others_are_not(layout: Layout) -> None:
    assert not is_accumulator_layout(layout)


@pytest.mark.parametrize(
    ("shape", "warpgroups"),
    [((32, 64), 1), ((64, 64), 2), ((192, 64), 3), ((384, 64), 2), ((64, 12), 1), ((2, 64, 64), 1)],
)
def test_what_does_not_fit(shape: tuple[int, ...], warpgroups: int) -> None:
    assert not fits(shape, warpgroups)


# ---- the first factor in registers ---------------------------------------------------------------


@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize(
    ("shape", "warpgroups"),
    [((64, 32), 1), ((128, 64), 1), ((128, 128), 2), ((256, 96), 2), ((1, 64, 192), 1)],
)
def test_words_are_what_the_instruction_takes(
    shape: tuple[int, ...], warpgroups: int, element_bytes: int
) -> None:
    layout = a_register_layout(shape, warpgroups, element_bytes)
    *_, rows, depth = shape
    table = layout.table()[..., -2:]
    word = 4 // element_bytes
    expected = np.stack(a_place(element_bytes), axis=-1).reshape(4, 32, 4, word, 2)
    words = table.reshape(4 * warpgroups, 32, layout.registers // word, word, 2)
    taken = []
    for row in range(0, rows // warpgroups, 64):
        for k in range(0, depth, 32 // element_bytes):
            numbers = a_words(layout, row, k, element_bytes)
            for group in range(warpgroups):
                found = words[4 * group : 4 * group + 4][:, :, numbers]
                origin = [group * rows // warpgroups + row, k]
                np.testing.assert_array_equal(found, expected + origin)
            taken += numbers
    assert sorted(taken) == list(range(words.shape[2]))


@pytest.mark.parametrize("columns", [32, 48, 128, 192])
def test_an_accumulator_is_a_factor_of_16_bit_elements_as_it_is(columns: int) -> None:
    product_layout = accumulator_layout((128, columns), 2)
    factor = a_register_layout((128, columns), 2, 2)
    np.testing.assert_array_equal(product_layout.table(), factor.table())


# ---- factors in shared memory --------------------------------------------------------------------


def check(operand: SharedOperand, k_axis: int, across: list[tuple[int, int]]) -> None:
    """Instructions, `across` being where each begins and how far it goes, read what they should."""
    tile = operand.tile
    base = 5 * tile.alignment
    step = 32 // tile.element_bytes
    for (first, count), k in product(across, range(0, operand.k, step)):
        descriptor = operand.descriptor + (base + operand.offset(first, k) >> 4)
        found = addresses(descriptor, operand.k_major, count, tile.element_bytes)
        expected = np.empty_like(found)
        for i, kk in np.ndindex(found.shape):
            place = (k + kk, first + i) if k_axis == 0 else (first + i, k + kk)
            expected[i, kk] = base + tile.offset_of(place)
        np.testing.assert_array_equal(found, expected)


def pieces(columns: int) -> list[tuple[int, int]]:
    found = blocks(accumulator_layout((64, columns), 1))
    return [(block.column, block.columns) for block in found]


@pytest.mark.parametrize("depth", [16, 32, 48, 64, 128])
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
@pytest.mark.parametrize("columns", [16, 48, 96, 144, 192, 256, 320])
def test_a_second_factor_along_k(columns: int, depth: int, element_bytes: int) -> None:
    tile = SwizzledTile.of((columns, depth), element_bytes)
    if tile is None:
        assert depth * element_bytes % 32
        return
    operand = shared_operand(tile, 1)
    assert operand is not None and (operand.across, operand.k) == (columns, depth)
    check(operand, 1, pieces(columns))


@pytest.mark.parametrize("depth", [16, 32, 64, 128])
@pytest.mark.parametrize("columns", [16, 32, 48, 96, 144, 192, 256, 320])
def test_a_second_factor_across_k(columns: int, depth: int) -> None:
    tile = SwizzledTile.of((depth, columns), 2)
    assert tile is not None
    operand = shared_operand(tile, 0)
    assert operand is not None and (operand.across, operand.k) == (columns, depth)
    check(operand, 0, pieces(columns))


@pytest.mark.parametrize("depth", [16, 32, 64, 128])
@pytest.mark.parametrize(("rows", "warpgroups"), [(64, 1), (128, 1), (128, 2), (256, 2), (256, 4)])
@pytest.mark.parametrize("k_axis", [0, 1])
def test_a_first_factor(rows: int, warpgroups: int, depth: int, k_axis: int) -> None:
    shape = (depth, rows) if k_axis == 0 else (rows, depth)
    tile = SwizzledTile.of(shape, 2)
    assert tile is not None
    operand = shared_operand(tile, k_axis)
    assert operand is not None
    check(operand, k_axis, [(row, 64) for row in range(0, rows, 64)])
    # A warpgroup adds the same for each before it.
    share = rows // warpgroups
    for group, row in product(range(warpgroups), range(0, share, 64)):
        whole = operand.offset(group * share + row, 0)
        assert whole == group * operand.offset(share, 0) + operand.offset(row, 0)


def test_axes_of_extent_one_do_not_matter() -> None:
    flat, deep = SwizzledTile.of((128, 64), 2), SwizzledTile.of((1, 128, 1, 64), 2)
    assert flat is not None and deep is not None
    for axes in ((1, 3), (0, 1)):
        one, other = shared_operand(flat, axes[0]), shared_operand(deep, axes[1])
        assert one is not None and other is not None
        assert (one.k, one.across, one.descriptor) == (other.k, other.across, other.descriptor)
        assert one.offset(0, 32) == other.offset(0, 32)


@pytest.mark.parametrize(
    ("shape", "element_bytes", "k_axis"),
    [
        ((64, 64), 1, 0),  # only 16-bit elements may be contiguous across k
        ((64, 64), 4, 0),
        ((8, 64), 2, 0),  # shorter than an instruction
        ((2, 64, 64), 2, 1),  # an axis that is neither
        ((4, 64), 2, 1),  # rows of less than a pattern
    ],
)
def test_what_no_instruction_takes(shape: tuple[int, ...], element_bytes: int, k_axis: int) -> None:
    tile = SwizzledTile.of(shape, element_bytes)
    assert tile is not None and shared_operand(tile, k_axis) is None


def test_the_descriptor_of_a_known_kernel() -> None:
    # Rows of 128 bytes along k: stride 1024 bytes, leading offset 1 (not used), mode 1.
    tile = SwizzledTile.of((128, 64), 2)
    assert tile is not None
    operand = shared_operand(tile, 1)
    assert operand is not None
    assert operand.descriptor == 1 << 16 | 64 << 32 | 1 << 62
    assert [operand.offset(0, k) >> 4 for k in (0, 16, 32, 48)] == [0, 2, 4, 6]
