"""What is lowered to fewer instructions than its parts would take, and gives the same."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from lowered import ALIGNED, ANY, program

LIMITS = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "i32": np.int32, "u32": np.uint32}


def test_every_bf16_is_the_upper_half_of_an_f32() -> None:
    text = """
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 4096>, x: &Tensor<bf16, N>) {
        z.store(x.load::<4096>([z.id(0)]).to::<f32>());
    }"""
    bits = np.arange(1 << 16, dtype=np.uint16)
    z = np.zeros(1 << 16, np.float32)
    with program(text) as threads:
        threads.run("k", {"z": z, "x": bits.view(ml_dtypes.bfloat16)}, ALIGNED)
    np.testing.assert_array_equal(z.view(np.uint32), bits.astype(np.uint32) << 16)


@pytest.mark.parametrize("element", LIMITS)
@pytest.mark.parametrize("rounding", ["round", "trunc", ""])
def test_floats_saturate_and_round_halves_away(element: str, rounding: str) -> None:
    method = f".{rounding}()" if rounding else ""
    text = f"""
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<{element}, N>, 256>, x: &Tensor<f32, N>) {{
        z.store(x.load::<256>([z.id(0)]){method}.to::<{element}>());
    }}"""
    ends = [float(x) for kind in LIMITS.values() for x in (np.iinfo(kind).min, np.iinfo(kind).max)]
    near = [end + off for end in ends for off in (-1.5, -0.5, 0.0, 0.5, 1.5)]
    below_half = float(np.nextafter(np.float32(0.5), np.float32(0)))
    odd = [np.nan, np.inf, -np.inf, 3e38, -0.0, below_half, -below_half, 2.0**23 - 0.5, 2.5, -2.5]
    x = np.zeros(256, np.float32)
    given = np.float32([*near, *odd])
    x[: len(given)] = given
    z = np.zeros(256, LIMITS[element])
    with program(text) as threads:
        threads.run("k", {"z": z, "x": x}, ANY)
    wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300)
    half = 0.5 if rounding == "round" else 0.0
    whole = np.trunc(wide + np.copysign(half, wide))
    limits = np.iinfo(LIMITS[element])
    np.testing.assert_array_equal(z, np.clip(whole, limits.min, limits.max).astype(np.int64))


@pytest.mark.parametrize("columns", [0, 8, 24, 256, 37])
def test_columns_are_told_apart_by_their_group(columns: int) -> None:
    """Rows that are whole accesses are compared by accesses; 37 columns take another variant."""
    text = """
    #[kernel]
    pub fn k<M: Dim, N: Dim>(z: Part<&mut Tensor<i32, M, 4>, 1, 4>, x: &Tensor<f32, M, N>) {
        let t = x.load::<1, 256>([z.id(0), 0]);
        let column = iota::<i32, 256>().expand::<0>();
        let n = N as i32;
        let below = select(column.lt(n), t, 0.0).sum::<1>().to::<i32>();
        let above = select(column.ge(n), 1, 0).sum::<1>();
        let reaches = select(splat::<1, 256>(n).le(column), 1, 0).sum::<1>();
        let inside = select(splat::<1, 256>(n).gt(column), 1, 0).sum::<1>();
        let p = iota::<i32, 4>().expand::<0>();
        let first = select(p.eq(0), below.broadcast::<1, 4>(), above.broadcast::<1, 4>());
        let second = select(p.eq(2), reaches.broadcast::<1, 4>(), inside.broadcast::<1, 4>());
        z.store(select(p.lt(2), first, second));
    }"""
    x = np.ones((2, columns), np.float32)
    z = np.zeros((2, 4), np.int32)
    with program(text) as threads:
        threads.run("k", {"z": z, "x": x}, ALIGNED)
    rest = 256 - columns
    np.testing.assert_array_equal(z, [[columns, rest, rest, columns]] * 2)


def test_a_mask_is_not_moved_in_a_loop_to_what_it_chooses() -> None:
    text = """
    #[kernel]
    pub fn k<M: Dim, N: Dim>(z: Part<&mut Tensor<i32, M, 1>, 1, 1>, x: &Tensor<i32, M, N>) {
        let column = iota::<i32, 256>().expand::<0>();
        let mut best = Tile::<i32, 1, 256>::full(i32::MIN);
        let mut found = Tile::<i32, 1, 256>::zeros();
        for j in 0..N.div_ceil(256) {
            let t = x.load::<1, 256>([z.id(0), j]);
            let above = t.gt(best);
            best = select(above, t, best);
            found = select(above, j as i32, found);
        }
        let mut left = best;
        let places = found * 256 + column;
        let mut last = Tile::<i32, 1, 1>::zeros();
        for _ in 0..2 {
            last = select(left.eq(left.max::<1>()), places, i32::MAX).min::<1>();
            left = select(places.eq(last), i32::MIN, left);
        }
        z.store(last);
    }"""
    x = np.random.default_rng(0).permutation(1024).astype(np.int32).reshape(1, 1024)
    z = np.zeros((1, 1), np.int32)
    with program(text) as threads:
        threads.run("k", {"z": z, "x": x}, ALIGNED)
        point, _ = threads.lowered("k", ALIGNED)
    assert z[0, 0] == np.argsort(x[0])[-2]
    assert not [note for _, note in point.notes if getattr(note, "kind", "") == "conversion"]


def test_transposed_products_are_in_flight_while_the_next_one_begins() -> None:
    """Of few rows, so that rows and columns change places; b's rows run along its columns."""
    text = """
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        c: Part<&mut Tensor<f32, M, N>, 16, 64>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
    ) {
        let mut sum = Tile::<f32, 16, 64>::zeros();
        for k in 0..K.div_ceil(64) {
            sum = dot(a.load::<16, 64>([c.id(0), k]), b.load::<64, 64>([k, c.id(1)]), sum);
        }
        c.store(sum);
    }"""
    with program(text) as threads:
        threads.lowered("k", ALIGNED)
        code = str(list(threads.body.operations)[-1])
    assert "<m = 64, n = 16, k = 16>" in code
    assert "wgmma.wait.group.sync.aligned 1" in code
