"""`gather` and `scatter` of each element type, atomic updates of each that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tests.programs.generate.use import FLOATS, IN_MEMORY, Array
from tests.programs.table import Arrays, Entry, _extreme

_ROWS, _COLUMNS = 24, 64

_CHOSEN = """//! Generated: elements that tiles of indices choose.

#[kernel(grid = [1])]
pub fn gathered(
    y0: &mut Tensor<{T}, 16, 32>,
    y1: &mut Tensor<{T}, 16, 32>,
    y2: &mut Tensor<{T}, 16, 32>,
    y3: &mut Tensor<{T}, 16, 32>,
    x: &Tensor<{T}, {M}, {N}>,
    rows: &Tensor<i32, 16>,
    columns: &Tensor<i16, 32>,
    cells: &Tensor<i64, 16, 32>,
) {{
    let (r, c, i) = (
        rows.load::<16>([0]), columns.load::<32>([0]), cells.load::<16, 32>([0, 0]),
    );
    unsafe {{
        y0.store([0, 0], x.gather::<16, 32>([r, 40]));
        y1.store([0, 0], x.gather::<16, 32>([r, c]));
        y2.store([0, 0], x.gather::<16, 32>([i, 3]));
        y3.store([0, 0], x.gather_unchecked::<16, 32>([r.clamp(0, 23), 16]));
    }}
}}

#[kernel(grid = [1])]
pub fn scattered(
    y0: &mut Tensor<{T}, {M}, {N}>,
    y1: &mut Tensor<{T}, {M}, {N}>,
    y2: &mut Tensor<{T}, {M}, {N}>,
    x: &Tensor<{T}, 16, 32>,
    rows: &Tensor<i32, 16>,
    columns: &Tensor<i32, 32>,
) {{
    let (t, r) = (x.load::<16, 32>([0, 0]), rows.load::<16>([0]));
    unsafe {{
        y0.scatter([r, 40], t);
        y1.scatter([r, columns.load::<32>([0])], t);
        y2.scatter_unchecked([iota::<i32, 16>() + 3, 16], t);
    }}
}}
"""


def chosen_programs() -> dict[str, tuple[str, Mapping[str, Entry]]]:
    """Texts and entries, by name."""
    indices = dict.fromkeys(("rows", "columns", "cells"), "indices")
    distinct = dict.fromkeys(("rows", "columns"), "distinct")
    entries = {
        "gathered": Entry(_gathered, dims=({},), data=indices),
        "scattered": Entry(_scattered, dims=({},), data=distinct),
    }
    texts = {f"chosen_{e}": _CHOSEN.format(T=e, M=_ROWS, N=_COLUMNS) for e in IN_MEMORY}
    return {name: (text, entries) for name, text in texts.items()}


def _picked(x: Array, rows: Array, columns: Array) -> Array:
    """Zero where a row or column is not there."""
    rows, columns = np.broadcast_arrays(rows.astype(np.int64), columns.astype(np.int64))
    inside = (rows >= 0) & (rows < x.shape[0]) & (columns >= 0) & (columns < x.shape[1])
    found = np.zeros(rows.shape, x.dtype)
    found[inside] = x[rows[inside], columns[inside]]
    return found


def _placed(y: Array, rows: Array, columns: Array, tile: Array) -> Array:
    rows, columns = np.broadcast_arrays(rows.astype(np.int64), columns.astype(np.int64))
    inside = (rows >= 0) & (rows < y.shape[0]) & (columns >= 0) & (columns < y.shape[1])
    found = y.copy()
    found[rows[inside], columns[inside]] = tile[inside]
    return found


def _gathered(a: Arrays) -> Mapping[str, Array]:
    rows, columns = a.rows[:, None], np.arange(32)
    return {
        "y0": _picked(a.x, rows, columns + 40),
        "y1": _picked(a.x, rows, a.columns),
        "y2": _picked(a.x, a.cells, columns + 3),
        "y3": _picked(a.x, rows.clip(0, 23), columns + 16),
    }


def _scattered(a: Arrays) -> Mapping[str, Array]:
    rows, columns = a.rows[:, None], np.arange(32)
    return {
        "y0": _placed(a.y0, rows, columns + 40, a.x),
        "y1": _placed(a.y1, rows, a.columns, a.x),
        "y2": _placed(a.y2, np.arange(16)[:, None] + 3, columns + 16, a.x),
    }


# ---- atomic updates ------------------------------------------------------------------------------

_ATOMIC = ("i32", "i64", "u32", "u64", "usize", *FLOATS)
_WAYS = ("", "_acq_rel", "_unchecked")
_COUNT = 64


def _updates(element: str) -> dict[str, Callable[..., Array]]:
    """What an element becomes, from what it was, the value, and what it is expected to be."""
    found: dict[str, Callable[..., Array]] = {
        "swap": lambda old, value, _: value,
        "fetch_add": lambda old, value, _: old + value,
        "fetch_min": lambda old, value, _: _lesser(old, value, 1),
        "fetch_max": lambda old, value, _: _lesser(old, value, -1),
    }
    if element in FLOATS:
        return found
    return found | {
        "fetch_and": lambda old, value, _: old & value,
        "fetch_or": lambda old, value, _: old | value,
        "fetch_xor": lambda old, value, _: old ^ value,
        "compare_exchange": lambda old, value, expected: np.where(old == expected, value, old),
    }


def _lesser(old: Array, value: Array, sign: int) -> Array:
    if old.dtype.kind in "iu":
        return np.minimum(old, value) if sign == 1 else np.maximum(old, value)
    return _extreme(old, value, sign, numbers=True)


def atomic_programs() -> dict[str, tuple[str, Mapping[str, Entry]]]:
    """Texts and entries, by name: every update in each of its forms, and loads."""
    found = {}
    for element in _ATOMIC:
        text = "//! Generated: atomic updates.\n" + "".join(_updating(element, w) for w in _WAYS)
        entries = {
            f"updates{way}": Entry(
                partial(_updated, element, way),
                dims=({},),
                data={
                    "ids": "permutation" if way == "_unchecked" else "distinct",
                    "x": "tame", "e": "tame",
                    **{f"a{number}": "tame" for number in range(len(_updates(element)))},
                },
            )
            for way in _WAYS
        }  # fmt: skip
        found[f"atomic_{element}"] = text, entries
    return found


def _updating(element: str, way: str) -> str:
    names = list(_updates(element))
    tensors = [
        f"    {name}{n}: {kind.format(f'Tensor<{element}, {_COUNT}>')},"
        for n in range(len(names))
        for name, kind in (("y", "&mut {}"), ("a", "&Atomic<{}>"))
    ]
    lines = []
    for number, name in enumerate(names):
        values = "e, t" if name == "compare_exchange" else "t"
        lines.append(f"y{number}.store([0], a{number}.{name}{way}([i], {values}));")
    load = "load_unchecked" if way == "_unchecked" else "load"
    return "\n".join(
        [
            "",
            "#[kernel(grid = [1])]",
            f"pub fn updates{way}(",
            *tensors,
            f"    z: &mut Tensor<{element}, {_COUNT}>,",
            f"    x: &Tensor<{element}, {_COUNT}>,",
            f"    e: &Tensor<{element}, {_COUNT}>,",
            f"    ids: &Tensor<i32, {_COUNT}>,",
            ") {",
            f"    let (t, e) = (x.load::<{_COUNT}>([0]), e.load::<{_COUNT}>([0]));",
            f"    let i = ids.load::<{_COUNT}>([0]);",
            "    unsafe {",
            *(f"        {line}" for line in lines),
            f"        z.store([0], a0.{load}([i]));",
            "    }",
            "}",
            "",
        ]
    )


def _updated(element: str, way: str, a: Arrays) -> Mapping[str, Array]:
    ids = a.ids.astype(np.int64)
    inside = (ids >= 0) & (ids < _COUNT)
    places = ids[inside]
    found = {}
    for number, update in enumerate(_updates(element).values()):
        before = getattr(a, f"a{number}")
        old = np.zeros(_COUNT, before.dtype)
        old[inside] = before[places]
        after = before.copy()
        after[places] = update(before[places], a.x[inside], a.e[inside]).astype(before.dtype)
        found |= {f"y{number}": old, f"a{number}": after}
    found["z"] = np.zeros(_COUNT, a.x.dtype)
    found["z"][inside] = a.x[inside]
    return found
