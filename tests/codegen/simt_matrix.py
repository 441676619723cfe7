"""What the instructions for matrices do, lane by lane, as the PTX ISA writes it.

Fragments of `mma` are written out here as the ISA's formulas, apart from `tilec.layout`. Data of a
warp is [lanes, elements]; `groupID` is lane >> 2, `threadID_in_group` lane % 4.
Source:   PTX ISA, "Matrix Fragments for mma.m16n8k16 …" and the other shapes
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

LANE = np.arange(32)
GROUP, THREAD = LANE >> 2, LANE % 4


def a_place(bits: int, i: int) -> tuple[Array, Array]:
    """(row, column) of element a_i for every lane."""
    if bits == 64:
        return GROUP, THREAD
    word = 32 // bits  # elements of a register
    register, inside = divmod(i, word)
    # Registers alternate between the upper and the lower eight rows, then go on along k.
    row = GROUP + (8 if register % 2 else 0)
    column = THREAD * word + inside + (4 * word if register >= 2 else 0)
    return row, column


def b_place(bits: int, i: int) -> tuple[Array, Array]:
    """(row, column) of element b_i for every lane."""
    if bits == 64:
        return THREAD, GROUP
    word = 32 // bits
    register, inside = divmod(i, word)
    return THREAD * word + inside + (4 * word if register else 0), GROUP


def c_place(i: int) -> tuple[Array, Array]:
    """(row, column) of element c_i for every lane."""
    return GROUP + (8 if i >= 2 else 0), THREAD * 2 + (i & 1)


def mma(bits: int, shape: tuple[int, int, int], a: Array, b: Array, c: Array) -> Array:
    """d = a b + c of one warp, exactly as far as float64 (int64) goes.

    Shapes:   a, b, c [lanes, elements], `bits` wide each of a and b; d as c
    """
    m, n, k = shape
    wide = np.int64 if a.dtype.kind in "iu" else np.float64
    left, right = np.full((m, k), 99, wide), np.full((k, n), 99, wide)
    for i in range(a.shape[1]):
        left[a_place(bits, i)] = a[:, i]
    for i in range(b.shape[1]):
        right[b_place(bits, i)] = b[:, i]
    product = left @ right
    d = np.zeros(c.shape, wide)
    for i in range(c.shape[1]):
        d[:, i] = product[c_place(i)] + c[:, i].astype(wide)
    return d


def load_matrices(rows: Array, *, transposed: bool) -> Array:
    """`ldmatrix` of one warp.

    Shapes:   rows [matrices, 8, 8] of 16 bits each, [matrix, row, column] -> [lanes, matrices, 2]
    Source:   PTX ISA, "ldmatrix": thread t gets row t / 4, elements 2 (t % 4) and the next
    """
    if transposed:
        rows = rows.transpose(0, 2, 1)
    return rows[:, GROUP[:, None], THREAD[:, None] * 2 + np.arange(2)].transpose(1, 0, 2)


def store_matrices(held: Array, *, transposed: bool) -> Array:
    """`stmatrix` of one warp: the rows that it writes, from what lanes hold; as `load_matrices`."""
    rows = np.zeros((held.shape[1], 8, 8), held.dtype)
    rows[:, GROUP[:, None], THREAD[:, None] * 2 + np.arange(2)] = held.transpose(1, 0, 2)
    return rows.transpose(0, 2, 1) if transposed else rows
