"""Tiles put together, cut and turned, thread by thread, in every layout that differs."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_on_threads import agree, numbers

from tilec.ops import pieces

# Extents of what is put together; they come to a legal extent.
PAIRS = [(1, 1), (16, 16), (64, 32), (16, 80), (80, 48), (512, 512)]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("warps", [1, 8])
def test_cat_of_any_extents(pair: tuple[int, int], axis: int, warps: int) -> None:
    first, second = pair
    other = 4 if sum(pair) > 128 else 16
    shapes = [(n, other) if axis == 0 else (other, n) for n in (first, second, first + second)]
    a, b, z = (", ".join(map(str, shape)) for shape in shapes)
    agree(
        f"""#[kernel]
        #[hint(warps = {warps})]
        pub fn k(z: Part<&mut Tensor<f32, {z}>, {z}>, a: &Tensor<f32, {a}>, b: &Tensor<f32, {b}>) {{
            z.store(cat::<{axis}>(a.load::<{a}>([0, 0]), b.load::<{b}>([0, 0])));
        }}""",
        z=numbers(*shapes[2]), a=numbers(*shapes[0]), b=numbers(*shapes[1]),
    )  # fmt: skip


@pytest.mark.parametrize("extent", [2, 32, 96, 512])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("warps", [1, 8])
def test_split_and_back(extent: int, axis: int, warps: int) -> None:
    other = 4 if extent > 192 else 16
    shape = (extent, other) if axis == 0 else (other, extent)
    text = ", ".join(map(str, shape))
    agree(
        f"""#[kernel]
        #[hint(warps = {warps})]
        pub fn k<N: Dim>(z: Part<&mut Tensor<f16, N, {shape[1]}>, {text}>,
                         x: &Tensor<f16, N, {shape[1]}>) {{
            let (a, b) = (x.load_like(&z) * 2.0).split::<{axis}>();
            z.store(cat::<{axis}>(b - 1.0, a + b.sum::<{1 - axis}>()));
        }}""",
        z=numbers(shape[0] + 1, shape[1], dtype=np.float16),
        x=numbers(shape[0] + 1, shape[1], dtype=np.float16),
    )


ELEMENTS = {"f32": np.float32, "i8": np.int8, "i64": np.int64, "bool": np.bool_, "u16": np.uint16}


@pytest.mark.parametrize("extent", [1, 2, 64, 80, 128])
@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.parametrize(("warps", "element"), [*product([1, 8], ["f32"]), (4, "i8"), (4, "bool"),
                                                (4, "i64"), (2, "u16")])  # fmt: skip
def test_flip(extent: int, axis: int, warps: int, element: str) -> None:
    shape = tuple(extent if a == axis else n for a, n in enumerate((4, 2, 16)))
    text = ", ".join(map(str, shape))
    zeros = ", ".join("0" * 3)
    agree(
        f"""#[kernel(grid = [1])]
        #[hint(warps = {warps})]
        pub fn k(z: &mut Tensor<{element}, {text}>, x: &Tensor<{element}, {text}>) {{
            unsafe {{ z.store([{zeros}], x.load::<{text}>([{zeros}]).flip::<{axis}>()); }}
        }}""",
        z=numbers(*shape, dtype=ELEMENTS[element]), x=numbers(*shape, dtype=ELEMENTS[element]),
    )  # fmt: skip


def test_flip_in_loops_and_behind_other_layouts() -> None:
    agree(
        """pub fn k<M: Dim>(
            z: Part<&mut Tensor<f32, M, 64>, 16, 64>, x: &Tensor<f32, M, 64>, n: i32,
        ) {
            let mut t = x.load_like(&z);
            for i in 0..n {
                t = (t.t().flip::<1>().t() * 0.5).flip::<1>() + t.sum::<1>().flip::<0>();
            }
            z.store(t);
        }""",
        z=numbers(33, 64), x=numbers(33, 64), n=3,
    )  # fmt: skip


def test_rope_in_both_forms() -> None:
    agree(
        """pub fn k<M: Dim>(
            z: Part<&mut Tensor<bf16, M, 64>, 16, 64>, w: Part<&mut Tensor<bf16, M, 64>, 16, 64>,
            x: &Tensor<bf16, M, 64>, cos: &Tensor<f32, 32>, sin: &Tensor<f32, 32>,
        ) {
            let t = x.load_like(&z).to::<f32>();
            let c = cos.load::<32>([0]).expand::<0>();
            let s = sin.load::<32>([0]).expand::<0>();
            let (a, b) = t.split::<1>();
            z.store(cat::<1>(a * c - b * s, b * c + a * s).to::<bf16>());
            let (even, odd) = t.reshape::<16, 32, 2>().split::<2>();
            let c3 = c.expand::<2>();
            let s3 = s.expand::<2>();
            let turned = cat::<2>(even * c3 - odd * s3, odd * c3 + even * s3);
            w.store(turned.reshape::<16, 64>().to::<bf16>());
        }""",
        **_rope(),
    )


def _rope() -> dict[str, Any]:
    bf16 = ml_dtypes.bfloat16
    return {
        "z": numbers(33, 64, dtype=bf16), "w": numbers(33, 64, dtype=bf16),
        "x": numbers(33, 64, dtype=bf16), "cos": numbers(32), "sin": numbers(32),
    }  # fmt: skip


@pytest.mark.parametrize("piece_bytes", [256, 512, 4096])
@pytest.mark.parametrize(("element", "shape"), [("f32", (16, 48)), ("i8", (64, 32)),
                                                ("f64", (2, 96)), ("bool", (32, 16))])  # fmt: skip
def test_what_shared_memory_cannot_hold_goes_through_it_in_pieces(
    piece_bytes: int, element: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", piece_bytes)
    rows, columns = shape
    dtype = {**ELEMENTS, "f64": np.float64}[element]
    flat, half = rows * columns, rows * columns // 2
    agree(
        f"""#[kernel]
        #[hint(warps = 4)]
        pub fn k(
            z: Part<&mut Tensor<{element}, {columns}, {rows}>, {columns}, {rows}>,
            w: Part<&mut Tensor<{element}, 2, {half}>, 2, {half}>,
            v: Part<&mut Tensor<{element}, {rows}, {columns}>, {rows}, {columns}>,
            x: &Tensor<{element}, {rows}, {columns}>,
            y: &Tensor<{element}, {flat}>,
        ) {{
            let t = x.load::<{rows}, {columns}>([0, 0]);
            z.store(t.t());
            w.store(t.reshape::<2, {half}>());
            v.store(y.load::<{flat}>([0]).flip::<0>().reshape::<{rows}, {columns}>());
        }}""",
        z=numbers(columns, rows, dtype=dtype), w=numbers(2, half, dtype=dtype),
        v=numbers(rows, columns, dtype=dtype), x=numbers(rows, columns, dtype=dtype),
        y=numbers(flat, dtype=dtype),
    )  # fmt: skip
