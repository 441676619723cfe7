"""Checked builds, thread by thread: wrong programs trap where they are wrong, right ones do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lowered import ALIGNED, ANY, program
from simt import Trapped
from test_corpus import LIBRARY, _run_kernel, _small

from tests.kernels.cases import KERNELS
from tests.kernels.twins import some_tiles


def run(text: str, *, aligned: bool = False, **arguments: Any) -> dict[str, Any]:
    """The arguments after a checked build of the kernel `k` has run."""
    with program(f"#[kernel]\n{text}", checked=True) as compiled:
        compiled.run("k", arguments, ALIGNED if aligned else ANY)
    return arguments


def trapped(text: str, **arguments: Any) -> tuple[str, int]:
    """What the kernel `k` traps on: the message, and its line after `#[kernel]`."""
    with pytest.raises(Trapped) as found:
        run(text, **arguments)
    assert found.value.function.startswith("k__v")
    return found.value.message, found.value.line - 1


def ints(*numbers: int, dtype: Any = np.int32) -> np.ndarray:
    return np.array(numbers, dtype)


# ---- assert! -------------------------------------------------------------------------------------

ASSERT = """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 32>, n: usize) {
    if z.id(0) == 1 {
        assert!(n < N,
            "too long");
    }
    z.store(1.0);
}"""


def test_an_assertion_traps_where_it_stands() -> None:
    assert trapped(ASSERT, z=np.zeros(40, np.float32), n=40) == (
        'assert!(n < N, "too long")', 3,
    )  # fmt: skip


def test_an_assertion_that_holds_or_is_not_met_does_not() -> None:
    assert run(ASSERT, z=np.zeros(40, np.float32), n=39)["z"].all()
    assert run(ASSERT, z=np.zeros(32, np.float32), n=40)["z"].all()


def test_one_thread_speaks_for_the_program() -> None:
    with pytest.raises(Trapped) as found:
        run(ASSERT, z=np.zeros(40, np.float32), n=40)
    assert found.value.thread == 0


# ---- divisions -----------------------------------------------------------------------------------

SCALARS = """pub fn k(z: Part<&mut Tensor<{t}, 1>, 1>, a: {t}, b: {t}) {{
    let c = a;
    z.store(c {op} b);
}}"""
LEAST = -(2**31)


@pytest.mark.parametrize("op", ["/", "%"])
@pytest.mark.parametrize("t, dtype", [("i32", np.int32), ("u32", np.uint32), ("usize", np.int64)])
def test_a_scalar_division_by_zero_traps(op: str, t: str, dtype: Any) -> None:
    text = SCALARS.format(t=t, op=op)
    message = f"c {op} b: the divisor is not 0"
    assert trapped(text, z=ints(0, dtype=dtype), a=7, b=0) == (message, 3)
    wanted = 7 // 2 if op == "/" else 7 % 2
    assert run(text, z=ints(0, dtype=dtype), a=7, b=2)["z"] == [wanted]


@pytest.mark.parametrize("op", ["/", "%"])
def test_the_least_number_by_minus_one_traps(op: str) -> None:
    text = SCALARS.format(t="i32", op=op)
    message = f"c {op} b: the quotient fits its type"
    assert trapped(text, z=ints(0), a=LEAST, b=-1) == (message, 3)
    for a, b in ((LEAST, 1), (LEAST + 1, -1), (LEAST, -2)):
        quotient = int(a / b)
        wanted = quotient if op == "/" else a - quotient * b
        assert run(text, z=ints(0), a=a, b=b)["z"] == [wanted]


def test_div_ceil_and_rem_euclid_divide_too() -> None:
    for method in ("div_ceil", "rem_euclid"):
        text = SCALARS.format(t="i32", op="+").replace("c + b", f"c.{method}(b)")
        message, line = trapped(text, z=ints(0), a=5, b=0)
        assert (message, line) == (f"c.{method}(b): the divisor is not 0", 3)
        assert run(text, z=ints(0), a=5, b=3)["z"] == [2]


def test_floats_never_trap() -> None:
    text = SCALARS.format(t="f32", op="/")
    assert np.isinf(run(text, z=np.zeros(1, np.float32), a=1.0, b=0.0)["z"]).all()


def test_a_division_that_is_not_executed_does_not_trap() -> None:
    text = """pub fn k(z: Part<&mut Tensor<i32, 1>, 1>, a: i32, b: i32) {
        let mut r = -1;
        if b != 0 && a / b > 1 { r = a / b; }
        z.store(r);
    }"""
    assert run(text, z=ints(0), a=7, b=0)["z"] == [-1]
    assert run(text, z=ints(0), a=7, b=2)["z"] == [3]


SHORT = """pub fn k(z: Part<&mut Tensor<i32, 1>, 1>, a: i32, b: i32) {
    let mut r = 0;
    if b >= 0 && (b == 0 || a / b > 1) { r = 1; }
    z.store(r);
}"""


def test_the_right_side_of_a_short_circuit_is_not_executed_where_the_left_decides() -> None:
    for a, b, wanted in ((7, 0, 1), (7, 2, 1), (7, 5, 0), (LEAST, -1, 0)):
        assert run(SHORT, z=ints(0), a=a, b=b)["z"] == [wanted]
    for text, b in ((SHORT.replace("b == 0", "b == 1"), 0), (SHORT.replace("b >= 0", "b < 0"), -1)):
        message, line = trapped(text, z=ints(0), a=LEAST, b=b)
        assert (message.split(":")[0], line) == ("a / b", 3)


def test_a_division_that_is_used_elsewhere_too_is_executed() -> None:
    text = SHORT.replace("let mut r = 0", "let q = a / b; let mut r = q").replace("a / b >", "q >")
    assert trapped(text, z=ints(0), a=7, b=0)[1] == 2


def test_a_divisor_that_the_program_makes_harmless_does_not_trap() -> None:
    text = """pub fn k<N: Dim>(z: Part<&mut Tensor<u32, N>, 8>, x: &Tensor<u32, N>) {
        let t = x.load_like(&z);
        z.store(Tile::<u32, 8>::full(6) / select(t.eq(0), 1, t));
    }"""
    found = run(text, z=np.zeros(4, np.uint32), x=ints(0, 1, 2, 3, dtype=np.uint32))
    assert found["z"].tolist() == [6, 6, 3, 2]


# ---- divisions of tiles, and their padding -------------------------------------------------------

TILES = """pub fn k<N: Dim>(
    z: Part<&mut Tensor<i32, N>, 64>, x: &Tensor<i32, N>, y: &Tensor<i32, N>,
) {
    let t = x.load_like(&z);
    z.store((t + 1) / (y.load_like(&z) * 2));
}"""


@pytest.mark.parametrize("aligned", [False, True])
def test_what_is_outside_of_the_tensor_is_no_divisor(aligned: bool) -> None:
    x = np.arange(70, dtype=np.int32)
    found = run(TILES, aligned=aligned, z=np.zeros_like(x), x=x, y=np.ones_like(x))
    np.testing.assert_array_equal(found["z"], (x + 1) // 2)


@pytest.mark.parametrize("place", [0, 63, 64, 69])
def test_any_element_of_a_tile_traps(place: int) -> None:
    x = np.arange(70, dtype=np.int32)
    y = np.ones_like(x)
    y[place] = 0
    message, line = trapped(TILES, z=np.zeros_like(x), x=x, y=y)
    assert message == "(t + 1) / (y.load_like(&z) * 2): the divisor is not 0"
    assert line == 5


ROWS = """pub fn k<M: Dim, N: Dim>(
    z: Part<&mut Tensor<i32, M, N>, 4, 16>, x: &Tensor<i32, M, N>,
) {
    let t = x.load_like(&z);
    let total = t.t().sum::<0>().reshape::<4>().expand::<1>();
    z.store(t * 100 / total);
}"""


def test_rows_outside_have_no_sum() -> None:
    x = np.arange(1, 66, dtype=np.int32).reshape(5, 13)
    found = run(ROWS, z=np.zeros_like(x), x=x)["z"]
    np.testing.assert_array_equal(found, x * 100 // x.sum(1, keepdims=True))
    x[4] = 0
    message, line = trapped(ROWS, z=np.zeros_like(x), x=x)
    assert (message, line) == ("t * 100 / total: the divisor is not 0", 6)


def test_a_scalar_divisor_of_a_tile_traps() -> None:
    text = """pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, x: &Tensor<i32, N>, n: i32) {
        z.store(x.load_like(&z) / n);
    }"""
    x = ints(4, 5, 6)
    assert run(text, z=np.zeros_like(x), x=x, n=2)["z"].tolist() == [2, 2, 3]
    assert trapped(text, z=np.zeros_like(x), x=x, n=0)[0].endswith("the divisor is not 0")


def test_sums_from_the_end_on_have_no_data_where_there_is_none() -> None:
    text = """pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 32>, x: &Tensor<i32, N>) {
        let t = x.load_like(&z).cumsum_rev::<0>();
        z.store(
            12 / t);
    }"""
    x = np.ones(40, np.int32)
    np.testing.assert_array_equal(run(text, z=x.copy(), x=x)["z"][32:], [1, 1, 2, 2, 3, 4, 6, 12])
    x[39] = 0
    assert trapped(text, z=x.copy(), x=x) == ("12 / t: the divisor is not 0", 4)


def test_what_a_loop_carries_is_not_claimed_to_be_data() -> None:
    text = """pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, x: &Tensor<i32, N>, n: i32) {
        let mut s = Tile::<i32, 16>::zeros();
        for i in 0..n { s += x.load_like(&z); }
        z.store(12 / s);
    }"""
    x = ints(1, 2, 3)
    assert run(text, z=np.zeros_like(x), x=x, n=2)["z"].tolist() == [6, 3, 2]


def test_what_a_loop_carries_without_loads_is_data() -> None:
    text = """pub fn k<N: Dim>(z: Part<&mut Tensor<i32, N>, 16>, n: i32) {
        let mut s = iota::<i32, 16>();
        for i in 0..n { s += 1; }
        z.store(12 / s);
    }"""
    assert run(text, z=np.zeros(2, np.int32), n=1)["z"].tolist() == [12, 6]
    assert trapped(text, z=np.zeros(2, np.int32), n=0)[1] == 4


def test_combiners_are_left_alone() -> None:
    text = """pub fn k(z: Part<&mut Tensor<i32, 1>, 1>, x: &Tensor<i32, 16>) {
        z.store(x.load::<16>([0]).reduce::<0>(1, |a, b| (a * b) / (a * b + 1 - 1)));
    }"""
    run(text, z=ints(0), x=np.zeros(16, np.int32))


# ---- accesses ------------------------------------------------------------------------------------

UNCHECKED = """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 64>, x: &Tensor<f32, N>, i: usize) {
    z.store(unsafe {
        x.load_unchecked::<64>([i]) });
}"""


@pytest.mark.parametrize("i", [-1, 2, 3, 2**62, -(2**62)])
def test_an_unchecked_load_that_reaches_outside_traps(i: int) -> None:
    x = np.arange(140, dtype=np.float32)
    message, line = trapped(UNCHECKED, z=np.zeros_like(x), x=x, i=i)
    said = "x.load_unchecked::<64>([i]): every element is inside of the tensor"
    assert (message, line) == (said, 3)


@pytest.mark.parametrize("i", [0, 1])
def test_an_unchecked_load_that_is_inside_does_not(i: int) -> None:
    x = np.arange(140, dtype=np.float32)
    found = run(UNCHECKED, z=np.zeros_like(x), x=x, i=i)["z"]
    np.testing.assert_array_equal(found[:64], x[64 * i : 64 * i + 64])


UNSAFE = """pub fn k<M: Dim, N: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 4, 16>, x: &Tensor<f32, M, N>, i: usize,
) {
    let t = unsafe { x.load_at::<4, 16>([z.offset(0) + i, z.offset(1)]) };
    z.store(t);
}"""


@pytest.mark.parametrize("i", [0, -3])
def test_an_access_in_unsafe_may_be_cut_by_the_end(i: int) -> None:
    x = np.arange(1, 31, dtype=np.float32).reshape(5, 6)
    found = run(UNSAFE, z=np.zeros_like(x), x=x, i=i)["z"]
    np.testing.assert_array_equal(found, np.roll(x, -i, 0) * (np.arange(5) + i >= 0)[:, None])


@pytest.mark.parametrize("i", [4, -4, 2**40])
def test_an_access_in_unsafe_that_misses_the_tensor_traps(i: int) -> None:
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    message, line = trapped(UNSAFE, z=np.zeros_like(x), x=x, i=i)
    assert message.endswith("an element is inside of the tensor") and line == 4


RESIDUAL = """pub fn k<N: Dim>(
    z: Part<&mut Tensor<f32, 64>, 64>, x: &Tensor<f32, N>, places: &Tensor<i32, 1>,
) {
    let place = places.load::<1>([0]).item();
    z.store(x.load_at::<64>([place]));
}"""


@pytest.mark.parametrize("place", [64, 90, -1, -63])
def test_a_residual_access_may_be_cut(place: int) -> None:
    x = np.ones(100, np.float32)
    found = run(RESIDUAL, z=np.zeros(64, np.float32), x=x, places=ints(place))["z"]
    assert found.sum() == min(64, 64 + place, 100 - place)


@pytest.mark.parametrize("place", [100, 2**30, -64])
def test_a_residual_access_that_misses_its_tensor_traps(place: int) -> None:
    arguments = {"z": np.zeros(64, np.float32), "x": np.ones(100, np.float32)}
    message, line = trapped(RESIDUAL, **arguments, places=ints(place))
    assert (message, line) == ("x.load_at::<64>([place]): an element is inside of the tensor", 5)
    says_so = RESIDUAL.replace("load_at::<64>([place])", "load_or::<64>([place], 5.0)")
    assert (run(says_so, **arguments, places=ints(place))["z"] == 5).all()


def test_what_a_condition_on_the_arguments_decides_is_not_residual() -> None:
    """Of two tiles that one program handles, the second may be behind the end."""
    text = """pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 32>, x: &Tensor<f32, N>) {
        z.store(x.load::<16>([z.id(0) * 2]).max_all() + x.load::<16>([z.id(0) * 2 + 1]).max_all());
    }"""
    assert (run(text, z=np.zeros(40, np.float32), x=np.ones(40, np.float32))["z"][32:] == 1).all()


# ---- elements that indices choose ----------------------------------------------------------------

CHOSEN = """pub fn k<M: Dim, N: Dim, V: Dim>(
    z: Part<&mut Tensor<f32, M, N>, 4, 32>, x: &Tensor<f32, V, N>, ids: &Tensor<i32, M>,
) {
    let rows = ids.load::<4>([z.id(0)]);
    unsafe {
        z.store(x.gather_unchecked::<4, 32>([rows, z.offset(1)]));
    }
}"""


@pytest.mark.parametrize(("columns", "row"), [(32, -1), (32, 3), (33, 0)])
def test_an_unchecked_gather_that_reaches_outside_traps(columns: int, row: int) -> None:
    x, z = np.ones((3, columns), np.float32), np.zeros((4, columns), np.float32)
    message, line = trapped(CHOSEN, z=z, x=x, ids=ints(0, 2, row, 1))
    access = "x.gather_unchecked::<4, 32>([rows, z.offset(1)])"
    assert (message, line) == (f"{access}: every element is inside of the tensor", 6)


def test_an_unchecked_gather_that_is_inside_does_not() -> None:
    x, z = np.ones((3, 32), np.float32), np.zeros((4, 32), np.float32)
    assert run(CHOSEN, z=z, x=x, ids=ints(0, 2, 2, 1))["z"].all()


UPDATED = """pub fn k<N: Dim>(
    z: Part<&mut Tensor<i32, N>, 32>, a: &Atomic<Tensor<i32, N>>, i: usize,
) {
    unsafe {
        z.store(a.fetch_add_unchecked([iota::<i32, 32>()], 1) + a.load_unchecked([i]));
    }
}"""


@pytest.mark.parametrize(("n", "i", "message"), [
    (31, 0, "a.fetch_add_unchecked([iota::<i32, 32>()], 1)"), (32, 32, "a.load_unchecked([i])"),
])  # fmt: skip
def test_an_unchecked_update_that_is_outside_traps(n: int, i: int, message: str) -> None:
    found, line = trapped(UPDATED, z=np.zeros(n, np.int32), a=np.zeros(n, np.int32), i=i)
    assert (found, line) == (f"{message}: every element is inside of the tensor", 5)


def test_what_an_index_leaves_out_is_no_divisor() -> None:
    text = """pub fn k<N: Dim, V: Dim>(
        z: Part<&mut Tensor<i32, N>, 32>, x: &Tensor<i32, V>, ids: &Tensor<i32, N>,
        a: &Atomic<Tensor<i32, V>>,
    ) {
        let i = ids.load_like(&z);
        z.store(100 / x.gather::<32>([i]) + 100 / a.load([i]));
    }"""
    ids, tens = ints(0, 1, 2, -1, 3, 99), np.full(4, 10, np.int32)
    done = run(text, z=np.zeros(6, np.int32), x=tens, a=tens.copy(), ids=ids)
    assert done["z"].tolist() == [20, 20, 20, 0, 20, 0]
    wrong = ints(10, 10, 0, 10)
    message, _ = trapped(text, z=np.zeros(6, np.int32), x=wrong, a=tens, ids=ids)
    assert message == "100 / x.gather::<32>([i]): the divisor is not 0"


def test_safe_accesses_are_total() -> None:
    known = "requires!(0 <= i && i <= 1099511627776);"  # so that the index does not wrap
    text = UNSAFE.replace("let t = unsafe { ", f"{known} let t = ").replace(" };", ";")
    x = np.ones((5, 6), np.float32)
    assert not run(text, z=np.zeros_like(x), x=x, i=2**40)["z"].any()


# ---- right programs ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_kernel_library_gives_the_same(name: str) -> None:
    text = (Path(LIBRARY) / f"{name}.tile").read_text(encoding="utf-8")
    with program(some_tiles(text, 2), checked=True) as threads:
        for turn, symbol in enumerate(threads.instances):
            for problem in _small(symbol)[-1:]:
                _run_kernel(threads, problem, (ANY, ALIGNED)[turn % 2])
