"""Products with a factor that threads compute, thread by thread: the first one, or turned round.

Factors are small whole numbers, so that sums are exact; NumPy gives them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lowered import ALIGNED, program
from overlapped import LATE, TIMINGS, Timing, run, small, wide

BOTH = (LATE, Timing(seed=3, split=True))


def _positive(x: np.ndarray) -> np.ndarray:
    return np.maximum(wide(x), 0)


# The elements of a tensor, how a tile of it becomes a factor, and what that is.
COMPUTED: dict[str, tuple[str, str, Callable[[np.ndarray], np.ndarray]]] = {
    "of i8": ("i8", "{}.to::<bf16>()", wide),
    "of u8": ("u8", "({} + 1).to::<bf16>() - 1.0", wide),
    "of f32": ("f32", "({} * 2.0).to::<bf16>()", lambda x: 2 * wide(x)),
    "of bf16": ("bf16", "{}.max(0.0)", _positive),
    "of f16": ("f16", "({}.to::<f32>() * 3.0).to::<bf16>()", lambda x: 3 * wide(x)),
}


def turns(
    left: str, right: str, tensors: str, tile: tuple[int, int] = (64, 16), hints: str = ""
) -> str:
    """A product in steps of 32; `left` and `right` give factors for the step `k`."""
    m, n = tile
    return f"""{hints}
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, {m}, {n}>, {tensors}
    ) {{
        let mut sum = Tile::<f32, {m}, {n}>::zeros();
        for k in 0..K.div_ceil(32) {{
            sum = dot({left}, {right}, sum);
        }}
        z.store(sum);
    }}"""


def nothing(m: int, n: int) -> np.ndarray:
    return small(m, n, element="f32")


# ---- the first factor ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", COMPUTED)
def test_a_first_factor_is_computed(form: str) -> None:
    element, text, meaning = COMPUTED[form]
    left = text.format("x.load::<64, 32>([z.id(0), k])")
    tensors = f"x: &Tensor<{element}, M, K>, y: &Tensor<bf16, K, N>,"
    x, y = small(70, 80, element=element), small(80, 24)
    given = {"z": nothing(70, 24), "x": x, "y": y}
    program = turns(left, "y.load::<32, 16>([k, z.id(1)])", tensors)
    run(program, given, {"z": meaning(x) @ wide(y)}, *BOTH)


@pytest.mark.parametrize("k", [0, 1, 31, 32, 33, 64, 96, 160, 224])
def test_turns_against_slots(k: int) -> None:
    left = "x.load::<64, 32>([z.id(0), k]).to::<bf16>()"
    tensors = "x: &Tensor<i8, M, K>, y: &Tensor<bf16, N, K>,"
    x, y = small(65, k, element="i8"), small(16, k)
    program = turns(left, "y.load::<16, 32>([z.id(1), k]).t()", tensors)
    given = {"z": nothing(65, 16), "x": x, "y": y}
    run(program, given, {"z": wide(x) @ wide(y).T}, *TIMINGS)


@pytest.mark.parametrize(
    "load", ["x.t().load::<64, 32>([z.id(0), k])", "x.load::<32, 64>([k, z.id(0)]).t()"]
)
def test_a_source_that_lies_along_rows(load: str) -> None:
    tensors = "x: &Tensor<bf16, K, M>, y: &Tensor<bf16, K, N>,"
    x, y = small(80, 72), small(80, 16)
    program = turns(f"{load}.max(0.0)", "y.load::<32, 16>([k, z.id(1)])", tensors)
    given = {"z": nothing(72, 16), "x": x, "y": y}
    run(program, given, {"z": _positive(x).T @ wide(y)}, *BOTH)


def test_integers_are_computed() -> None:
    program = turns(
        "x.load::<64, 32>([z.id(0), k]).max(0)",
        "y.load::<16, 32>([z.id(1), k]).t()",
        "x: &Tensor<i8, M, K>, y: &Tensor<i8, N, K>,",
    ).replace("f32", "i32")
    x, y = small(64, 80, element="i8"), small(16, 80, element="i8")
    given = {"z": small(64, 16, element="i32"), "x": x, "y": y}
    run(program, given, {"z": _positive(x) @ wide(y).T}, *BOTH)


def test_scales_come_by_copies_too() -> None:
    left = (
        "x.load::<64, 32>([z.id(0), k]).to::<bf16>()"
        " * s.load::<1, 64>([k, z.id(0)]).reshape::<64>().expand::<1>()"
    )
    tensors = "x: &Tensor<i8, M, K>, y: &Tensor<bf16, K, N>, s: &Tensor<bf16, G, M>,"
    program = turns(left, "y.load::<32, 16>([k, z.id(1)])", tensors)
    x, y, s = small(136, 96, element="i8"), small(96, 16), small(3, 136)
    scaled = wide(x) * np.repeat(wide(s), 32, axis=0).T
    given = {"z": nothing(136, 16), "x": x, "y": y, "s": s}
    run(program.replace("K: Dim", "K: Dim, G: Dim"), given, {"z": scaled @ wide(y)}, *BOTH)


def test_halves_of_bytes() -> None:
    """Each byte has the weights j (low) and 16 + j (high) of 32."""
    left = "cat::<1>((q & 15).to::<bf16>(), (q >> 4).to::<bf16>())"
    tensors = "x: &Tensor<u8, M, H>, y: &Tensor<bf16, K, N>,"
    program = turns(left, "y.load::<32, 16>([k, z.id(1)])", tensors).replace(
        "sum = dot", "let q = x.load::<64, 16>([z.id(0), k]);\n            sum = dot"
    )
    weights = np.random.default_rng(5).integers(0, 16, (64, 3, 2, 16)).astype(np.uint8)
    packed = (weights[:, :, 0] | weights[:, :, 1] << 4).reshape(64, 48)
    y = small(96, 16)
    given = {"z": nothing(64, 16), "x": np.ascontiguousarray(packed), "y": y}
    product = wide(weights.reshape(64, 96)) @ wide(y)
    run(program.replace("K: Dim", "K: Dim, H: Dim"), given, {"z": product}, *BOTH)


def test_what_a_factor_is_computed_of_is_used_twice_at_each_step() -> None:
    # In two halves of k, so that what the whole was computed of goes: each operation once.
    steps = 5
    tensors = "x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,"
    factor = "y.load::<64, 128>([k, z.id(1)])"
    text = turns("t", factor, tensors, (128, 128)).replace("div_ceil(32)", "div_ceil(64)")
    computed = "let mut t = x.load::<128, 64>([z.id(0), k]);" + "t = t * t + t;" * steps
    with program(text.replace("sum = dot", f"{computed} sum = dot")) as threads:
        assert threads.lowered("k", ALIGNED)[0].tensor_maps, "products overlap with copies"


def test_two_products_take_what_is_computed() -> None:
    program = """
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 16>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
        w: &Tensor<bf16, K, N>,
    ) {
        let mut one = Tile::<f32, 64, 16>::zeros();
        let mut other = Tile::<f32, 64, 16>::zeros();
        for k in 0..K.div_ceil(32) {
            let a = x.load::<64, 32>([z.id(0), k]).max(0.0);
            one = dot(a, y.load::<32, 16>([k, z.id(1)]), one);
            other = dot(a, w.load::<32, 16>([k, z.id(1)]), other);
        }
        z.store(one - other * 2.0);
    }"""
    x, y, w = small(64, 100), small(100, 16), small(100, 16)
    given = {"z": nothing(64, 16), "x": x, "y": y, "w": w}
    run(program, given, {"z": _positive(x) @ (wide(y) - 2 * wide(w))}, *BOTH)


def test_a_product_of_a_product() -> None:
    program = """
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim, L: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 64, 16>, q: &Tensor<bf16, M, L>, x: &Tensor<bf16, K, L>,
        y: &Tensor<bf16, K, N>,
    ) {
        let mut sum = Tile::<f32, 64, 16>::zeros();
        let rows = q.load::<64, 16>([z.id(0), 0]);
        for k in 0..K.div_ceil(32) {
            let s = rows.dot(x.load::<32, 16>([k, 0]).t());
            sum = dot(s.max(0.0).to::<bf16>(), y.load::<32, 16>([k, z.id(1)]), sum);
        }
        z.store(sum);
    }"""
    q, x, y = small(64, 8), small(80, 8), small(80, 16)
    given = {"z": nothing(64, 16), "q": q, "x": x, "y": y}
    between = np.maximum(wide(q) @ wide(x).T, 0)
    run(program, given, {"z": between @ wide(y)}, *BOTH)


# ---- in turns: one factor is computed while a product of another one is under way ----------------


def in_turns(body: str, tensors: str) -> str:
    """With slots enough for that, `body` in steps of 64."""
    return f"""
    #[hint(stages = 3)]
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(z: Part<&mut Tensor<f32, M, N>, 64, 16>, {tensors}) {{
        let mut sum = Tile::<f32, 64, 16>::zeros();
        for k in 0..K.div_ceil(64) {{ {body} }}
        z.store(sum);
    }}"""


@pytest.mark.parametrize("k", [0, 1, 32, 64, 65, 128, 192, 300])
def test_halves_of_a_factor_are_computed_in_turns(k: int) -> None:
    body = """
        let w = x.load::<64, 64>([z.id(0), k]).to::<bf16>() * 2.0 + 1.0;
        sum = dot(w, y.load::<64, 16>([k, z.id(1)]), sum);"""
    x, y = small(65, k, element="i8"), small(k, 24)
    program = in_turns(body, "x: &Tensor<i8, M, K>, y: &Tensor<bf16, K, N>")
    given = {"z": nothing(65, 24), "x": x, "y": y}
    run(program, given, {"z": (2 * wide(x) + 1) @ wide(y)}, *TIMINGS)


@pytest.mark.parametrize("k", [64, 130, 320])
def test_factors_of_several_products_are_computed_in_turns(k: int) -> None:
    body = """
        let t = x.load::<64, 64>([z.id(0), k]);
        sum = dot(t.max(0).to::<bf16>(), y.load::<64, 16>([k, z.id(1)]), sum);
        sum = dot(t.min(1).to::<bf16>(), w.load::<64, 16>([k, z.id(1)]), sum);
        sum = dot((t + t).to::<bf16>(), y.load::<64, 16>([k, z.id(1)]), sum);"""
    x, y, w = small(70, k, element="i8"), small(k, 16), small(k, 16)
    program = in_turns(body, "x: &Tensor<i8, M, K>, y: &Tensor<bf16, K, N>, w: &Tensor<bf16, K, N>")
    product = (_positive(x) + 2 * wide(x)) @ wide(y) + np.minimum(wide(x), 1) @ wide(w)
    run(program, {"z": nothing(70, 16), "x": x, "y": y, "w": w}, {"z": product}, *TIMINGS)


def test_scales_of_halves() -> None:
    body = """
        let s = scale.load::<64, 1>([z.id(0), k]);
        let w = x.load::<64, 64>([z.id(0), k]).to::<bf16>() * s;
        sum = dot(w, y.load::<64, 16>([k, z.id(1)]), sum);"""
    tensors = "x: &Tensor<i8, M, K>, y: &Tensor<bf16, K, N>, scale: &Tensor<bf16, M, G>"
    program = in_turns(body, tensors).replace("K: Dim", "K: Dim, G: Dim")
    x, y, scale = small(70, 256, element="i8"), small(256, 16), small(70, 4)
    product = (wide(x) * np.repeat(wide(scale), 64, axis=1)) @ wide(y)
    given = {"z": nothing(70, 16), "x": x, "y": y, "scale": scale}
    run(program, given, {"z": product}, *TIMINGS)


# ---- turned round --------------------------------------------------------------------------------


@pytest.mark.parametrize("extents", [(16, 64, 64), (5, 70, 33), (17, 129, 1), (16, 64, 0)])
def test_a_second_factor_is_computed(extents: tuple[int, int, int]) -> None:
    m, n, k = extents
    tensors = "x: &Tensor<bf16, M, K>, y: &Tensor<i8, N, K>,"
    program = turns(
        "x.load::<16, 32>([z.id(0), k])",
        "y.load::<64, 32>([z.id(1), k]).to::<bf16>().t()",
        tensors,
        (16, 64),
    )
    x, y = small(m, k), small(n, k, element="i8")
    given = {"z": nothing(m, n), "x": x, "y": y}
    run(program, given, {"z": wide(x) @ wide(y).T}, *BOTH)


def test_a_second_factor_that_lies_along_columns_is_computed() -> None:
    tensors = "x: &Tensor<bf16, M, K>, y: &Tensor<i8, K, N>,"
    program = turns(
        "x.load::<32, 32>([z.id(0), k])",
        "y.load::<32, 64>([k, z.id(1)]).to::<bf16>()",
        tensors,
        (32, 64),
    )
    x, y = small(40, 72), small(72, 80, element="i8")
    given = {"z": nothing(40, 80), "x": x, "y": y}
    run(program, given, {"z": wide(x) @ wide(y)}, *BOTH)


@pytest.mark.parametrize("form", ["K, N", "N, K"])
def test_few_rows_become_few_columns(form: str) -> None:
    right = (
        "y.load::<32, 64>([k, z.id(1)])" if form == "K, N" else "y.t().load::<32, 64>([k, z.id(1)])"
    )
    tensors = f"x: &Tensor<bf16, M, K>, y: &Tensor<bf16, {form}>,"
    program = turns("x.load::<16, 32>([z.id(0), k])", right, tensors, (16, 64))
    x, y = small(9, 72), small(72, 80)
    given = {"z": nothing(9, 80), "x": x, "y": y if form == "K, N" else np.ascontiguousarray(y.T)}
    run(program, given, {"z": wide(x) @ wide(y)}, *BOTH)


@pytest.mark.parametrize("hints", ["cluster = 1", "cluster = [2, 1]", "cluster = [1, 2]"])
@pytest.mark.parametrize("rows", [80, 208])
def test_rows_that_are_no_multiple_of_64_become_columns(rows: int, hints: str) -> None:
    tensors = "x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,"
    tiles = (f"x.load::<{rows}, 32>([z.id(0), k])", "y.load::<32, 128>([k, z.id(1)])")
    program = turns(*tiles, tensors, (rows, 128), f"#[hint({hints}, stages = 2)]")
    x, y = small(300, 72), small(72, 200)
    given = {"z": nothing(300, 200), "x": x, "y": y}
    run(program, given, {"z": wide(x) @ wide(y)}, *BOTH)


def test_sums_of_nested_loops_are_turned() -> None:
    program = """
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        z: Part<&mut Tensor<f32, M, N>, 16, 64>, x: &Tensor<bf16, M, K>, y: &Tensor<bf16, K, N>,
    ) {
        let mut sum = Tile::<f32, 16, 64>::ones();
        for _i in 0..2 {
            for k in 0..K.div_ceil(32) {
                sum = dot(x.load::<16, 32>([z.id(0), k]), y.load::<32, 64>([k, z.id(1)]), sum);
            }
        }
        z.store(sum);
    }"""
    x, y = small(16, 72), small(72, 64)
    given = {"z": nothing(16, 64), "x": x, "y": y}
    run(program, given, {"z": 2 * wide(x) @ wide(y) + 1}, *BOTH)


@pytest.mark.parametrize("k", [0, 32, 70])
def test_warpgroups_by_turns_compute_factors(k: int) -> None:
    tensors = "x: &Tensor<i8, M, K>, y: &Tensor<bf16, K, N>,"
    program = turns(
        "x.load::<64, 32>([z.id(0), k]).to::<bf16>()",
        "y.load::<32, 16>([k, z.id(1)])",
        tensors,
        hints="#[hint(stages = 3, ping_pong)]",
    )
    x, y = small(200, k, element="i8"), small(k, 40)
    given = {"z": nothing(200, 40), "x": x, "y": y}
    run(program, given, {"z": wide(x) @ wide(y)}, *TIMINGS)
