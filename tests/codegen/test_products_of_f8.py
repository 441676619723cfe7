"""Products of f8 that are overlapped with copies, thread by thread.

Factors are small whole numbers, so that sums are exact, in however few bits; NumPy gives them.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from lowered import ALIGNED, program
from overlapped import LATE, Timing, expect, small, wide

F8 = {"f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
PROGRAM = """
#[kernel]
pub fn k<M: Dim, N: Dim, K: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 64, 32>, x: &Tensor<{a}, M, K>, y: &Tensor<{b}, N, K>,
) {{
    let mut sum = Tile::<f32, 64, 32>::ones();
    for k in 0..K.div_ceil(64) {{
        sum = dot(x.load::<64, 64>([z.id(0), k]), y.load::<32, 64>([z.id(1), k]).t(), sum);
    }}
    z.store(sum);
}}"""


@pytest.mark.parametrize("hints", ["stages = 2", "stages = 2, fast_math"])
@pytest.mark.parametrize(
    ("a", "b"), [("f8e4m3", "f8e4m3"), ("f8e5m2", "f8e5m2"), ("f8e4m3", "f8e5m2")]
)
@pytest.mark.parametrize("k", [0, 1, 64, 150, 320])
def test_f8(a: str, b: str, k: int, hints: str) -> None:
    x, y = small(70, k, element="f32").astype(F8[a]), small(40, k, element="f32").astype(F8[b])
    given = {"z": np.full((70, 40), np.nan, np.float32), "x": x, "y": y}
    with program(f"#[hint({hints})]{PROGRAM.format(a=a, b=b)}") as threads:
        wanted = wide(x) @ wide(y).T + 1
        expect(threads, "k", given, {"z": wanted}, LATE, Timing(seed=5, split=True))


@pytest.mark.parametrize(("hints", "begin"), [("stages = 2", 1), ("fast_math", 0)])
def test_products_begin_from_zero_unless_few_bits_will_do(hints: str, begin: int) -> None:
    with program(f"#[hint({hints})]{PROGRAM.format(a='f8e4m3', b='f8e4m3')}") as threads:
        threads.lowered("k", ALIGNED)
        text = str(list(threads.body.operations)[-1])
    instructions = text.count("nvvm.wgmma.mma_async")
    assert instructions == 64 // 32
    assert text.count("D[<f32>, <zero>]") == begin


def test_columns_of_f8_go_through_shared_memory() -> None:
    """Tensor cores read f8 along k only, so threads turn what lies across it."""
    other = PROGRAM.format(a="f8e4m3", b="f8e4m3").replace(
        "y: &Tensor<f8e4m3, N, K>", "y: &Tensor<f8e4m3, K, N>"
    )
    other = other.replace("y.load::<32, 64>([z.id(1), k]).t()", "y.load::<64, 32>([k, z.id(1)])")
    x, y = (small(*shape, element="f32").astype(F8["f8e4m3"]) for shape in ((70, 150), (150, 40)))
    given = {"z": np.full((70, 40), np.nan, np.float32), "x": x, "y": y}
    with program(f"#[hint(stages = 2)]{other}") as threads:
        point, _ = threads.lowered("k", ALIGNED)
        assert any(choice.what.startswith("factors in shared") for choice in point.schedule.choices)
        expect(threads, "k", given, {"z": wide(x) @ wide(y) + 1}, LATE)


def test_a_factor_is_rounded_to_f8() -> None:
    other = PROGRAM.format(a="bf16", b="f8e4m3").replace(
        "x.load::<64, 64>([z.id(0), k])", "x.load::<64, 64>([z.id(0), k]).to::<f8e4m3>()"
    )
    x, y = small(70, 150), small(40, 150, element="f32").astype(F8["f8e4m3"])
    given = {"z": np.full((70, 40), np.nan, np.float32), "x": x, "y": y}
    with program(f"#[hint(stages = 2)]{other}") as threads:
        expect(threads, "k", given, {"z": wide(x) @ wide(y).T + 1}, LATE)
