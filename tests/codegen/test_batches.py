"""Batches of products that are overlapped with copies, thread by thread.

Factors are small whole numbers, so that sums are exact; NumPy gives them.
"""

from __future__ import annotations

import numpy as np
import pytest
from overlapped import LATE, Timing, run, small, wide

BOTH = (LATE, Timing(seed=3, split=True))
# A tile of each factor, of tensors with the batch first, and what is stored.
FORMS = {
    "rank 3": (
        "x.load::<1, 64, 16>([z.id(0), z.id(1), k])",
        "y.load::<1, 16, 32>([z.id(0), k, z.id(2)])",
        "1, 64, 32",
        "sum",
    ),
    "slices": (
        "x.load::<1, 64, 16>([z.id(0), z.id(1), k]).reshape::<64, 16>()",
        "y.load::<1, 16, 32>([z.id(0), k, z.id(2)]).squeeze::<0>()",
        "64, 32",
        "sum.reshape::<1, 64, 32>()",
    ),
    "computed": (
        "x.load::<1, 64, 16>([z.id(0), z.id(1), k]).abs()",
        "y.load::<1, 16, 32>([z.id(0), k, z.id(2)])",
        "1, 64, 32",
        "sum",
    ),
}


def kernel(left: str, right: str, tile: str, stored: str) -> str:
    return f"""
    #[kernel]
    pub fn k<B: Dim, M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, B, M, N>, 1, 64, 32>, x: &Tensor<bf16, B, M, K>,
        y: &Tensor<bf16, B, K, N>,
    ) {{
        let mut sum = Tile::<f32, {tile}>::zeros();
        for k in 0..K.div_ceil(16) {{
            sum = dot({left}, {right}, sum);
        }}
        z.store({stored});
    }}"""


@pytest.mark.parametrize("extents", [(2, 70, 40, 40), (3, 64, 32, 16), (1, 1, 8, 1), (2, 9, 8, 0)])
@pytest.mark.parametrize("form", FORMS)
def test_batches(form: str, extents: tuple[int, int, int, int]) -> None:
    b, m, n, k = extents
    x, y = small(b, m, k), small(b, k, n)
    given = {"z": np.full((b, m, n), np.nan, np.float32), "x": x, "y": y}
    left = np.abs(wide(x)) if form == "computed" else wide(x)
    run(kernel(*FORMS[form]), given, {"z": left @ wide(y)}, *BOTH)


def test_heads_between_rows_and_columns() -> None:
    """Of rank 4: (B, M, H, K) times (B, N, H, K), transposed."""
    program = """
    #[kernel]
    pub fn k<B: Dim, M: Dim, N: Dim, H: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, B, H, M, N>, 1, 1, 64, 32>, x: &Tensor<bf16, B, M, H, K>,
        y: &Tensor<bf16, B, N, H, K>,
    ) {
        let mut sum = Tile::<f32, 64, 32>::zeros();
        for k in 0..K.div_ceil(16) {
            let a = x.load::<1, 64, 1, 16>([z.id(0), z.id(2), z.id(1), k]).reshape::<64, 16>();
            let b = y.load::<1, 32, 1, 16>([z.id(0), z.id(3), z.id(1), k]).reshape::<32, 16>();
            sum = dot(a, b.t(), sum);
        }
        z.store(sum.reshape::<1, 1, 64, 32>());
    }"""
    x, y = small(2, 70, 2, 32), small(2, 40, 2, 32)
    product = np.einsum("bmhk,bnhk->bhmn", wide(x), wide(y))
    given = {"z": np.full(product.shape, np.nan, np.float32), "x": x, "y": y}
    run(program, given, {"z": product}, *BOTH)


def test_several_batches_of_one_tile_have_a_reason() -> None:
    from lowered import ALIGNED, program

    left, right = (
        "x.load::<2, 64, 16>([z.id(0), z.id(1), k])",
        "y.load::<2, 16, 32>([z.id(0), k, z.id(2)])",
    )
    text = kernel(left, right, "2, 64, 32", "sum").replace(">, 1, 64, 32>", ">, 2, 64, 32>")
    with program(text) as threads:
        point, _ = threads.lowered("k", ALIGNED)
    choice, *_ = point.schedule.choices
    assert choice.why == "it is a batch of 2 products"


def test_a_batch_whose_second_factor_is_computed() -> None:
    program = """
    #[kernel]
    pub fn k<B: Dim, M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, B, M, N>, 1, 16, 64>, x: &Tensor<bf16, B, M, K>,
        y: &Tensor<i8, B, N, K>,
    ) {
        let mut sum = Tile::<f32, 1, 16, 64>::zeros();
        for k in 0..K.div_ceil(32) {
            let right = y.load::<1, 64, 32>([z.id(0), z.id(2), k]).to::<bf16>().t();
            sum = dot(x.load::<1, 16, 32>([z.id(0), z.id(1), k]), right, sum);
        }
        z.store(sum);
    }"""
    x, y = small(2, 20, 48), small(2, 70, 48, element="i8")
    given = {"z": np.full((2, 20, 70), np.nan, np.float32), "x": x, "y": y}
    run(program, given, {"z": wide(x) @ wide(y).transpose(0, 2, 1)}, *BOTH)
