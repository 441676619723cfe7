"""Loops whose tiles all threads copy ahead, thread by thread, against NumPy: by `cp.async`, and
through registers where elements lie at any address."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowered import ALIGNED, ANY, program
from overlapped import small, wide

# By which code: copies by hardware are nowhere.
SM_80, GENERAL = ("sm_80", ALIGNED, "cp.async"), ("sm_90a", ANY, "registers")
WAYS = [SM_80, GENERAL]


def run(
    way: tuple[str, int, str],
    text: str,
    arguments: dict[str, Any],
    wanted: dict[str, np.ndarray],
    *,
    fills: tuple[str, ...] | None = None,
) -> None:
    """The kernel `k` gives what is wanted, with rings that are filled so (None: the way's)."""
    target, vector_bytes, fill = way
    text = text if "#[kernel]" in text else text.replace("pub fn", "#[kernel] pub fn")
    with program(text, target=target) as threads:
        point, _ = threads.lowered("k", vector_bytes)
        found = tuple(channel.fill for channel in point.schedule.channels)
        assert found == ((fill,) if fills is None else fills), point.schedule.choices
        given = {n: x.copy() if isinstance(x, np.ndarray) else x for n, x in arguments.items()}
        threads.run("k", given, vector_bytes)
        for name, value in wanted.items():
            np.testing.assert_array_equal(wide(given[name]), value, name)


def product(element: str, block: tuple[int, int, int], hints: str = "", *, turned: str = "") -> str:
    m, n, k = block
    a = f"a.t().load::<{m}, {k}>" if "a" in turned else f"a.load::<{m}, {k}>"
    b = f"b.t().load::<{k}, {n}>" if "b" in turned else f"b.load::<{k}, {n}>"
    x, y = ("K, M" if "a" in turned else "M, K"), ("N, K" if "b" in turned else "K, N")
    total = "i32" if element in ("i8", "u8") else "f32"
    return f"""
    {hints}
    #[kernel]
    pub fn k<M: Dim, N: Dim, K: Dim>(
        c: Part<&mut Tensor<{total}, M, N>, {m}, {n}>,
        a: &Tensor<{element}, {x}>, b: &Tensor<{element}, {y}>,
    ) {{
        let mut sum = Tile::<{total}, {m}, {n}>::zeros();
        for k in 0..K.div_ceil({k}) {{
            sum = dot({a}([c.id(0), k]), {b}([k, c.id(1)]), sum);
        }}
        c.store(sum);
    }}"""


def multiply(
    way: tuple[str, int, str],
    extents: tuple[int, int, int],
    block: tuple[int, int, int] = (64, 64, 32),
    *,
    element: str = "bf16",
    hints: str = "#[hint(stages = 3)]",
    turned: str = "",
) -> None:
    m, n, k = extents
    a, b = small(m, k, element=element), small(k, n, element=element)
    total = "i32" if element in ("i8", "u8") else "f32"
    run(
        way,
        product(element, block, hints, turned=turned),
        {
            "c": small(m, n, element=total),
            "a": np.ascontiguousarray(a.T) if "a" in turned else a,
            "b": np.ascontiguousarray(b.T) if "b" in turned else b,
        },
        {"c": wide(a) @ wide(b)},
    )


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
@pytest.mark.parametrize("turns", range(6))
def test_any_number_of_turns(way: tuple[str, int, str], turns: int) -> None:
    multiply(way, (64, 64, 32 * turns))


@pytest.mark.parametrize("stages", [2, 4, 5])
def test_any_number_of_slots(stages: int) -> None:
    for turns in (1, stages - 1, stages, 2 * stages + 1):
        multiply(SM_80, (64, 64, 32 * turns), hints=f"#[hint(stages = {stages})]")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
@pytest.mark.parametrize("extents", [(70, 72, 104), (7, 8, 40), (64, 136, 8)], ids=str)
def test_ends_that_cut_tiles(way: tuple[str, int, str], extents: tuple[int, int, int]) -> None:
    multiply(way, extents)


@pytest.mark.parametrize("extents", [(65, 67, 99), (1, 1, 1), (64, 129, 33)], ids=str)
def test_ends_and_rows_at_any_address(extents: tuple[int, int, int]) -> None:
    multiply(GENERAL, extents)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
@pytest.mark.parametrize("turned", ["a", "b", "ab"])
def test_factors_lie_either_way(way: tuple[str, int, str], turned: str) -> None:
    multiply(way, (64, 72, 72), turned=turned)


@pytest.mark.parametrize("element", ["f16", "i8", "u8"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
def test_any_element(way: tuple[str, int, str], element: str) -> None:
    multiply(way, (48, 64, 80), (32, 32, 32), element=element)


def test_elements_of_four_bytes_are_copied_from_any_address() -> None:
    way = ("sm_80", ANY, "cp.async")
    multiply(way, (33, 35, 37), (32, 32, 16), element="f32")
    multiply(("sm_90a", ALIGNED, "cp.async"), (32, 36, 44), (32, 32, 16), element="f32")


@pytest.mark.parametrize("block", [(96, 48, 32), (32, 192, 64), (16, 32, 48)], ids=str)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
def test_extents_that_are_no_powers_of_two(
    way: tuple[str, int, str], block: tuple[int, int, int]
) -> None:
    m, n, k = block
    multiply(way, (m, n + 8, 3 * k + 8), block)


# ---- other loops ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
def test_two_products_share_a_factor(way: tuple[str, int, str]) -> None:
    x, g, u = small(40, 104), small(104, 40), small(104, 40)
    run(
        way,
        """#[hint(stages = 3)]
        pub fn k<M: Dim, N: Dim, K: Dim>(
            y: Part<&mut Tensor<f32, M, N>, 32, 32>, x: &Tensor<bf16, M, K>,
            g: &Tensor<bf16, K, N>, u: &Tensor<bf16, K, N>,
        ) {
            let mut gate = Tile::<f32, 32, 32>::zeros();
            let mut up = Tile::<f32, 32, 32>::zeros();
            for k in 0..K.div_ceil(32) {
                let t = x.load::<32, 32>([y.id(0), k]);
                gate = dot(t, g.load::<32, 32>([k, y.id(1)]), gate);
                up = dot(t, u.load::<32, 32>([k, y.id(1)]), up);
            }
            y.store(gate * up);
        }""",
        {"y": small(40, 40, element="f32"), "x": x, "g": g, "u": u},
        {"y": (wide(x) @ wide(g)) * (wide(x) @ wide(u))},
    )


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
def test_a_tile_that_is_more_than_a_factor(way: tuple[str, int, str]) -> None:
    """It is multiplied as it is and turned round, and added up."""
    x = small(32, 32 * 3)
    blocks = [wide(x[:, i : i + 32]) for i in range(0, 96, 32)]
    run(
        way,
        """pub fn k<K: Dim>(
            y: Part<&mut Tensor<f32, 32, 32>, 32, 32>, z: Part<&mut Tensor<f32, 32, 32>, 32, 32>,
            x: &Tensor<bf16, 32, K>,
        ) {
            let mut sum = Tile::<f32, 32, 32>::zeros();
            let mut all = Tile::<f32, 32, 32>::zeros();
            for k in 0..K.div_ceil(32) {
                let t = x.load::<32, 32>([0, k]);
                sum = dot(t, t.t(), sum);
                all = all + t.to::<f32>();
            }
            y.store(sum);
            z.store(all);
        }""",
        {"y": small(32, 32, element="f32"), "z": small(32, 32, element="f32"), "x": x},
        {"y": sum(b @ b.T for b in blocks), "z": sum(blocks)},
    )


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
def test_a_loop_in_a_loop(way: tuple[str, int, str]) -> None:
    """Each time from the first slot on, when all have read what was in it; in the outer loop, one
    factor for all turns of the inner one."""
    a, b = small(96, 72), small(96, 72)
    run(
        way,
        """#[hint(stages = 3)]
        pub fn k<M: Dim, K: Dim>(
            y: Part<&mut Tensor<f32, 32, 32>, 32, 32>, a: &Tensor<bf16, M, K>,
            b: &Tensor<bf16, M, K>, c: &Tensor<f32, 32, 32>,
        ) {
            let mut all = c.load::<32, 32>([0, 0]);
            for i in 0..M.div_ceil(32) {
                let mut sum = Tile::<f32, 32, 32>::zeros();
                let first = a.load::<32, 32>([i, 0]);
                for k in i..K.div_ceil(32) {
                    sum = dot(first, b.t().load::<32, 32>([k, i]), sum);
                }
                all = all.maximum(sum);
            }
            y.store(all);
        }""",
        {
            "y": small(32, 32, element="f32"), "a": a, "b": b,
            "c": np.full((32, 32), -1e4, np.float32),
        },
        {"y": _nested(a, b)},
        fills=(way[2], way[2]),
    )  # fmt: skip


def _nested(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found = np.full((32, 32), -1e4)
    for i in range(3):
        total = np.zeros((32, 32))
        for k in range(i, 3):
            block = np.zeros((32, 32))
            part = wide(b[32 * i : 32 * i + 32, 32 * k : 32 * k + 32])
            block[:, : part.shape[1]] = part
            total += wide(a[32 * i : 32 * i + 32, :32]) @ block.T
        found = np.maximum(found, total)
    return found


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
def test_loops_one_after_the_other(way: tuple[str, int, str]) -> None:
    a, b = small(32, 104), small(104, 64)
    run(
        way,
        """#[hint(stages = 4)]
        pub fn k<K: Dim>(
            y: Part<&mut Tensor<f32, 32, 64>, 32, 64>, a: &Tensor<bf16, 32, K>,
            b: &Tensor<bf16, K, 64>,
        ) {
            let mut sum = Tile::<f32, 32, 64>::zeros();
            for k in 0..K / 32 {
                sum = dot(a.load::<32, 32>([0, k]), b.load::<32, 64>([k, 0]), sum);
            }
            for k in (K / 32) * 2..K.div_ceil(16) {
                sum = dot(a.load::<32, 16>([0, k]), b.load::<16, 64>([k, 0]), sum);
            }
            y.store(sum);
        }""",
        {"y": small(32, 64, element="f32"), "a": a, "b": b},
        {"y": wide(a) @ wide(b)},
        fills=(way[2], way[2]),
    )


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[2])
def test_batches_steps_and_factors_that_are_computed(way: tuple[str, int, str]) -> None:
    a, b = small(2, 32, 160), small(2, 160, 32)
    taken = [k for k in range(160) if k // 32 % 2 == 1]
    run(
        way,
        """pub fn k<K: Dim>(
            y: Part<&mut Tensor<f32, 2, 32, 32>, 1, 32, 32>, a: &Tensor<bf16, 2, 32, K>,
            b: &Tensor<bf16, 2, K, 32>,
        ) {
            let mut sum = Tile::<f32, 1, 32, 32>::zeros();
            for k in (1..K / 32).step_by(2) {
                let left = a.load::<1, 32, 32>([y.id(0), 0, k]) * 2.0;
                sum = dot(left, b.load::<1, 32, 32>([y.id(0), k, 0]), sum);
            }
            y.store(sum);
        }""",
        {"y": small(2, 32, 32, element="f32"), "a": a, "b": b},
        {"y": 2 * wide(a[:, :, taken]) @ wide(b[:, taken])},
    )
