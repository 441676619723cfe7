"""Programs of any shape around products that are overlapped with copies, thread by thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from overlapped import EARLY, LATE, TIMINGS, Timing, run, small, trips, wide
from random_products import RandomProducts

BOTH = (LATE, Timing(seed=3, split=True))
F32 = {"element": "f32"}


def kernel(body: str, parameters: str = "", hints: str = "") -> str:
    """Tiles of 64 by 32 by 16 of `z`, from `x` (M, K) and `y` (K, N)."""
    return f"""{hints}
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 32>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
        {parameters}
    ) {{
        {body}
    }}"""


def factors(m: int = 70, n: int = 40, k: int = 70) -> dict[str, Any]:
    return {"z": small(m, n, **F32), "x": small(m, k), "y": small(k, n)}


A, B = "x.load::<64, 16>([z.id(0), k])", "y.load::<16, 32>([k, z.id(1)])"
ZERO = "Tile::<f32, 64, 32>::zeros()"
STEPS = "0..K.div_ceil(16)"


# ---- several products ----------------------------------------------------------------------------


def test_two_products_share_a_factor() -> None:
    given = factors()
    given["w"] = small(70, 40)
    text = kernel(
        f"""let mut g = {ZERO};
        let mut u = {ZERO};
        for k in {STEPS} {{
            let a = {A};
            g = dot(a, {B}, g);
            u = dot(a, w.load::<16, 32>([k, z.id(1)]), u);
        }}
        z.store(g.max(0.0) * u);""",
        "w: &Tensor<bf16, K, N>,",
    )
    x, y, w = (wide(given[name]) for name in "xyw")
    run(text, given, {"z": np.maximum(x @ y, 0) * (x @ w)}, *BOTH)


def test_products_that_add_to_each_other() -> None:
    given = factors()
    given["w"] = small(70, 40)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            let a = {A};
            sum = dot(a, {B}, sum);
            sum = dot(a, w.load::<16, 32>([k, z.id(1)]), sum);
        }}
        z.store(sum);""",
        "w: &Tensor<bf16, K, N>,",
    )
    x, y, w = (wide(given[name]) for name in "xyw")
    run(text, given, {"z": x @ (y + w)}, *BOTH)


def test_two_products_add_to_the_same_sums() -> None:
    given = factors(k=40)
    given["w"] = small(40, 40)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            let a = {A};
            let one = dot(a, {B}, sum);
            let other = dot(a, w.load::<16, 32>([k, z.id(1)]), sum);
            sum = one - other;
        }}
        z.store(sum);""",
        "w: &Tensor<bf16, K, N>,",
    )
    x, y, w = (wide(given[name]) for name in "xyw")
    last = slice(32, 40)
    # What both add to goes away, each turn.
    run(text, given, {"z": x[:, last] @ (y - w)[last]}, *BOTH)


def test_sums_that_are_under_way_are_added_to_twice() -> None:
    given = factors(k=40)
    given["w"], given["v"] = small(40, 40), small(40, 40)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            let a = {A};
            let all = dot(a, {B}, {ZERO});
            let one = dot(a, w.load::<16, 32>([k, z.id(1)]), all);
            let other = dot(a, v.load::<16, 32>([k, z.id(1)]), all);
            sum = sum + one * 3.0 - other;
        }}
        z.store(sum);""",
        "w: &Tensor<bf16, K, N>, v: &Tensor<bf16, K, N>,",
    )
    x, y, w, v = (wide(given[name]) for name in "xywv")
    run(text, given, {"z": x @ (2 * y + 3 * w - v)}, *BOTH)


def test_sums_that_are_under_way_are_added_to_in_a_loop() -> None:
    given = factors(k=40)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            let first = dot({A}, {B}, {ZERO});
            for j in {STEPS} {{
                let a = x.load::<64, 16>([z.id(0), j]);
                sum = sum + dot(a, y.load::<16, 32>([j, z.id(1)]), first);
            }}
        }}
        z.store(sum);"""
    )
    run(text, given, {"z": 6 * wide(given["x"]) @ wide(given["y"])}, *BOTH)


def test_a_product_of_a_slot_after_a_wait_for_another() -> None:
    given = factors(k=90)
    given["w"] = small(90, 40)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            let a = {A};
            let c = w.load::<16, 32>([k, z.id(1)]);
            let first = dot(a, {B}, {ZERO}) * 2.0;
            sum = dot(a, c, sum + first);
        }}
        z.store(sum);""",
        "w: &Tensor<bf16, K, N>,",
        "#[hint(stages = 2)]",
    )
    x, y, w = (wide(given[name]) for name in "xyw")
    run(text, given, {"z": x @ (2 * y + w)}, *TIMINGS)


def test_sums_that_are_carried_twice() -> None:
    given = factors(k=40)
    text = kernel(
        f"""let mut sum = {ZERO};
        let mut before = {ZERO};
        for k in {STEPS} {{
            before = sum;
            sum = dot({A}, {B}, sum);
        }}
        z.store(sum * 100.0 + before);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": x @ y * 100 + x[:, :32] @ y[:32]}, *BOTH)


def test_sums_that_change_places() -> None:
    given = factors(k=80)
    text = kernel(
        f"""let mut s = {ZERO};
        let mut t = Tile::<f32, 64, 32>::ones();
        for k in {STEPS} {{
            let next = dot({A}, {B}, s);
            s = t;
            t = next;
        }}
        z.store(s * 100.0 + t);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    s, t = np.zeros((70, 40)), np.ones((70, 40))
    for k in range(0, 80, 16):
        s, t = t, s + x[:, k : k + 16] @ y[k : k + 16]
    # They would have to be copied while they are under way.
    run(text, given, {"z": s * 100 + t}, overlaps=False)


def test_a_loop_after_another() -> None:
    given = factors()
    given["w"], given["v"] = small(70, 100), small(100, 40)
    text = """#[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim, L: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 32>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
        w: &Tensor<bf16, M, L>, v: &Tensor<bf16, L, N>,
    ) {
        let mut sum = Tile::<f32, 64, 32>::zeros();
        for k in 0..K.div_ceil(16) {
            sum = dot(x.load::<64, 16>([z.id(0), k]), y.load::<16, 32>([k, z.id(1)]), sum);
        }
        sum = sum - sum.min::<0>();
        for k in 0..L.div_ceil(32) {
            sum = dot(w.load::<64, 32>([z.id(0), k]), v.load::<32, 32>([k, z.id(1)]), sum);
        }
        z.store(sum);
    }"""
    given["z"], given["x"], given["w"] = small(64, 40, **F32), small(64, 70), small(64, 100)
    x, y, w, v = (wide(given[name]) for name in "xywv")
    run(text, given, {"z": x @ y - (x @ y).min(axis=0) + w @ v}, *BOTH)


def test_the_same_factors_in_several_loops() -> None:
    given = factors()
    loop = f"for k in {STEPS} {{ sum = dot({A}, {B}, sum); }}"
    text = kernel(f"let mut sum = {ZERO}; {loop} sum = sum * 2.0; {loop} {loop} z.store(sum);")
    run(text, given, {"z": 4 * wide(given["x"]) @ wide(given["y"])}, *BOTH)


def test_a_factor_times_itself() -> None:
    given = {"z": small(70, 70, **F32), "x": small(70, 50)}
    text = """#[kernel]
    pub fn k<M: Dim, K: Dim>(z: Part<&mut Tensor<f32, M, M>, 64, 64>, x: &Tensor<bf16, M, K>) {
        let mut sum = Tile::<f32, 64, 64>::zeros();
        for k in 0..K.div_ceil(16) {
            let b = x.load::<64, 16>([z.id(1), k]);
            sum = dot(x.load::<64, 16>([z.id(0), k]), b.t(), sum);
        }
        z.store(sum);
    }"""
    run(text, given, {"z": wide(given["x"]) @ wide(given["x"]).T}, *BOTH)


def test_one_tile_is_both_factors() -> None:
    given = {"z": small(64, 64, **F32), "x": small(64, 50)}
    text = """#[kernel]
    pub fn k<K: Dim>(z: Part<&mut Tensor<f32, 64, 64>, 64, 64>, x: &Tensor<bf16, 64, K>) {
        let mut sum = Tile::<f32, 64, 64>::zeros();
        for k in 0..K.div_ceil(16) {
            let a = x.load::<64, 16>([0, k]);
            sum = dot(a, a.t(), sum);
        }
        z.store(sum);
    }"""
    run(text, given, {"z": wide(given["x"]) @ wide(given["x"]).T}, *BOTH)


# ---- sums in a loop ------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_sums_that_are_scaled_each_turn(turns: int) -> None:
    given = factors(k=16 * turns)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{ sum = dot({A}, {B}, sum * 2.0); }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = np.zeros((70, 40))
    for k in range(0, 16 * turns, 16):
        sums = sums * 2 + x[:, k : k + 16] @ y[k : k + 16]
    run(text, given, {"z": sums}, *BOTH)


def test_sums_that_are_scaled_by_what_they_are() -> None:
    given = factors(m=64, k=64)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            sum = dot({A}, {B}, sum);
            sum = sum - sum.max::<1>();
        }}
        z.store(sum);"""
    )
    given["z"], given["y"] = small(64, 32, **F32), small(64, 32)
    x, y = wide(given["x"]), wide(given["y"])
    sums = np.zeros((64, 32))
    for k in range(0, 64, 16):
        sums += x[:, k : k + 16] @ y[k : k + 16]
        sums -= sums.max(axis=1, keepdims=True)
    run(text, given, {"z": sums}, *BOTH)


def test_products_that_begin_at_zero_each_turn() -> None:
    given = factors()
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{ sum = sum + {A}.dot({B}).abs(); }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = sum(np.abs(x[:, k : k + 16] @ y[k : k + 16]) for k in range(0, 70, 16))
    run(text, given, {"z": sums}, *BOTH)


def test_sums_that_are_used_in_the_turn_after() -> None:
    given = factors(k=64)
    text = kernel(
        f"""let mut sum = {ZERO};
        let mut last = {ZERO};
        for k in {STEPS} {{
            sum = sum + last;
            last = dot({A}, {B}, {ZERO});
        }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": x[:, :48] @ y[:48]}, *BOTH)


def test_a_tile_that_is_no_factor_only() -> None:
    given = factors(m=64)
    text = kernel(
        f"""let mut sum = {ZERO};
        let mut total = Tile::<f32, 64, 1>::zeros();
        for k in {STEPS} {{
            let a = {A};
            total = total + a.to::<f32>().sum::<1>();
            sum = dot(a, {B}, sum);
        }}
        z.store(sum + total);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": x @ y + x.sum(axis=1, keepdims=True)}, *BOTH)


def test_sums_that_the_next_turn_forgets() -> None:
    given = factors(k=64)
    text = kernel(
        f"""let mut sum = {ZERO};
        let one = Tile::<f32, 64, 32>::ones();
        for k in {STEPS} {{ sum = dot({A}, {B}, one); }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": x[:, 48:] @ y[48:] + 1}, *BOTH)


@pytest.mark.parametrize("turns", [0, 2])
def test_a_product_that_is_the_same_each_turn(turns: int) -> None:
    given = factors()
    given["n"] = turns
    text = kernel(
        f"""let mut same = {ZERO};
        let mut sum = {ZERO};
        for i in 0..n {{
            same = x.load::<64, 16>([z.id(0), 1]).dot(y.load::<16, 32>([1, z.id(1)]));
        }}
        for k in {STEPS} {{ sum = dot({A}, {B}, sum); }}
        z.store(sum + same);""",
        "n: i32,",
    )
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": x @ y + bool(turns) * x[:, 16:32] @ y[16:32]}, *BOTH)


@pytest.mark.parametrize("checked", [False, True])
def test_a_number_that_sums_give(checked: bool) -> None:
    given = factors(m=64, n=32, k=64)
    given["d"] = 1
    text = kernel(
        f"""let mut sum = {ZERO};
        for i in {STEPS} {{
            let first = sum.at([3, 4]) * 2.0;
            assert!(first < 5000.0);
            let k = i / d;
            sum = dot({A}, {B}, sum) - first;
        }}
        z.store(sum);""",
        "d: usize,",
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = np.zeros((64, 32))
    for k in range(0, 64, 16):
        sums = sums + x[:, k : k + 16] @ y[k : k + 16] - 2 * sums[3, 4]
    # The assembler refuses traps beside asynchronous products.
    run(text, given, {"z": sums}, *BOTH, checked=checked, overlaps=not checked)


def test_tiles_beside_factors() -> None:
    given = factors()
    given["r"] = small(70, 70, **F32)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            sum = dot({A}, {B}, sum);
            sum = sum + r.load::<64, 1>([z.id(0), k * 16]);
        }}
        z.store(sum);""",
        "r: &Tensor<f32, M, K>,",
    )
    x, y, r = (wide(given[name]) for name in "xyr")
    run(text, given, {"z": x @ y + r[:, ::16].sum(axis=1, keepdims=True)}, *BOTH)


# ---- loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_sums_that_begin_anew_in_an_outer_loop(turns: int) -> None:
    given = factors(k=40)
    given["n"] = turns
    text = kernel(
        f"""let mut total = {ZERO};
        for i in 0..n {{
            let mut sum = {ZERO};
            for k in {STEPS} {{ sum = dot({A}, {B}, sum); }}
            total = total + sum * (i as f32 + 1.0);
        }}
        z.store(total);""",
        "n: i32,",
    )
    product = wide(given["x"]) @ wide(given["y"])
    run(text, given, {"z": product * sum(range(1, turns + 1))}, *BOTH)


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_sums_that_go_on_in_an_outer_loop(turns: int) -> None:
    given = factors(k=40)
    given["n"] = turns
    text = kernel(
        f"""let mut sum = {ZERO};
        for i in 0..n as usize {{
            for k in i..K.div_ceil(16) {{ sum = dot({A}, {B}, sum); }}
        }}
        z.store(sum);""",
        "n: i32,",
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = sum((x[:, 16 * i :] @ y[16 * i :] for i in range(turns)), np.zeros((70, 40)))
    run(text, given, {"z": sums}, *BOTH)


def test_a_factor_that_does_not_change() -> None:
    given = {"z": small(70, 100, **F32), "x": small(70, 16), "y": small(16, 100)}
    text = """#[kernel]
    pub fn k<M: Dim, N: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 128>, x: &Tensor<bf16, M, 16>,
        y: &Tensor<bf16, 16, N>,
    ) {
        let a = x.load::<64, 16>([z.id(0), 0]);
        for j in 0..4 {
            let p = z.sub::<64, 32>([0, j]);
            p.store(dot(a, y.load::<16, 32>([0, z.id(1) * 4 + j]), Tile::<f32, 64, 32>::ones()));
        }
    }"""
    run(text, given, {"z": wide(given["x"]) @ wide(given["y"]) + 1}, *TIMINGS)


def test_a_factor_that_an_outer_loop_changes() -> None:
    given = {"z": small(70, 32, **F32), "x": small(70, 64), "y": small(64, 96)}
    text = """#[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, 32>, 64, 32>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
    ) {
        let mut sum = Tile::<f32, 64, 32>::zeros();
        for k in 0..K.div_ceil(16) {
            let a = x.load::<64, 16>([z.id(0), k]);
            for j in 0..N.div_ceil(32) {
                sum = dot(a, y.load::<16, 32>([k, j]), sum);
            }
        }
        z.store(sum);
    }"""
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": x @ y.reshape(64, 3, 32).sum(axis=1)}, *BOTH)


def test_loops_that_run_backwards_or_skip() -> None:
    given = factors(k=130)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in (0..K.div_ceil(16)).rev() {{ sum = dot({A}, {B}, sum * 2.0); }}
        for k in (1..K.div_ceil(16)).step_by(3) {{ sum = dot({A}, {B}, sum); }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    parts = [x[:, k : k + 16] @ y[k : k + 16] for k in range(0, 130, 16)]
    sums = sum(part * 2.0**i for i, part in enumerate(parts)) + sum(parts[1::3])
    run(text, given, {"z": sums}, *BOTH)


def test_turns_that_depend_on_the_program() -> None:
    given = {"z": small(200, 40, **F32), "x": small(200, 64), "y": small(64, 40)}
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in 0..z.id(0) {{ sum = dot({A}, {B}, sum); }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = np.concatenate([x[i : i + 64, : i // 4] @ y[: i // 4] for i in range(0, 200, 64)])
    run(text, given, {"z": sums}, *BOTH)


def test_tiles_outside_of_tensors() -> None:
    """Before, beyond, and partly: all that is not the tensor's is zero."""
    given = factors(m=64, n=32, k=50)
    text = kernel(
        f"""let mut sum = {ZERO};
        for i in 0..6 {{
            let k = i - 2;
            sum = dot({A}, {B}, sum);
            sum = dot(x.load_at::<64, 16>([-9, i * 13 - 20]), y.load_at::<16, 32>([i * 13 - 20, 5]),
                      sum);
        }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = x @ y
    padded_x, padded_y = np.zeros((128, 200)), np.zeros((200, 64))
    padded_x[9:73, 50:100], padded_y[50:100, :32] = x, y
    for i in range(6):
        at = slice(50 + i * 13 - 20, 50 + i * 13 - 4)
        sums = sums + padded_x[:64, at] @ padded_y[at, 5:37]
    run(text, given, {"z": sums}, *BOTH)


# ---- branches ------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", [0, 1])
def test_a_branch_around_a_loop(flag: int) -> None:
    given = factors()
    given["n"] = flag
    text = kernel(
        f"""let mut sum = {ZERO};
        if n > 0 {{
            for k in {STEPS} {{ sum = dot({A}, {B}, sum); }}
        }} else {{
            for k in {STEPS} {{ sum = dot({A}, {B}, sum * 2.0); }}
            sum = sum - 1.0;
        }}
        z.store(sum);""",
        "n: i32,",
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = np.zeros((70, 40))
    for k in range(0, 70, 16):
        sums = sums * (1 if flag else 2) + x[:, k : k + 16] @ y[k : k + 16]
    run(text, given, {"z": sums - (0 if flag else 1)}, *BOTH)


def test_branches_in_a_loop() -> None:
    given = factors(k=120)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            if k % 3 == 0 {{
                sum = dot({A}, {B}, sum);
            }} else if k % 3 == 1 {{
                sum = sum + {A}.dot({B}) * 5.0;
            }}
        }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    parts = [x[:, k : k + 16] @ y[k : k + 16] for k in range(0, 120, 16)]
    run(text, given, {"z": sum(parts[::3]) + 5 * sum(parts[1::3])}, *BOTH)


def test_branches_between_a_copy_and_its_product() -> None:
    given = factors(k=120)
    given["n"] = 3
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{
            let a = {A};
            let b = {B};
            if k < n {{ sum = dot(a, b, sum); }}
        }}
        z.store(sum);""",
        "n: usize,",
    )
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": x[:, :48] @ y[:48]}, *BOTH)


# ---- after the loop ------------------------------------------------------------------------------


def test_bias_activation_and_sums_of_rows() -> None:
    given = factors(m=70, n=32)
    given["bias"], given["r"] = small(32, **F32), small(70, 1, **F32)
    text = """#[kernel]
    pub fn k<M: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, 32>, 64, 32>, r: Part<&mut Tensor<f32, M, 1>, 64, 1>,
        x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, 32>, bias: &Tensor<f32, 32>,
    ) {
        let mut sum = Tile::<f32, 64, 32>::zeros();
        for k in 0..K.div_ceil(16) {
            sum = dot(x.load::<64, 16>([z.id(0), k]), y.load::<16, 32>([k, 0]), sum);
        }
        let out = (sum + bias.load::<32>([0]).expand::<0>()).max(0.0);
        r.store(out.sum::<1>());
        z.store(out);
    }"""
    out = np.maximum(wide(given["x"]) @ wide(given["y"]) + wide(given["bias"]), 0)
    run(text, given, {"z": out, "r": out.sum(axis=1, keepdims=True)}, *BOTH)


@pytest.mark.parametrize("rows", [64, 128])
def test_results_that_shared_memory_turns(rows: int) -> None:
    """What is stored goes through memory that slots had."""
    given = {"z": small(96, 140, **F32), "x": small(140, 50), "y": small(50, 96)}
    text = f"""#[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, N, M>, 64, {rows}>, x: &Tensor<bf16, M, K>,
        y: &Tensor<bf16, K, N>,
    ) {{
        let mut sum = Tile::<f32, {rows}, 64>::zeros();
        for k in 0..K.div_ceil(16) {{
            sum = dot(x.load::<{rows}, 16>([z.id(1), k]), y.load::<16, 64>([k, z.id(0)]), sum);
        }}
        z.store(sum.t() + sum.t().flip::<1>());
    }}"""
    x, y = wide(given["x"]), wide(given["y"])
    whole = np.zeros((2 * 64, trips(140, rows) * rows))
    whole[:96, :140] = (x @ y).T
    turned = whole.reshape(128, -1, rows)[:, :, ::-1].reshape(128, -1)
    run(text, given, {"z": (whole + turned)[:96, :140]}, *BOTH)


def test_a_product_of_products() -> None:
    """The second one takes what is in registers: not all of a kernel is overlapped."""
    given = factors(m=70, n=32)
    given["w"] = small(32, 32)
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{ sum = dot({A}, {B}, sum); }}
        let few = sum.min(2.0).max(-2.0).to::<bf16>();
        z.store(few.dot(w.load::<32, 32>([0, z.id(1)])));""",
        "w: &Tensor<bf16, 32, N>,",
    )
    few = np.clip(wide(given["x"]) @ wide(given["y"]), -2, 2)
    run(text, given, {"z": few @ wide(given["w"])}, *BOTH)


# ---- other views ---------------------------------------------------------------------------------


def test_batches() -> None:
    given = {"z": small(3, 70, 40, **F32), "x": small(3, 70, 50), "y": small(3, 50, 40)}
    text = """#[kernel]
    pub fn k<L: Dim, M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, L, M, N>, 1, 64, 32>, x: &Tensor<bf16, L, M, K>,
        y: &Tensor<bf16, L, K, N>,
    ) {
        let mut sum = Tile::<f32, 64, 32>::zeros();
        for k in 0..K.div_ceil(16) {
            let a = x.load::<1, 64, 16>([z.id(0), z.id(1), k]).squeeze::<0>();
            let b = y.load::<1, 16, 32>([z.id(0), k, z.id(2)]).squeeze::<0>();
            sum = dot(a, b, sum);
        }
        z.store(sum.expand::<0>());
    }"""
    run(text, given, {"z": wide(given["x"]) @ wide(given["y"])}, *BOTH)


def test_permuted_views() -> None:
    given = {"z": small(70, 40, **F32), "x": small(70, 2, 50), "y": small(50, 2, 40)}
    text = """#[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 32>, x: &Tensor<bf16, M, 2, K>,
        y: &Tensor<bf16, K, 2, N>,
    ) {
        let mut sum = Tile::<f32, 64, 32>::zeros();
        for h in 0..2 {
            for k in 0..K.div_ceil(16) {
                let a = x.load::<64, 1, 16>([z.id(0), h, k]).squeeze::<1>();
                let b = y.permute::<1, 0, 2>().load::<1, 16, 32>([h, k, z.id(1)]).squeeze::<0>();
                sum = dot(a, b, sum);
            }
        }
        z.store(sum);
    }"""
    x, y = wide(given["x"]), wide(given["y"])
    run(text, given, {"z": np.einsum("mhk,khn->mn", x, y)}, *BOTH)


# ---- what is not overlapped ----------------------------------------------------------------------


def test_copies_that_depend_on_tiles_are_not_made_ahead() -> None:
    given = factors(k=64)
    given["i"] = np.array([2, 0, 3, 1], np.int32)
    text = kernel(
        f"""let mut sum = {ZERO};
        for j in {STEPS} {{
            let k = i.load::<4>([0]).at([j]);
            sum = dot({A}, {B}, sum * 2.0);
        }}
        z.store(sum);""",
        "i: &Tensor<i32, 4>,",
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = np.zeros((70, 40))
    for k in given["i"]:
        at = slice(16 * k, 16 * k + 16)
        sums = sums * 2 + x[:, at] @ y[at]
    run(text, given, {"z": sums}, overlaps=False)


def test_a_loop_that_ends_when_sums_are_large() -> None:
    given = factors(m=64, n=32, k=96)
    text = kernel(
        f"""let mut sum = {ZERO};
        let mut k = 0;
        while k < K.div_ceil(16) && sum.max::<1>().max::<0>().at([0, 0]) < 20.0 {{
            sum = dot({A}, {B}, sum);
            k += 1;
        }}
        z.store(sum);"""
    )
    x, y = wide(given["x"]), wide(given["y"])
    sums = np.zeros((64, 32))
    for k in range(0, 96, 16):
        if sums.max() >= 20:
            break
        sums += x[:, k : k + 16] @ y[k : k + 16]
    run(text, given, {"z": sums}, overlaps=False)


def test_factors_that_are_both_computed() -> None:
    given = factors()
    text = kernel(
        f"""let mut sum = {ZERO};
        for k in {STEPS} {{ sum = dot({A} * 2.0, {B} * 3.0, sum); }}
        z.store(sum);"""
    )
    run(text, given, {"z": 6 * wide(given["x"]) @ wide(given["y"])})


def test_a_product_that_is_overlapped_beside_one_that_is_not() -> None:
    given = factors()
    text = kernel(
        f"""let mut sum = {ZERO};
        let mut other = {ZERO};
        for k in {STEPS} {{
            let b = {B};
            sum = dot({A}, b, sum);
            other = dot({A} * 2.0, b * 3.0, other);
        }}
        z.store(sum * other);"""
    )
    product = wide(given["x"]) @ wide(given["y"])
    run(text, given, {"z": 6 * product * product}, *BOTH, EARLY)


def test_a_table_says_which_blocks_are_copied_and_how_many() -> None:
    """The numbers of a tensor that is only read; those outside of it are zero."""
    given = factors() | {"at": np.array([3, -1, 0, 2, 9, 1], np.int32)}
    text = kernel(
        f"""let mut sum = {ZERO};
        let count = at.load::<1>([z.id(0) + 3]).item();
        for j in 0..count + 4 {{
            let k = at.load::<1>([j]).item();
            if k > 0 {{ sum = dot({A}, {B}, sum); }}
        }}
        z.store(sum);""",
        "at: &Tensor<i32, P>,",
    ).replace("K: Dim>", "K: Dim, P: Dim>")
    x, y = wide(given["x"]), wide(given["y"])
    wanted = np.zeros((70, 40))
    for tile in range(2):
        rows = slice(64 * tile, 64 * tile + 64)
        for j in range(given["at"][tile + 3] + 4):
            k = int(given["at"][j]) if j < 6 else 0
            block = slice(16 * k, 16 * k + 16)
            wanted[rows] += x[rows, block] @ y[block] if k > 0 else 0
    run(text, given, {"z": wanted}, *TIMINGS)


# ---- at random -----------------------------------------------------------------------------------


# Slots that loader and math warps waited for in different orders (14, 37); registers of factors
# that were made while a product of another turn read them (13, 14 with computed ones).
@pytest.mark.parametrize(
    ("seed", "computes"),
    [*((seed, False) for seed in (1, 2, 3, 14, 37)), *((seed, True) for seed in (2, 13, 14))],
)
def test_random_loops_and_branches(seed: int, computes: bool) -> None:
    made = RandomProducts(seed, computes)
    m, n, k = made.rows + 6, 32, 56
    given = {
        "z": small(m, n, **F32), "x": small(m, k), "y": small(k, n), "w": small(k, m),
        "v": small(n, k), "n": seed % 4,
    }  # fmt: skip
    wanted = made.results(given)
    assert np.abs(wanted).max() < 2**24, "sums are exact"
    timing = Timing(seed=seed, split=True) if seed % 2 else LATE
    run(made.text, given, {"z": wanted}, timing, overlaps=None)
