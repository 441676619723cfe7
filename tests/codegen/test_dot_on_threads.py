"""Products thread by thread: every type, every instruction, tiles that are smaller or cut."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import simt_matrix
from lowered import ALIGNED, program
from test_on_threads import agree, numbers

from tilec.ir.walk import operations
from tilec.layout import Layout
from tilec.layout.conversion import RegisterPermutation, plan_conversion

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
# Elements of the factors and of the sum, how they are converted before.
TYPES: dict[str, tuple[str, Any, str, Any, str]] = {
    "f16": ("f16", np.float16, "f32", np.float32, ""),
    "f16 in f16": ("f16", np.float16, "f16", np.float16, ""),
    "bf16": ("bf16", ml_dtypes.bfloat16, "f32", np.float32, ""),
    "tf32": ("f32", np.float32, "f32", np.float32, ".to::<tf32>()"),
    "f32": ("f32", np.float32, "f32", np.float32, ""),
    "f64": ("f64", np.float64, "f64", np.float64, ""),
    "i8": ("i8", np.int8, "i32", np.int32, ""),
    "u8": ("u8", np.uint8, "i32", np.int32, ""),
    "f8e4m3": ("f8e4m3", E4M3, "f32", np.float32, ""),
    "f8e5m2": ("f8e5m2", E5M2, "f32", np.float32, ""),
}
SHAPES = [
    (64, 64, 32), (16, 8, 16), (48, 80, 48), (1, 1, 1), (4, 2, 2), (2, 16, 4), (32, 16, 8),
    (8, 32, 64), (64, 1, 16), (1, 64, 16),
]  # fmt: skip


def multiply(
    kind: str,
    shape: tuple[int, int, int],
    *,
    batch: tuple[int, ...] = (),
    warps: int | None = None,
    data: Any = numbers,
) -> None:
    element, dtype, total, total_dtype, conversion = TYPES[kind]
    m, n, k = shape
    before = "".join(f"{b}, " for b in batch)
    zeros = ", ".join("0" for _ in (*batch, m, n))
    hint = f"#[hint(warps = {warps})]" if warps else ""
    agree(
        f"""{hint}
        #[kernel]
        pub fn k(
            z: Part<&mut Tensor<{total}, {before}{m}, {n}>, {before}{m}, {n}>,
            x: &Tensor<{element}, {before}{m}, {k}>, y: &Tensor<{element}, {before}{k}, {n}>,
        ) {{
            let left = x.load::<{before}{m}, {k}>([{zeros}]){conversion};
            let right = y.load::<{before}{k}, {n}>([{zeros}]){conversion};
            z.store(dot(left, right, z.load()));
        }}""",
        z=data(*batch, m, n, dtype=total_dtype),
        x=data(*batch, m, k, dtype=dtype),
        y=data(*batch, k, n, dtype=dtype),
    )


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_of_any_type_and_shape(kind: str, shape: tuple[int, int, int]) -> None:
    multiply(kind, shape)


@pytest.mark.parametrize("kind", ["bf16", "f32", "i8", "f64"])
def test_batches_and_warps(kind: str) -> None:
    multiply(kind, (16, 8, 16), batch=(4,))
    multiply(kind, (2, 4, 8), batch=(48,))
    multiply(kind, (32, 64, 16), warps=8)
    multiply(kind, (16, 8, 32), warps=16)
    multiply(kind, (4, 16, 8), batch=(2,), warps=4)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("bf16", (16, 16, 512)), ("i8", (16, 16, 1024)), ("f64", (16, 8, 256)),
        ("f8e4m3", (32, 8, 512)), ("tf32", (16, 8, 256)),
    ],
)  # fmt: skip
def test_long_factors_are_read_where_they_are_used(kind: str, shape: tuple[int, int, int]) -> None:
    multiply(kind, shape, warps=1)


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", ["f16", "bf16", "f8e5m2"])
def test_what_fills_up_short_factors_is_no_data(kind: str, depth: int) -> None:
    """Infinities in the tile: a zero that met one would be NaN."""

    def infinite(*shape: int, dtype: Any) -> np.ndarray:
        return np.where(numbers(*shape) < 0, np.inf, 1.0).astype(dtype)

    multiply(kind, (16, 8, depth), data=infinite)


@pytest.mark.parametrize(("element", "dtype"), [("f8e4m3", E4M3), ("f8e5m2", E5M2)])
def test_every_f8_is_multiplied_exactly(element: str, dtype: Any) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype).reshape(256, 1)
    agree(
        f"""#[kernel]
        pub fn k(z: Part<&mut Tensor<f32, 256, 1>, 256, 1>, x: &Tensor<{element}, 256, 1>,
                 y: &Tensor<{element}, 1, 1>) {{
            z.store(x.load::<256, 1>([0, 0]).dot(y.load::<1, 1>([0, 0])));
        }}""",
        z=numbers(256, 1), x=every, y=np.ones((1, 1), dtype),
    )  # fmt: skip


def test_numbers_become_tf32_to_nearest_even() -> None:
    halves = [1 + 2**-11, 1 + 3 * 2**-11, -1 - 2**-11, 1 + 2**-11 + 2**-20, 3.4e38, 1e-40, 0.0]
    odd = [-0.0, np.nan, np.inf, -np.inf, 1e-45]
    signalling = np.array([0x7F800001, 0xFF800001], np.uint32).view(np.float32)
    some = np.concatenate([np.array(halves + odd, np.float32), signalling])
    x = np.resize(some, 128)
    x[64:] = np.random.default_rng(5).normal(size=64)
    agree(
        """pub fn k(z: Part<&mut Tensor<f32, 128>, 128>, x: &Tensor<f32, 128>) {
            z.store(x.load_like(&z).to::<tf32>().to::<f32>());
        }""",
        z=numbers(128), x=x,
    )  # fmt: skip


def test_sums_in_a_loop_with_extents_that_cut_tiles() -> None:
    for element, dtype in (("bf16", ml_dtypes.bfloat16), ("f32", np.float32)):
        agree(
            f"""pub fn k<M: Dim, N: Dim, K: Dim>(
                z: Part<&mut Tensor<f32, M, N>, 32, 64>,
                x: &Tensor<{element}, M, K>, y: &Tensor<{element}, N, K>,
            ) {{
                let mut sum = Tile::<f32, 32, 64>::zeros();
                for k in 0..K.div_ceil(16) {{
                    let left = x.load::<32, 16>([z.id(0), k]) * 2.0;
                    sum = dot(left, y.t().load::<16, 64>([k, z.id(1)]), sum * 2.0);
                }}
                z.store(sum);
            }}""",
            z=numbers(37, 70), x=numbers(37, 41, dtype=dtype), y=numbers(70, 41, dtype=dtype),
        )  # fmt: skip


CHAINED = """#[kernel]
#[hint(warps = 4)]
pub fn k<M: Dim, N: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 128, 64>, w: &Tensor<bf16, M, 16>,
    x: &Tensor<bf16, 16, 32>, y: &Tensor<bf16, 32, N>,
) {
    let inner = w.load::<128, 16>([z.id(0), 0]).dot(x.load::<16, 32>([0, 0]));
    let positive = inner.max(0.0).to::<bf16>();
    z.store(positive.dot(y.load::<32, 64>([0, z.id(1)])));
}"""


def test_a_product_is_a_factor_of_the_next_in_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bf16 = ml_dtypes.bfloat16
    arguments = {
        "z": numbers(70, 40), "w": numbers(70, 16, dtype=bf16), "x": numbers(16, 32, dtype=bf16),
        "y": numbers(32, 40, dtype=bf16),
    }  # fmt: skip
    agree(CHAINED, **arguments)
    plans: list[Any] = []

    def noted(source: Layout, *given: Any, **named: Any) -> Any:
        plans.append((source.shape, plan_conversion(source, *given, **named)))
        return plans[-1][1]

    monkeypatch.setattr("tilec.ops.lower_layout.plan_conversion", noted)
    counts = _counts(CHAINED)
    assert counts["nvvm.mma.sync"] == (128 * 32 * 16 + 128 * 64 * 32) // (4 * 16 * 8 * 16)
    # Three factors come from memory.
    assert {(128, 16), (16, 32), (32, 64)} <= {shape for shape, _ in plans}
    between = [plan for shape, plan in plans if shape == (128, 32)]
    assert all(isinstance(plan, RegisterPermutation) for plan in between)


def test_stores_of_a_product_use_matrices() -> None:
    text = """#[kernel]
    pub fn k(z: Part<&mut Tensor<bf16, 16, 16>, 16, 16>, x: &Tensor<bf16, 16, 16>) {
        let t = x.load::<16, 16>([0, 0]);
        z.store(t.dot(t).to::<bf16>());
    }"""
    agree(text, z=numbers(16, 16, dtype=ml_dtypes.bfloat16),
          x=np.clip(numbers(16, 16), -2, 2).astype(ml_dtypes.bfloat16))  # fmt: skip


def _counts(text: str) -> dict[str, int]:
    with program(text) as compiled:
        compiled.lowered("k", ALIGNED)
        function = list(compiled.body.operations)[-1]
        found: dict[str, int] = {}
        for op in operations(function):
            found[op.operation.name] = found.get(op.operation.name, 0) + 1
    return found


def test_matrices_are_read_as_mma_takes_them() -> None:
    """The simulator's own instructions together: rows of memory to a product."""
    a, b = numbers(16, 16, dtype=np.float16), numbers(16, 8, dtype=np.float16)
    quarters = np.stack([a[:8, :8], a[8:, :8], a[:8, 8:], a[8:, 8:]])
    halves = np.stack([b[:8], b[8:]])  # rows of memory run along n
    held_a = simt_matrix.load_matrices(quarters, transposed=False).reshape(32, 8)
    held_b = simt_matrix.load_matrices(halves, transposed=True).reshape(32, 4)
    d = simt_matrix.mma(16, (16, 8, 16), held_a, held_b, np.zeros((32, 4), np.float32))
    product = np.zeros((16, 8))
    for i in range(4):
        product[simt_matrix.c_place(i)] = d[:, i]
    np.testing.assert_array_equal(product, a.astype(np.float64) @ b.astype(np.float64))
    stored = simt_matrix.store_matrices(
        simt_matrix.load_matrices(quarters, transposed=True), transposed=True
    )
    np.testing.assert_array_equal(stored, quarters)
