"""Products that are overlapped with copies, thread by thread: every form of factor, every extent.

Factors are small whole numbers, so that sums are exact; NumPy gives them.
"""

from __future__ import annotations

import numpy as np
import pytest
from overlapped import TIMINGS, run, small, wide
from simt_strands import Timing

SUMS = {"f16": "f32", "bf16": "f32", "i8": "i32", "u8": "i32"}
# How factors (m, k) and (k, n) come from their tensors; `t` if those have k first, or last.
LEFT = {
    "n": ("M, K", "x.load::<{bm}, {bk}>([z.id(0), k])"),
    "view": ("K, M", "x.t().load::<{bm}, {bk}>([z.id(0), k])"),
    "tile": ("K, M", "x.load::<{bk}, {bm}>([k, z.id(0)]).t()"),
}
RIGHT = {
    "n": ("K, N", "y.load::<{bk}, {bn}>([k, z.id(1)])"),
    "view": ("N, K", "y.t().load::<{bk}, {bn}>([k, z.id(1)])"),
    "tile": ("N, K", "y.load::<{bn}, {bk}>([z.id(1), k]).t()"),
}


def multiply(
    form: tuple[str, str],
    tile: tuple[int, int, int],
    extents: tuple[int, int, int],
    *timings: Timing,
    element: str = "bf16",
    hints: str = "",
    overlaps: bool = True,
) -> None:
    left, right = form
    m, n, k = extents
    sizes = dict(zip(("bm", "bn", "bk"), tile, strict=True))
    total = SUMS[element]
    x = small(*((m, k) if left == "n" else (k, m)), element=element)
    y = small(*((k, n) if right == "n" else (n, k)), element=element)
    text = f"""{hints}
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<{total}, M, N>, {sizes["bm"]}, {sizes["bn"]}>,
        x: &Tensor<{element}, {LEFT[left][0]}>, y: &Tensor<{element}, {RIGHT[right][0]}>,
    ) {{
        let mut sum = Tile::<{total}, {sizes["bm"]}, {sizes["bn"]}>::zeros();
        for k in 0..K.div_ceil({sizes["bk"]}) {{
            sum = dot(
                {LEFT[left][1].format(**sizes)}, {RIGHT[right][1].format(**sizes)}, sum,
            );
        }}
        z.store(sum);
    }}"""
    product = wide(x if left == "n" else x.T) @ wide(y if right == "n" else y.T)
    given = {"z": small(m, n, element=total), "x": x, "y": y}
    run(text, given, {"z": product}, *timings, overlaps=overlaps)


# ---- forms of factors ----------------------------------------------------------------------------


@pytest.mark.parametrize("right", RIGHT)
@pytest.mark.parametrize("left", LEFT)
def test_factors_of_any_order(left: str, right: str) -> None:
    multiply((left, right), (128, 64, 64), (130, 72, 150))


@pytest.mark.parametrize("element", ["f16", "i8", "u8"])
def test_elements_of_other_types(element: str) -> None:
    right = "n" if element == "f16" else "view"
    multiply(("n", right), (64, 32, 64), (70, 40, 150), element=element)


@pytest.mark.parametrize(
    "tile",
    [
        (64, 16, 16), (64, 48, 32), (128, 96, 64), (128, 192, 32), (256, 128, 32), (64, 256, 16),
        (128, 256, 16), (64, 64, 128), (192, 64, 16), (256, 16, 48), (64, 80, 96), (64, 112, 16),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("form", [("n", "n"), ("view", "view")], ids=str)
def test_tiles_of_any_size(tile: tuple[int, int, int], form: tuple[str, str]) -> None:
    bm, bn, bk = tile
    multiply(form, tile, (bm, bn + 8, 2 * bk + 8))


# ---- extents -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "extents",
    [
        (0, 8, 8), (8, 0, 8), (8, 8, 0), (1, 1, 1), (1, 65, 17), (65, 1, 33), (63, 64, 16),
        (129, 33, 15), (64, 64, 64), (7, 100, 50), (200, 24, 31),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("form", [("n", "n"), ("view", "tile")], ids=str)
def test_tiles_that_extents_cut(extents: tuple[int, int, int], form: tuple[str, str]) -> None:
    multiply(form, (64, 32, 16), extents)


@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 7])
def test_turns_against_slots(turns: int, stages: int) -> None:
    """Also none, of tensors that are there."""
    x, y = small(64, 112), small(112, 32)
    text = f"""#[hint(stages = {stages})]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 32>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
        n: i32,
    ) {{
        let mut sum = Tile::<f32, 64, 32>::ones();
        for k in 0..n {{
            sum = dot(x.load::<64, 16>([z.id(0), k]), y.load::<16, 32>([k, z.id(1)]), sum);
        }}
        z.store(sum);
    }}"""
    product = wide(x[:, : 16 * turns]) @ wide(y[: 16 * turns]) + 1
    given = {"z": small(64, 32, element="f32"), "x": x, "y": y, "n": turns}
    run(text, given, {"z": product}, *TIMINGS)


@pytest.mark.parametrize("timing", TIMINGS, ids=str)
def test_whatever_happens_first(timing: Timing) -> None:
    multiply(("n", "n"), (128, 32, 16), (128, 32, 16 * 11), timing, hints="#[hint(stages = 3)]")


@pytest.mark.parametrize(
    ("turns", "overlaps"), [("(K - 64).div_ceil(64)", True), ("(turns.load([]) as usize)", None)]
)
def test_one_number_is_read_beside_products(turns, overlaps):
    """Before the loop and behind it, by threads of every role."""
    text = f"""
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 64>,
        last: &mut Tensor<f32>,
        x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
        turns: &Tensor<i32>, by: &Tensor<f32>, plus: &Tensor<f32>,
    ) {{
        let first = by.load([]);
        let mut sum = Tile::<f32, 64, 64>::zeros();
        for k in 0..{turns} {{
            sum = dot(x.load::<64, 64>([z.id(0), k]), y.load::<64, 64>([k, z.id(1)]), sum);
        }}
        let scaled = sum * first + plus.load([]);
        z.store(scaled);
        if z.id(0) == 0 && z.id(1) == 1 {{
            last.store([], scaled.sum_all());
        }}
    }}"""
    x, y = small(64, 256), small(256, 128)
    wanted = wide(x[:, :192]) @ wide(y[:192]) * 2 + 3
    numbers = {"turns": np.array(3, np.int32), "by": np.array(2, np.float32)}
    given = {
        "z": small(64, 128, element="f32"), "last": np.zeros((), np.float32), "x": x, "y": y,
        **numbers, "plus": np.array(3, np.float32),
    }  # fmt: skip
    run(text, given, {"z": wanted, "last": wanted[:, 64:].sum()}, *TIMINGS, overlaps=overlaps)
