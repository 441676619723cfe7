"""Layouts of matrix products, against the tables of the PTX ISA written out as formulas, and plans
that bring factors there from memory."""

from __future__ import annotations

from itertools import product as every
from math import prod

import numpy as np
import pytest

from tilec.layout import Layout, blocked, contiguous_elements
from tilec.layout.conversion import RegisterPermutation, plan_conversion
from tilec.layout.fma import (
    fma_accumulator_layout,
    fma_operand_layouts,
    is_fma_accumulator_layout,
)
from tilec.layout.matrix_access import MatrixAccesses
from tilec.layout.mma import (
    KOrder,
    Mma,
    accumulator_layout,
    is_accumulator_layout,
    k_order,
    operand_layouts,
)
from tilec.layout.products import (
    elements_per_word,
    fma_steps,
    lanes_beyond,
    mma_steps,
)
from tilec.layout.shared_memory import shared_memory_plan
from tilec.layout.simulate import simulate_conversion

GROUP = np.arange(32) >> 2  # groupID
THREAD = np.arange(32) % 4  # threadID_in_group

F16, F16_SHORT = Mma(16, 8, 16, 2), Mma(16, 8, 8, 2)
TF32, TF32_SHORT = Mma(16, 8, 8, 1), Mma(16, 8, 4, 1)
BYTES, BYTES_SHORT = Mma(16, 8, 32, 4), Mma(16, 8, 16, 4)
F64 = Mma(8, 8, 4, 1)
ALL = (F16, F16_SHORT, TF32, TF32_SHORT, BYTES, BYTES_SHORT, F64)


# ---- one fragment: "Matrix fragments for mma.m16n8k16 with floating point type", and so on -------


def f16_a(i: int):  # type: ignore[no-untyped-def]
    row = GROUP if i in (0, 1, 4, 5) else GROUP + 8
    return row, THREAD * 2 + (i & 1) + (8 if i >= 4 else 0)


def f16_b(i: int):  # type: ignore[no-untyped-def]
    return THREAD * 2 + (i & 1) + (8 if i >= 2 else 0), GROUP


def f16_short_a(i: int):  # type: ignore[no-untyped-def]
    return GROUP if i < 2 else GROUP + 8, THREAD * 2 + (i & 1)


def f16_short_b(i: int):  # type: ignore[no-untyped-def]
    return THREAD * 2 + (i & 1), GROUP


def tf32_a(i: int):  # type: ignore[no-untyped-def]
    return GROUP if i in (0, 2) else GROUP + 8, THREAD if i < 2 else THREAD + 4


def tf32_b(i: int):  # type: ignore[no-untyped-def]
    return THREAD if i == 0 else THREAD + 4, GROUP


def bytes_a(i: int):  # type: ignore[no-untyped-def]
    row = GROUP if i < 4 or 8 <= i < 12 else GROUP + 8
    return row, THREAD * 4 + (i & 3) + (16 if i >= 8 else 0)


def bytes_b(i: int):  # type: ignore[no-untyped-def]
    return THREAD * 4 + (i & 3) + (16 if i >= 4 else 0), GROUP


def f64_c(i: int):  # type: ignore[no-untyped-def]
    return GROUP, THREAD * 2 + (i & 1)


def c(i: int):  # type: ignore[no-untyped-def]
    return GROUP if i < 2 else GROUP + 8, THREAD * 2 + (i & 1)


TABLES = [
    (F16, f16_a, f16_b, c),
    (F16_SHORT, f16_short_a, f16_short_b, c),
    (TF32, tf32_a, tf32_b, c),
    (TF32_SHORT, tf32_a, tf32_b, c),
    (BYTES, bytes_a, bytes_b, c),
    (BYTES_SHORT, bytes_a, bytes_b, c),
    (F64, lambda i: (GROUP, THREAD), lambda i: (THREAD, GROUP), f64_c),
]


@pytest.mark.parametrize(("mma", "a", "b", "c"), TABLES)
def test_a_fragment_is_as_the_manual_says(mma, a, b, c) -> None:  # type: ignore[no-untyped-def]
    sums = accumulator_layout((mma.m, mma.n), 1, mma)
    layouts = (*operand_layouts(sums, mma, mma.k), sums)
    counts = mma.m * mma.k // 32, mma.k * mma.n // 32, mma.m * mma.n // 32
    for layout, formula, count in zip(layouts, (a, b, c), counts, strict=True):
        assert layout.registers == count
        for i in range(count):
            expected = np.stack(np.broadcast_arrays(*formula(i)), axis=-1)
            np.testing.assert_array_equal(layout.table()[0, :, i], expected)


# ---- whole tiles ---------------------------------------------------------------------------------

SHAPES = [(64, 64), (128, 128), (16, 8), (1, 1), (2, 64), (64, 1), (48, 96), (4, 8), (32, 16)]
DEPTHS = (1, 2, 4, 8, 16, 32, 48, 64)


def _lengths(mma: Mma, depth: int) -> bool:
    """Whether this is the instruction that is taken for a tile of so many k."""
    return depth % mma.k == 0 or (depth & -depth) < min(o.k for o in ALL if o.word == mma.word)


@pytest.mark.parametrize("mma", ALL)
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("batch", [(), (4,)])
def test_instructions_compute_the_product(mma: Mma, warps: int, batch: tuple[int, ...]) -> None:
    """Each thread's registers are summed as an instruction would: element by element, over what
    the four lanes of a group, and those of a column, hold."""
    for (rows, columns), depth in every(SHAPES[2:], DEPTHS):
        if not _lengths(mma, depth) or rows * columns * depth > 20_000:
            continue
        sums = accumulator_layout((*batch, rows, columns), warps, mma)
        left, right = operand_layouts(sums, mma, depth)
        _check_steps(left, right, sums, mma)


@pytest.mark.parametrize("mma", [F16, F16_SHORT, TF32, BYTES])
@pytest.mark.parametrize("neighbours", [4, 8, 16])
def test_another_order_along_k_gives_the_same_product(mma: Mma, neighbours: int) -> None:
    """A thread has neighbours, and what they meet is the same neighbours of the other factor."""
    for shape, depth in every(((8, 16, 16), (64, 16), (16, 8)), (mma.k, 2 * mma.k, 4 * mma.k, 96)):
        sums = accumulator_layout(shape, 8 if len(shape) == 3 else 2, mma)
        order = k_order(mma, depth, neighbours)
        left, right = operand_layouts(sums, mma, depth, order)
        _check_steps(left, right, sums, mma, order)
        width = max(mma.word, min(neighbours, (depth & -depth) // 4))
        assert contiguous_elements(left, len(shape) - 1) == width
        tables = left.table(), right.table()
        for step in mma_steps(left, right, sums, mma, order):
            firsts = [word for word in step.a[:: 2 if mma.m == 16 else 1] if word is not None]
            for a, b in zip(firsts, step.b, strict=True):
                assert b is not None
                registers = (slice(x * mma.word, (x + 1) * mma.word) for x in (a, b))
                ks = [
                    t[:, :, r][..., x] for t, r, x in zip(tables, registers, (-1, -2), strict=True)
                ]
                np.testing.assert_array_equal(*ks)


def _check_steps(
    left: Layout, right: Layout, sums: Layout, mma: Mma, order: KOrder | None = None
) -> None:
    """The k that meet in each accumulator are all k of the tile, each once."""
    depth = left.shape[-1]
    word = elements_per_word(mma, depth)
    tables = [layout.table() for layout in (left, right, sums)]
    zero_lanes = (np.arange(32) & lanes_beyond(mma, depth)) != 0
    met = np.zeros((sums.warps, sums.registers), np.int64)
    for step in mma_steps(left, right, sums, mma, order):
        ks = np.zeros(sums.warps, np.int64)
        for warp in range(sums.warps):
            seen: set[int] = set()
            for a in filter(lambda a: a is not None, step.a):
                places = tables[0][warp][~zero_lanes][:, a * word : (a + 1) * word]
                seen |= set(places[..., -1].ravel().tolist())
            ks[warp] = len(seen)
            others: set[int] = set()
            for b in filter(lambda b: b is not None, step.b):
                places = tables[1][warp][~zero_lanes][:, b * word : (b + 1) * word]
                others |= set(places[..., -2].ravel().tolist())
            assert seen == others, "both factors bring the same k"
        for register in step.c:
            if register is None:
                continue
            met[:, register] += ks
            _check_rows(tables, step, register, word)
    assert (met == depth).all()


def _check_rows(tables, step, register: int, word: int) -> None:  # type: ignore[no-untyped-def]
    """Rows and batches of the first factor, columns of the second, are those of the sums."""
    place = list(step.c).index(register)
    upper = 1 if place >= 2 else 0  # the lower eight rows of the fragment
    a = step.a[upper if len(step.a) > 1 else 0]
    if a is None:
        assert upper, "only what is beyond the tile is left out"
        return
    np.testing.assert_array_equal(tables[0][:, :, a * word, :-1], tables[2][:, :, register, :-1])
    # Lane l of the second factor has column l >> 2; sums of lane l are of column 2 (l % 4).
    columns = tables[1][:, :, step.b[0] * word]
    lanes = (np.arange(32) % 4) * 8 + 4 * (place & 1)
    np.testing.assert_array_equal(columns[:, lanes, -1], tables[2][:, :, register, -1])
    np.testing.assert_array_equal(columns[..., :-2], tables[2][:, :, register, :-2])


def test_a_fragment_that_is_cut_along_k_has_zeros_in_some_lanes() -> None:
    assert lanes_beyond(F16_SHORT, 8) == 0
    assert lanes_beyond(F16_SHORT, 4) == 0b10
    assert lanes_beyond(F16_SHORT, 2) == lanes_beyond(F16_SHORT, 1) == 0b11
    assert elements_per_word(F16_SHORT, 1) == 1
    assert elements_per_word(F16, 48) == 2


def test_warps_share_rows_and_columns() -> None:
    def warp_tile(shape: tuple[int, int], warps: int) -> tuple[int, ...]:
        table = accumulator_layout(shape, warps, F16).table()[0]
        return tuple(len(set(table[..., axis].ravel().tolist())) for axis in (0, 1))

    assert warp_tile((128, 128), 8) == (32, 64)
    assert warp_tile((64, 64), 4) == (32, 32)
    assert warp_tile((16, 256), 8) == (16, 32)
    assert warp_tile((256, 8), 8) == (32, 8)
    # More warps than fragments: some hold copies.
    assert warp_tile((16, 16), 8) == (16, 8)


def test_what_is_no_sum_of_instructions_is_told() -> None:
    sums = accumulator_layout((64, 64), 4, F16)
    assert is_accumulator_layout(sums, F16) and is_accumulator_layout(sums, TF32)
    # Two of eight rows are one of sixteen, but not the other way round.
    assert is_accumulator_layout(sums, F64)
    assert not is_accumulator_layout(accumulator_layout((64, 64), 4, F64), F16)
    assert not is_accumulator_layout(blocked((64, 64), 4, (1, 0), 4), F16)
    assert is_accumulator_layout(accumulator_layout((64, 64), 4, F16, rows_first=True), F16)


# ---- products by FMA -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, (4, 16, 16), (16, 1, 2)])
def test_threads_have_the_rows_and_columns_that_they_multiply(shape: tuple[int, ...]) -> None:
    for warps, depth in every((1, 8), (1, 8, 48)):
        sums = fma_accumulator_layout(shape, warps)
        assert is_fma_accumulator_layout(sums)
        left, right = fma_operand_layouts(sums, depth)
        a, b, c = (layout.table() for layout in (left, right, sums))
        steps = fma_steps(left, right, sums)
        assert len(steps) == sums.registers * depth
        ks: dict[int, list[int]] = {register: [] for register in range(sums.registers)}
        for step in steps[:: max(1, len(steps) // 200)]:
            x, y, z = a[:, :, step.a], b[:, :, step.b], c[:, :, step.c]
            assert (x[..., :-1] == z[..., :-1]).all() and (x[..., -1] == y[..., -2]).all()
            assert (y[..., :-2] == z[..., :-2]).all() and (y[..., -1] == z[..., -1]).all()
        for step in steps:
            ks[step.c].append(int(a[0, 0, step.a, -1]))
        assert all(found == list(range(depth)) for found in ks.values()), "k in order"


# ---- from memory to fragments --------------------------------------------------------------------


def _from_memory(shape: tuple[int, int], warps: int, order: tuple[int, int], size: int) -> Layout:
    """How a tile is loaded: 16 bytes a thread, or less where threads would have none."""
    spread = prod(extent & -extent for extent in shape)
    vector = min(16 // size, shape[order[0]] & -shape[order[0]], max(1, spread // (warps * 32)))
    return blocked(shape, warps, order, vector)


@pytest.mark.parametrize("extent", [16, 32, 48, 64, 96, 128, 256])
@pytest.mark.parametrize("depth", [16, 32, 64])
@pytest.mark.parametrize("warps", [1, 4, 8])
def test_factors_of_16_bits_are_read_as_matrices_without_conflicts(
    extent: int, depth: int, warps: int
) -> None:
    sums = accumulator_layout((extent, extent), warps, F16)
    for layout in operand_layouts(sums, F16, depth):
        for order in ((0, 1), (1, 0)):
            source = _from_memory(layout.shape, warps, order, 2)
            plan = shared_memory_plan(source, layout, 2)
            assert np.array_equal(simulate_conversion(plan, source.elements()), layout.elements())
            assert isinstance(plan.read, MatrixAccesses)
            assert plan.wavefronts == _least_wavefronts(plan, 2)


def _least_wavefronts(plan, size: int) -> int:  # type: ignore[no-untyped-def]
    """What 128 bytes at a time would take; less than that in an access takes one as well."""
    total = 0
    for side in (plan.write, plan.read):
        for access in side.accesses:
            lanes = sum(side.takes_part(lane, 0) for lane in range(32))
            each = 16 if isinstance(side, MatrixAccesses) else size * len(access.registers)
            total += -(-each * lanes // 128)
    return total


@pytest.mark.parametrize("has_stmatrix", [False, True])
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_products_go_to_memory_without_conflicts(has_stmatrix: bool, order) -> None:  # type: ignore[no-untyped-def]
    for shape, warps in (((64, 64), 4), ((128, 128), 8), ((32, 96), 2)):
        sums = accumulator_layout(shape, warps, F16)
        target = _from_memory(shape, warps, order, 2)
        plan = shared_memory_plan(sums, target, 2, has_stmatrix=has_stmatrix)
        assert np.array_equal(simulate_conversion(plan, sums.elements()), target.elements())
        assert not isinstance(plan.write, MatrixAccesses) or has_stmatrix
        assert plan.wavefronts == _least_wavefronts(plan, 2)


def test_factors_along_k_of_other_widths_are_read_as_matrices_too() -> None:
    for mma, size in ((TF32, 4), (BYTES, 1)):
        sums = accumulator_layout((64, 64), 4, mma)
        left, right = operand_layouts(sums, mma, 64)
        for layout, order in ((left, (1, 0)), (right, (0, 1))):
            plan = shared_memory_plan(_from_memory(layout.shape, 4, order, size), layout, size)
            assert isinstance(plan.read, MatrixAccesses) and not plan.read.transposed
            assert plan.wavefronts == _least_wavefronts(plan, size)


def test_stmatrix_is_used_where_it_is_best() -> None:
    """Registers of one thread that lie in different rows: no vector store would do."""
    sums = accumulator_layout((16, 16), 1, F16)
    plan = shared_memory_plan(sums, _from_memory((16, 16), 1, (1, 0), 2), 2, has_stmatrix=True)
    assert isinstance(plan.write, MatrixAccesses) or isinstance(plan.read, MatrixAccesses)


# ---- chains --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "inner", "warps"), [(64, 32, 4), (128, 64, 4), (128, 64, 8)])
def test_a_product_becomes_a_factor_in_registers(rows: int, inner: int, warps: int) -> None:
    first = accumulator_layout((rows, inner), warps, F16, rows_first=True)
    second = accumulator_layout((rows, 128), warps, F16, rows_first=True)
    left, _ = operand_layouts(second, F16, inner)
    plan = plan_conversion(first, left, 2)
    assert isinstance(plan, RegisterPermutation)
    # Words stay words: nothing is packed.
    assert all(b == a + 1 for a, b in zip(plan.registers[::2], plan.registers[1::2], strict=True))
