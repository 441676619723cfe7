"""What a loop does whose tiles are copied ahead, as the names of operations in program order."""

from __future__ import annotations

import re

import pytest
from passes import after

HEAD = """#[kernel]
pub fn k<M: Dim, N: Dim, K: Dim>(
    c: Part<&mut Tensor<f32, M, N>, 64, 64>,
    a: &Tensor<bf16, M, K>,
    b: &Tensor<bf16, K, N>,
    s: &Tensor<i32, M>,
) {
    let (i, j) = (c.id(0), c.id(1));
    let mut sum = Tile::<f32, 64, 64>::zeros();
"""
PRODUCT = "dot(a.load::<64, 32>([i, k]), b.load::<32, 64>([k, j]), sum)"
STEPS = "for k in 0..K.div_ceil(32)"
END = "c.store(sum); }"


def staged(body: str) -> str:
    return after("find_access_facts,stage_loads", f"{HEAD}{body} {END}")


def names(text: str) -> list[str]:
    """The operations of `stage`, loops, loads and products."""
    found = re.findall(r'"stage\.(\w+)"|scf\.(for|yield)|"tile\.(load)"|linalg\.(matmul) ', text)
    return [next(name for name in one if name) for one in found]


def test_what_the_first_turns_read_is_begun_before_the_loop() -> None:
    found = names(staged(f"{STEPS} {{ sum = {PRODUCT}; }}"))
    first = ["begin", "begin", "commit"]
    assert found == [
        "ring_of", *first * 3, "for", "arrived", "begin", "begin", "tile", "tile", "matmul",
        "commit", "yield",
    ]  # fmt: skip


def test_a_turn_waits_for_its_own_tiles_only() -> None:
    text = staged(f"{STEPS} {{ sum = {PRODUCT}; }}")
    [depth] = re.findall(r"depth = (\d+)", text)
    assert re.findall(r"pending = (\d+)", text) == [str(int(depth) - 2)]
    assert re.findall(r"ahead = (\d+)", text) == list("001122") + [str(int(depth) - 1)] * 2
    assert "stage.waits" in text


def test_what_a_load_depends_on_is_computed_again_for_a_later_turn() -> None:
    text = staged(
        f"{STEPS} {{ sum = dot(a.load::<64, 32>([i, k * 3 + 1]), b.load::<32, 64>([k, j]), sum); }}"
    )
    # What the load itself depended on is left to those who remove what is dead.
    assert text.count("arith.muli") == 4 + 1 and names(text).count("begin") == 8


def test_a_tile_that_is_turned_round_is_read_so() -> None:
    text = staged(
        f"{STEPS} {{ sum = dot(a.load::<64, 32>([i, k]), b.t().load::<64, 32>([j, k]).t(), sum); }}"
    )
    assert "axes = [1, 0], tile = 1" in text and "linalg.transpose" not in text


def test_a_load_that_something_else_uses_is_one_tile() -> None:
    text = staged(
        f"""{STEPS} {{
            let t = a.load::<64, 32>([i, k]);
            sum = dot(t, b.load::<32, 64>([k, j]), sum) + (t + t).dot(b.load::<32, 64>([k, j]));
        }}"""
    )
    assert names(text).count("tile") == 2 and "load" not in names(text)


@pytest.mark.parametrize(
    "body",
    [
        "if M > 3 { let k = 0; sum = " + PRODUCT + "; }",
        "let mut k = 0; while k < K { sum = " + PRODUCT + "; k += 1; }",
        STEPS + " { if k < 3 { sum = " + PRODUCT + "; } }",
        STEPS + " { sum = dot(a.load_or::<64, 32>([i, k], 1.0), "
        "b.load_or::<32, 64>([k, j], 1.0), sum); }",
        "let mut x = 0; " + STEPS + " { sum = dot(a.load::<64, 32>([i, x]),"
        " b.load::<32, 64>([x, j]), sum); x = x * 2 + k; }",
        STEPS + " { let x = s.load::<1>([k]).sum_all().to::<usize>();"
        " sum = dot(a.load::<64, 32>([i, x]), b.load::<32, 64>([x, j]), sum); }",
    ],
)
def test_what_nobody_knows_ahead_stays_where_it_is(body: str) -> None:
    assert "begin" not in names(staged(body))
