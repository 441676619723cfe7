"""`gather` and `scatter` on the CPU, element by element as they are defined."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from one_use import Use

from tests.interpret.executed import launch
from tilec.interpret.memory import view_of
from tilec.ops.call import Receiver
from tilec.types import F32, UNIT, TensorType

Array = Any


def gathered(x: Array, indices: list[Array], shape: tuple[int, ...]) -> Array:
    """What a gather gives: `indices` are of `shape`, one an axis."""
    out = np.zeros(shape, x.dtype)
    for place in product(*map(range, shape)):
        at = [int(index[place]) for index in indices]
        if all(0 <= i < extent for i, extent in zip(at, x.shape, strict=True)):
            out[place] = x[tuple(at)]
    return out


def scattered(y: Array, indices: list[Array], tile: Array) -> Array:
    """What a scatter leaves: one write after the other, in row-major order."""
    out = y.copy()
    for place in product(*map(range, tile.shape)):
        at = [int(index[place]) for index in indices]
        if all(0 <= i < extent for i, extent in zip(at, y.shape, strict=True)):
            out[tuple(at)] = tile[place]
    return out


def steps(start: int, shape: tuple[int, ...], axis: int) -> Array:
    """What a scalar stands for along an axis."""
    return start + np.indices(shape)[axis]


def along(index: Array, shape: tuple[int, ...], axis: int) -> Array:
    """What a tile of rank 1 stands for along an axis."""
    return index.astype(object)[np.indices(shape)[axis]]


GATHER = """
#[kernel(grid = [1])]
pub fn k<A: Dim, B: Dim, M: Dim, N: Dim>(
    z: &mut Tensor<{element}, A, B>,
    x: &Tensor<{element}, M, N>,
    r: &Tensor<{index}, A>,
    e: &Tensor<i64, A, B>,
    c: i64,
) {{
    let (rows, each) = (r.load::<8>([0]), e.load::<8, 4>([0, 0]));
    unsafe {{ z.store([0, 0], {gather}); }}
}}
"""
INDICES = {
    "i32": [3, -1, 0, 6, 5, 3, -(2**31), 2**31 - 1],
    "u32": [3, 2**32 - 1, 0, 6, 5, 3, 2**31, 4],
    "i8": [3, -1, 0, 6, 5, 3, -128, 127],
    "u8": [3, 255, 0, 6, 5, 3, 128, 127],
    "i64": [3, -1, 0, 6, 5, 3, -(2**63), 2**63 - 1],
    "u64": [3, 2**64 - 1, 0, 6, 5, 3, 2**63, 1],
    "usize": [3, -1, 0, 6, 5, 3, -(2**63), 2**63 - 1],
}
NUMPY = {"i32": "i4", "u32": "u4", "i8": "i1", "u8": "u1", "i64": "i8", "u64": "u8", "usize": "i8"}
SHAPE = (8, 4)


def matrix(rows: int, columns: int) -> Array:
    return np.arange(1, rows * columns + 1, dtype="f4").reshape(rows, columns)


def each(rows: int, columns: int) -> Array:
    """Indices for each element, inside and outside of this many."""
    return np.random.default_rng(rows + columns).integers(-2, columns + 2, SHAPE)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("start", [0, -2, 3, 2**62])
def test_a_tile_of_rank_1_chooses_along_its_axis(index: str, start: int) -> None:
    text = GATHER.format(element="f32", index=index, gather="x.gather::<8, 4>([rows, c])")
    x, r = matrix(6, 5), np.array(INDICES[index], NUMPY[index])
    z = np.full(SHAPE, -9, "f4")
    launch(text, "k", z=z, x=x, r=r, e=each(6, 5), c=start)
    wanted = gathered(x, [along(r, SHAPE, 0), steps(start, SHAPE, 1)], SHAPE)
    np.testing.assert_array_equal(z, wanted)


def test_index_tiles_of_each_kind_at_once() -> None:
    x, r, e = matrix(6, 5), np.array(INDICES["i32"], "i4"), each(6, 5)
    rows = along(r, SHAPE, 0)
    for written, indices in {
        "[rows, each]": [rows, e],
        "[rows.expand::<1>(), each]": [rows, e],
        "[each, c]": [e, steps(1, SHAPE, 1)],
        "[c, each]": [steps(1, SHAPE, 0), e],
        "[each, each]": [e, e],
        "[rows, iota::<u8, 4>().flip::<0>()]": [rows, 3 - np.indices(SHAPE)[1]],
        "[iota::<u8, 1>(), each]": [np.zeros(SHAPE, int), e],
        "[c, c]": [steps(1, SHAPE, 0), steps(1, SHAPE, 1)],
    }.items():
        text = GATHER.format(element="f32", index="i32", gather=f"x.gather::<8, 4>({written})")
        z = np.full(SHAPE, -9, "f4")
        launch(text, "k", z=z, x=x, r=r, e=e, c=1)
        np.testing.assert_array_equal(z, gathered(x, indices, SHAPE), err_msg=written)


@pytest.mark.parametrize("extents", [(0, 5), (6, 0), (0, 0), (1, 1)])
def test_gathers_of_empty_and_small_tensors(extents: tuple[int, int]) -> None:
    text = GATHER.format(element="f32", index="i32", gather="x.gather::<8, 4>([rows, each])")
    x, r, e = matrix(*extents), np.arange(-1, 7, dtype="i4"), each(6, 5)
    z = np.full(SHAPE, -9, "f4")
    launch(text, "k", z=z, x=x, r=r, e=e, c=0)
    np.testing.assert_array_equal(z, gathered(x, [along(r, SHAPE, 0), e], SHAPE))


@pytest.mark.parametrize(
    ("element", "kind"), [("u32", "u4"), ("bool", "?"), ("bf16", ml_dtypes.bfloat16), ("u8", "u1")]
)
def test_elements_are_read_as_they_are_through_views(element: str, kind: Any) -> None:
    gather = "x.t().gather::<8, 4>([each, rows.reshape::<2, 4>().max::<0>().reshape::<4>()])"
    text = GATHER.format(element=element, index="i32", gather=gather)
    # Rows apart: the strides are not those of the extents.
    x = (np.arange(1, 61, dtype="u4") * 2**26).reshape(6, 10)
    x = x.astype(kind)[:, :5] if kind != "u1" else (x >> 24).astype(kind)[:, :5]
    r, e = np.array(INDICES["i32"], "i4"), each(5, 6)
    z = np.ones(SHAPE, kind)
    launch(text, "k", z=z, x=x, r=r, e=e, c=0)
    columns = r.reshape(2, 4).max(0)
    wanted = gathered(x.T, [e, along(columns, SHAPE, 1)], SHAPE)
    assert z.tobytes() == wanted.tobytes()


def test_a_tensor_of_rank_0_has_one_element() -> None:
    text = """
    #[kernel(grid = [1])]
    pub fn k(y: &mut Tensor<f32>) { unsafe { y.scatter([], 3.5); } }
    """
    y = np.zeros((), "f4")
    launch(text, "k", y=y)
    assert y == 3.5
    use = Use("gather", TensorType(F32, ()), UNIT, generics=(), receiver=Receiver.TENSOR)
    assert use.run(view_of("y", y, None), ()) == 3.5


SCATTER = """
#[kernel(grid = [1])]
pub fn k<A: Dim, B: Dim, M: Dim, N: Dim>(
    y: &mut Tensor<{element}, M, N>,
    x: &Tensor<{element}, A, B>,
    r: &Tensor<{index}, A>,
    e: &Tensor<i64, A, B>,
    c: i64,
) {{
    let (rows, each) = (r.load::<8>([0]), e.load::<8, 4>([0, 0]));
    let t = x.load::<8, 4>([0, 0]);
    unsafe {{ {scatter}; }}
}}
"""


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("start", [0, -2, 3])
def test_a_scatter_skips_what_is_outside_and_the_last_of_equals_stays(
    index: str, start: int
) -> None:
    text = SCATTER.format(element="f32", index=index, scatter="y.scatter([rows, c], t)")
    x, r = matrix(*SHAPE), np.array(INDICES[index], NUMPY[index])
    y = -matrix(6, 5)
    wanted = scattered(y, [along(r, SHAPE, 0), steps(start, SHAPE, 1)], x)
    launch(text, "k", y=y, x=x, r=r, e=each(6, 5), c=start)
    np.testing.assert_array_equal(y, wanted)


def test_scatters_by_tiles_of_each_kind() -> None:
    x, r, e = matrix(*SHAPE), np.array(INDICES["i32"], "i4"), each(6, 5)
    rows, zeros = along(r, SHAPE, 0), np.zeros(SHAPE, int)
    for written, indices in {
        "y.scatter([rows, each], t)": [rows, e],
        "y.scatter([each, each], t)": [e, e],
        "y.scatter([each * 0, each * 0], t)": [zeros, zeros],
        "y.scatter([iota::<i32, 1>(), c], t)": [zeros, steps(1, SHAPE, 1)],
        "y.scatter::<8, 4>([each, c], 7.0)": [e, steps(1, SHAPE, 1)],
        "y.t().scatter([each, rows.expand::<1>()], t)": [rows, e],
        "y.scatter_unchecked([c, c], t)": [steps(1, SHAPE, 0), steps(1, SHAPE, 1)],
    }.items():
        text = SCATTER.format(element="f32", index="i32", scatter=written)
        y = -matrix(6, 5)
        wanted = scattered(y, indices, np.full(SHAPE, 7, "f4") if "7.0" in written else x)
        launch(text, "k", y=y, x=x, r=r, e=e, c=1)
        np.testing.assert_array_equal(y, wanted, err_msg=written)


@pytest.mark.parametrize("extents", [(0, 5), (6, 0), (1, 1)])
def test_scatters_to_empty_and_small_tensors(extents: tuple[int, int]) -> None:
    text = SCATTER.format(element="f32", index="i32", scatter="y.scatter([rows, each], t)")
    x, r, e = matrix(*SHAPE), np.arange(-1, 7, dtype="i4"), each(6, 5)
    y = -matrix(*extents)
    wanted = scattered(y, [along(r, SHAPE, 0), e], x)
    launch(text, "k", y=y, x=x, r=r, e=e, c=0)
    np.testing.assert_array_equal(y, wanted)


def test_elements_are_written_as_they_are() -> None:
    for element, kind in (("u32", "u4"), ("bool", "?"), ("f16", "f2")):
        text = SCATTER.format(element=element, index="i32", scatter="y.scatter([rows, each], t)")
        x = (matrix(*SHAPE) * (2**26 if kind == "u4" else 1)).astype(kind)
        r, e = np.array(INDICES["i32"], "i4"), each(6, 5)
        y = np.zeros((6, 8), kind)[:, :5]
        wanted = scattered(y, [along(r, SHAPE, 0), e], x)
        launch(text, "k", y=y, x=x, r=r, e=e, c=0)
        assert y.tobytes() == wanted.tobytes()
