"""Programs that several blocks do together, thread by thread."""

from __future__ import annotations

import numpy as np
import pytest
from lowered import ALIGNED, program
from overlapped import EARLY, LATE, Timing, expect, small, wide

TIMINGS = (LATE, EARLY, Timing(seed=7), Timing(seed=8, split=True))


def text_of(
    split: int, rows: int = 64, end: str = "z.store(sum);", hints: str = "stages = 2"
) -> str:
    return f"""#[hint(split = {split}, {hints})]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, {rows}, 64>, x: &Tensor<bf16, M, K>,
        y: &Tensor<bf16, K, N>, b: &Tensor<f32, N>,
    ) {{
        let mut sum = Tile::<f32, {rows}, 64>::zeros();
        for k in 0..K.div_ceil(32) {{
            sum = dot(x.load::<{rows}, 32>([z.id(0), k]), y.load::<32, 64>([k, z.id(1)]), sum);
        }}
        {end}
    }}"""


def multiply(text: str, split: int, extents: tuple[int, int, int], *timings: Timing) -> None:
    m, n, k = extents
    x, y, b = small(m, k), small(k, n), small(n, element="f32")
    with program(text) as threads:
        point = threads.lowered("k", ALIGNED)[0]
        assert (point.cluster, point.split) == (split, split)
        given = {"z": small(m, n, element="f32"), "x": x, "y": y, "b": b}
        expect(threads, "k", given, {"z": wide(x) @ wide(y)}, *timings)


@pytest.mark.parametrize("split", [2, 4, 8])
@pytest.mark.parametrize("k", [8, 32, 40, 64, 96, 320, 530])
def test_turns_are_shared_out(split: int, k: int) -> None:
    multiply(text_of(split), split, (70, 72, k), LATE, Timing(seed=3, split=True))


@pytest.mark.parametrize("split", [2, 4])
@pytest.mark.parametrize("k", [1, 40, 130])
@pytest.mark.parametrize("timing", TIMINGS, ids=str)
def test_whoever_is_first(split: int, k: int, timing: Timing) -> None:
    multiply(text_of(split, 128), split, (130, 8, k), timing)


@pytest.mark.parametrize("k", [0, 24, 200])
def test_what_follows_is_done_once(k: int) -> None:
    end = "z.store(z.load() + sum.max(0.0) + b.load::<64>([z.id(1)]).expand::<0>());"
    m, n = 100, 70
    x, y, b, z = small(m, k), small(k, n), small(n, element="f32"), small(m, n, element="f32")
    with program(text_of(4, end=end)) as threads:
        given = {"z": z, "x": x, "y": y, "b": b}
        wanted = wide(z) + np.maximum(wide(x) @ wide(y), 0) + wide(b)
        expect(threads, "k", given, {"z": wanted}, *TIMINGS)


@pytest.mark.parametrize("k", [32, 64, 200])
def test_sums_that_start_from_something(k: int) -> None:
    text = text_of(4).replace("Tile::<f32, 64, 64>::zeros()", "z.load() * 2.0")
    m, n = 100, 70
    x, y, b, z = small(m, k), small(k, n), small(n, element="f32"), small(m, n, element="f32")
    with program(text) as threads:
        given = {"z": z, "x": x, "y": y, "b": b}
        expect(threads, "k", given, {"z": 2 * wide(z) + wide(x) @ wide(y)}, LATE, EARLY)


@pytest.mark.parametrize("split", [2, 8])
@pytest.mark.parametrize("k", [30, 64, 150])
def test_two_sums(split: int, k: int) -> None:
    text = f"""#[hint(split = {split}, stages = 2)]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<i32, M, N>, 64, 32>, x: &Tensor<i8, M, K>, y: &Tensor<i8, N, K>,
        w: &Tensor<i8, N, K>,
    ) {{
        let mut sum = Tile::<i32, 64, 32>::zeros();
        let mut gate = Tile::<i32, 64, 32>::zeros();
        for k in 0..K.div_ceil(32) {{
            let a = x.load::<64, 32>([z.id(0), k]);
            sum = dot(a, y.load::<32, 32>([z.id(1), k]).t(), sum);
            gate = dot(a, w.load::<32, 32>([z.id(1), k]).t(), gate);
        }}
        z.store(sum * gate);
    }}"""
    x, y, w = (small(rows, k, element="i8") for rows in (70, 40, 40))
    with program(text) as threads:
        assert threads.lowered("k", ALIGNED)[0].split == split
        given = {"z": small(70, 40, element="i32"), "x": x, "y": y, "w": w}
        wanted = (wide(x) @ wide(y).T) * (wide(x) @ wide(w).T)
        expect(threads, "k", given, {"z": wanted}, LATE, Timing(seed=5, split=True))


@pytest.mark.parametrize("k", [0, 32, 100, 256])
def test_a_computed_factor(k: int) -> None:
    text = """#[hint(split = 4, stages = 2)]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 16, 64>, x: &Tensor<bf16, M, K>, q: &Tensor<i8, N, K>,
        s: &Tensor<f32, N>,
    ) {
        let mut sum = Tile::<f32, 64, 16>::zeros();
        for k in 0..K.div_ceil(32) {
            let weights = q.load::<64, 32>([z.id(1), k]).to::<bf16>();
            sum = dot(weights, x.t().load::<32, 16>([k, z.id(0)]), sum);
        }
        z.store((sum * s.load::<64>([z.id(1)]).expand::<1>()).t());
    }"""
    x, q, s = small(20, k), small(70, k, element="i8"), small(70, element="f32")
    with program(text) as threads:
        assert k == 0 or threads.lowered("k", ALIGNED)[0].split == 4
        given = {"z": small(20, 70, element="f32"), "x": x, "q": q, "s": s}
        expect(threads, "k", given, {"z": (wide(x) @ wide(q).T) * wide(s)}, LATE, Timing(seed=5))


@pytest.mark.parametrize("groups", [0, 1, 3, 8])
def test_scaled_sums(groups: int) -> None:
    text = """
    fn weights<const N: usize, const G: usize>(halves: Tile<u8, N, G>) -> Tile<bf16, N, G> {
        (halves.to::<u16>() | 0x4300).bits::<bf16>() - 136.0
    }
    #[hint(split = 2, stages = 2)]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim, H: Dim, S: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 16, 64>, x: &Tensor<bf16, M, K>, q: &Tensor<u8, N, H>,
        s: &Tensor<bf16, N, S>,
    ) {
        requires!(K == 2 * H && H == 32 * S);
        let mut sum = Tile::<f32, 64, 16>::zeros();
        for h in 0..S {
            let pairs = q.load::<64, 32>([z.id(1), h]);
            let first = x.t().load::<32, 16>([2 * h, z.id(0)]);
            let second = x.t().load::<32, 16>([2 * h + 1, z.id(0)]);
            let of_group = dot(weights(pairs >> 4u8), second, weights(pairs & 15).dot(first));
            sum += of_group * s.load::<64, 1>([z.id(1), h]).to::<f32>();
        }
        z.store(sum.t());
    }"""
    half = 32 * groups
    x, s = small(20, 2 * half), small(70, groups)
    q = np.random.default_rng(3).integers(0, 256, (70, half)).astype(np.uint8)
    halves = np.stack([q & 15, q >> 4], axis=1).astype(np.float64) - 8
    weights = halves.reshape(70, 2, groups, 32).transpose(0, 2, 1, 3) * wide(s)[:, :, None, None]
    with program(text) as threads:
        assert threads.lowered("k", ALIGNED)[0].split == 2
        given = {"z": small(20, 70, element="f32"), "x": x, "q": q, "s": s}
        wanted = wide(x) @ weights.reshape(70, 2 * half).T
        expect(threads, "k", given, {"z": wanted}, LATE, Timing(seed=5))
