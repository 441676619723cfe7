"""Loads and stores of every kind, of each element type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from tests.programs.generate.use import IN_MEMORY, Array
from tests.programs.table import Arrays, Entry

_ROWS, _COLUMNS = 50, 75

_TEXT = """//! Generated: accesses to memory.

#[kernel(grid = [1])]
pub fn accesses(
    y0: &mut Tensor<{T}, {M}, {N}>,
    y1: &mut Tensor<{T}, {M}, {N}>,
    y2: &mut Tensor<{T}, {M}, {N}>,
    y3: &mut Tensor<{T}, {N}, {M}>,
    x: &Tensor<{T}, {M}, {N}>,
    s: &Tensor<{T}, 1>,
) {{
    let fill = s.load::<1>([0]).item();
    unsafe {{
        y0.store::<16, 64>([3, 1], x.load_or::<16, 64>([3, 1], fill));
        y0.store::<16, 64>([0, 0], x.load_or::<16, 64>([2, 1], fill));
        y1.store_at::<16, 32>([3, 5], x.load_at::<16, 32>([40, 60]));
        y1.store_at::<16, 32>([30, 50], x.load::<16, 32>([1, 1]));
        y2.store_unchecked::<16, 32>([1, 1], x.load_unchecked::<16, 32>([0, 1]));
        y3.store::<16, 16>([2, 1], x.t().load::<16, 16>([4, 3]));
        y3.store::<16, 16>([0, 2], x.permute::<1, 0>().load_at::<16, 16>([9, 1]));
    }}
}}

#[kernel]
pub fn parts<M: Dim, N: Dim>(
    z: Part<&mut Tensor<{T}, M, N>, 16, 32>,
    mut w: Part<&mut Tensor<{T}, M, N>, 16, 32>,
    x: &Tensor<{T}, M, N>,
) {{
    z.store(x.load_like(&z));
    let t = w.load();
    let v = x.load_at::<16, 32>([w.offset(0) + 1, w.offset(1)]);
    w.store(v);
    let smaller = w.sub::<8, 16>([1, 1]);
    smaller.store(x.load::<8, 16>([z.id(0), z.id(1)]));
    w.sub::<8, 16>([0, 1]).store(t.split::<0>().0.split::<1>().0);
}}
"""


def memory_programs() -> dict[str, tuple[str, Mapping[str, Entry]]]:
    """Texts and entries, by name: one program for each element type."""
    entries = {
        "accesses": Entry(_accesses, dims=({},)),
        "parts": Entry(_parts, dims=({"M": 33, "N": 70}, {"M": 16, "N": 32})),
    }
    return {
        f"memory_{element}": (_TEXT.format(T=element, M=_ROWS, N=_COLUMNS), entries)
        for element in IN_MEMORY
    }


def _tile(x: Array, start: tuple[int, int], shape: tuple[int, int], fill: Array) -> Array:
    tile = np.full(shape, fill, x.dtype)
    there = x[start[0] : start[0] + shape[0], start[1] : start[1] + shape[1]]
    tile[: there.shape[0], : there.shape[1]] = there
    return tile


def _put(y: Array, start: tuple[int, int], tile: Array) -> None:
    there = y[start[0] : start[0] + tile.shape[0], start[1] : start[1] + tile.shape[1]]
    there[...] = tile[: there.shape[0], : there.shape[1]]


def _accesses(a: Arrays) -> Mapping[str, Array]:
    y = [array.copy() for array in (a.y0, a.y1, a.y2, a.y3)]
    zero = np.zeros((), a.x.dtype)
    fill = a.s[0]
    tile = partial(_tile, a.x)
    _put(y[0], (48, 64), tile((48, 64), (16, 64), fill))
    _put(y[0], (0, 0), tile((32, 64), (16, 64), fill))
    _put(y[1], (3, 5), tile((40, 60), (16, 32), zero))
    _put(y[1], (30, 50), tile((16, 32), (16, 32), zero))
    _put(y[2], (16, 32), tile((0, 32), (16, 32), zero))
    _put(y[3], (32, 16), _tile(a.x.T, (64, 48), (16, 16), zero))
    _put(y[3], (0, 32), _tile(a.x.T, (9, 1), (16, 16), zero))
    return {f"y{number}": array for number, array in enumerate(y)}


def _parts(a: Arrays) -> Mapping[str, Array]:
    zero = np.zeros((), a.x.dtype)
    w = a.w.copy()
    rows, columns = w.shape
    for i in range(-(-rows // 16)):
        for j in range(-(-columns // 32)):
            here = 16 * i, 32 * j
            old = _tile(w, here, (16, 32), zero)
            new = _tile(a.x, (here[0] + 1, here[1]), (16, 32), zero)
            new[8:, 16:] = _tile(a.x, (8 * i, 16 * j), (8, 16), zero)
            new[:8, 16:] = old[:8, :16]
            _put(w, here, new)
    return {"z": a.x, "w": w}
