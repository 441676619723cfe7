"""The programs of `tests/cases` and a few more, against float64 and the definitions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from executed import case, check, launch

from tilec.interpret.contract import BrokenContract

RANDOM = np.random.default_rng(11)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("length", [1, 1023, 1024, 3000])
def test_add(length: int) -> None:
    for symbol, dtype in (("add__f32_1024", np.float32), ("add__bf16_2048", ml_dtypes.bfloat16)):
        x, y = normal(length, dtype=dtype), normal(length, dtype=dtype)
        z = np.zeros(length, dtype)
        launch(case("add"), symbol, z=z, x=x, y=y)
        exact = (x.astype(np.float64) + y.astype(np.float64)).astype(np.float32).astype(dtype)
        np.testing.assert_array_equal(z.view(np.uint8), exact.view(np.uint8))


def test_in_place_and_two_outputs() -> None:
    x = normal(2500)
    before = x.copy()
    launch(case("in_place"), "scale_in_place", 5, x=x, s=1.5)
    np.testing.assert_array_equal(x, before * np.float32(1.5))
    s, c = np.zeros_like(x), np.zeros_like(x)
    launch(case("two_outputs"), "sincos", s=s, c=c, x=x)
    np.testing.assert_allclose(s, np.sin(x.astype(np.float64)), rtol=6e-8, atol=1e-45)
    np.testing.assert_allclose(c, np.cos(x.astype(np.float64)), rtol=6e-8, atol=1e-45)


def softmax(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_softmax() -> None:
    x = normal(3, 1000)
    y = np.zeros_like(x)
    launch(case("softmax_rows"), "softmax__f32_1024", y=y, x=x)
    np.testing.assert_allclose(y, softmax(x), rtol=1e-6)


def test_attention() -> None:
    batch, heads, shared, length, width = 1, 2, 1, 150, 128
    q = normal(batch, heads, length, width, dtype=ml_dtypes.bfloat16)
    k, v = (normal(batch, shared, length, width, dtype=ml_dtypes.bfloat16) for _ in range(2))
    o = np.zeros_like(q)
    scale = np.float32(width**-0.5)
    launch(case("attention"), "attention__bf16_128_64_128", 3, o=o, q=q, k=k, v=v, scale=scale)
    for head in range(heads):
        score = q[0, head].astype(np.float64) @ k[0, 0].astype(np.float64).T * float(scale)
        score = np.where(np.tril(np.ones((length, length), bool)), score, -np.inf)
        exact = softmax(score) @ v[0, 0].astype(np.float64)
        # p and the result are rounded to bf16, of 8 bits.
        # One rounding to bf16 of the result, and one of each probability.
        here = o[0, head].astype(np.float64)
        np.testing.assert_allclose(here, exact, rtol=2.0**-8, atol=2.0**-8)


@pytest.mark.parametrize("shape", [(130, 70, 65), (1, 1, 1), (5, 3, 0)])
def test_matmul_nt(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = normal(m, k, dtype=ml_dtypes.bfloat16), normal(n, k, dtype=ml_dtypes.bfloat16)
    bias, c = normal(n), np.zeros((m, n), ml_dtypes.bfloat16)
    launch(case("matmul_nt"), "matmul_nt__bf16_128_128_64", c=c, a=a, b=b, bias=bias)
    exact = a.astype(np.float64) @ b.astype(np.float64).T + bias
    error = np.abs(c.astype(np.float64) - np.maximum(exact, 0))
    assert (error <= 2.0**-8 * np.abs(exact) + 1e-5).all()


HEADER = "#[kernel]\npub fn k<N: Dim>("


def test_division_and_shifts_mean_the_same_in_constants_and_at_run_time() -> None:
    text = """
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, a: i32, b: i32, n: i32) {
        let mut t = Tile::<i32, 16>::zeros();
        let i = iota::<i32, 16>();
        t = select(i.eq(0), a / b, t);
        t = select(i.eq(1), a % b, t);
        t = select(i.eq(2), a << n, t);
        t = select(i.eq(3), a >> n, t);
        t = select(i.eq(4), -7 / 2, t);
        t = select(i.eq(5), -7 % 2, t);
        t = select(i.eq(6), (-7i32).rem_euclid(2), t);
        t = select(i.eq(7), i32::MIN / -1, t);
        t = select(i.eq(8), a.max(b), t);
        z.store(t);
    }
    """
    low = -(2**31)
    for a, b, n, expected in (
        (-7, 2, 1, [-3, -1, -14, -4]),
        (7, 0, 33, [0, 7, 14, 3]),
        (low, -1, 31, [low, 0, 0, -1]),
    ):
        z = np.zeros(16, np.int32)
        launch(text, "k", z=z, a=a, b=b, n=n)
        np.testing.assert_array_equal(z[:9], [*expected, -3, -1, 1, low, max(a, b)])


def test_ranges_and_loops() -> None:
    text = """
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 8>, n: i32) {
        let mut a = 0;
        for i in 0..=n { a += i; }
        let mut b = 0;
        for i in (0..n).step_by(3) { b = b * 10 + i; }
        let mut c = 0;
        for i in (0..n).rev() { c = c * 10 + i; }
        let mut d = 1;
        while d < n { d = d * 2; }
        let i = iota::<i32, 8>();
        let t = select(i.eq(0), a, select(i.eq(1), b, select(i.eq(2), c, select(i.eq(3), d, 0))));
        z.store(t);
    }
    """
    for n in (-1, 0, 1, 4, 7):
        z = np.zeros(8, np.int32)
        launch(text, "k", z=z, n=n)
        digits = lambda numbers: int("".join(map(str, numbers)) or "0")  # noqa: E731
        power = 1
        while power < n:
            power *= 2
        expected = [
            sum(range(n + 1)), digits(range(0, n, 3)), digits(reversed(range(n))), power,
        ]  # fmt: skip
        np.testing.assert_array_equal(z[:4], expected)


def test_an_index_truncates_as_the_machine_does() -> None:
    text = """
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 1>, x: &Tensor<i32, N>) {
        let mut sum = 0;
        for i in -1..3 { sum = sum * 10 + x.load_at::<1>([i / 2]).item(); }
        z.store(Tile::<i32, 1>::full(sum));
    }
    """
    z = np.zeros(2, np.int32)
    launch(text, "k", z=z, x=np.array([3, 4], np.int32))
    # -1 / 2 and 1 / 2 are 0.
    np.testing.assert_array_equal(z, [3334, 3334])


def test_unsigned_bytes_are_unsigned() -> None:
    text = """
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<u8, N>, 256>, x: &Tensor<u8, N>) {
        let t = x.load_like(&z);
        z.store(select(t.gt(127), t / 2 + (t >> 1), t.max(100)));
    }
    """
    x = np.arange(256, dtype=np.uint8)
    z = np.zeros_like(x)
    launch(text, "k", z=z, x=x)
    wide = x.astype(int)
    expected = np.where(wide > 127, wide // 2 + (wide >> 1), np.maximum(wide, 100))
    np.testing.assert_array_equal(z, expected)


def test_parts_of_parts_and_helpers() -> None:
    text = """
    fn half<N: Dim, const B: usize>(p: &mut Part<&mut Tensor<f32, N>, B>, v: f32) {
        p.store(Tile::<f32, B>::full(v + p.offset(0) as f32));
    }

    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 8>) {
        for i in 0..2 {
            let mut s = z.sub::<4>([i]);
            half(&mut s, 0.5);
        }
    }
    """
    z = np.zeros(14, np.float32)
    launch(text, "k", 1, z=z)
    np.testing.assert_array_equal(z, np.arange(14) // 4 * 4 + 0.5)


def test_combiners_are_closures() -> None:
    text = """
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, x: &Tensor<i32, N>) {
        let t = x.load_like(&z);
        let gcd = t.reduce::<0>(0, |a, b| if a > b { a } else { b });
        z.store(gcd.broadcast::<16>());
    }
    """
    x = RANDOM.integers(-50, 50, 16).astype(np.int32)
    z = np.zeros_like(x)
    launch(text, "k", z=z, x=x)
    assert (z == max(0, x.max())).all()


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("dot_shapes", "E0301"), ("dtype_mix", "E0202"), ("rank_mismatch", "E0303"),
        ("shape_mismatch", "E0301"), ("not_power_of_two", "E0302"), ("unknown_method", "E0203"),
    ],
)  # fmt: skip
def test_refused_programs(name: str, code: str) -> None:
    from executed import CASES

    text = (CASES / "reject" / f"{name}.tile").read_text(encoding="utf-8")
    line = int(text.partition("line ")[2].split()[0])
    _, found = check(text)
    assert [d.code for d in found] == [code]
    assert text.count("\n", 0, found[0].span.start) + 1 == line


def test_preconditions_may_be_joined() -> None:
    text = """
    #[kernel]
    pub fn k<N: Dim, M: Dim>(z: Part<&mut Tensor<i32, N>, 16>, x: &Tensor<i32, M>) {
        requires!(N > 0 && M % N == 0);
        z.store(x.load_like(&z));
    }
    """
    x, z = np.arange(32, dtype=np.int32), np.zeros(16, np.int32)
    launch(text, "k", z=z, x=x)
    np.testing.assert_array_equal(z, x[:16])
    for length in (0, 15):
        with pytest.raises(BrokenContract, match="requires"):
            launch(text, "k", z=np.zeros(length, np.int32), x=x)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [("N / u < 9", False), ("N % u == 4", False), ("u == 0 || N / u < 9", True)],
)
def test_a_precondition_that_divides_by_zero_does_not_hold(condition: str, holds: bool) -> None:
    text = f"""
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 4>, u: usize) {{
    requires!({condition});
    z.store(z.load() + 1.0);
}}
"""
    z = np.zeros(4, np.float32)
    if holds:
        launch(text, "k", z=z, u=0)
    else:
        with pytest.raises(BrokenContract, match="divides by zero"):
            launch(text, "k", z=z, u=0)
        launch(text, "k", z=z, u=5 if "%" in condition else 1)
    np.testing.assert_array_equal(z, 1)
