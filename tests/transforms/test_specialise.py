"""What each role does once a kernel has roles, in order, of the operations that only roles have."""

from __future__ import annotations

import pytest
from passes import after

MATMUL = """
#[kernel]
pub fn f<M: Dim, N: Dim, K: Dim>(
    c: Part<&mut Tensor<f32, M, N>, 128, 64>, a: &Tensor<bf16, M, K>, b: &Tensor<bf16, K, N>,
) {
    let mut sum = Tile::<f32, 128, 64>::zeros();
    for k in 0..K.div_ceil(64) {
        let right = b.load::<64, 64>([k, c.id(1)]);
        sum = dot(a.load::<128, 64>([c.id(0), k]), right, sum);
    }
    c.store(sum);
}
"""


def told(text: str) -> list[str]:
    """The operations of roles and what is around them, by their own names, in order."""
    shown = ("warp.", "scf.for", "scf.if", "tile.store", "tile.load", "linalg.matmul")
    found = []
    for line in text.splitlines():
        word = next((word for word in line.replace('"', " ").split() if word.startswith(shown)), "")
        if word and "func" not in line:
            found.append(word.partition("(")[0])
    return found


def test_loads_go_to_the_loader_and_products_go_on_into_the_next_turn() -> None:
    text = after("find_access_facts,specialise", MATMUL)
    assert told(text) == [
        "warp.channel", "warp.roles",
        "scf.for", "warp.acquire", "warp.fill", "warp.fill", "warp.publish",
        "warp.no_slot", "scf.if", "scf.for",
        "warp.get", "warp.tile", "warp.tile", "warp.dot", "warp.drain", "warp.release",
        "warp.wait", "warp.release", "tile.store",
    ]  # fmt: skip


def test_the_tiles_of_a_slot_are_in_the_order_of_the_loads() -> None:
    text = after("find_access_facts,specialise", MATMUL)
    assert 'params = ["b", "a"], tiles = [memref<64x64xbf16, 3>, memref<128x64xbf16, 3>]' in text


def test_a_slot_from_before_a_loop_is_released_after_it() -> None:
    kept = MATMUL.replace("sum = dot(a.load::<128, 64>([c.id(0), k])", "sum = dot(left")
    first = "let left = a.load::<128, 64>([c.id(0), 0]);\n    for k"
    names = told(after("find_access_facts,specialise", kept.replace("for k", first)))
    assert names[-4:] == ["warp.wait", "warp.release", "warp.release", "tile.store"]
    assert names.count("warp.channel") == names.count("warp.acquire") == 2


@pytest.mark.parametrize(
    "program",
    [
        # Sums of 16 bits, factors of 32.
        MATMUL.replace("<f32", "<f16").replace("<bf16", "<f16"),
        MATMUL.replace("bf16", "f32"),
    ],
)
def test_what_no_schedule_has_stays_as_it_is(program: str) -> None:
    names = told(after("find_access_facts,specialise", program))
    assert names == ["scf.for", "tile.load", "tile.load", "linalg.matmul", "tile.store"]


def test_what_is_claimed_in_a_loop_is_no_work_of_the_loader() -> None:
    claimed = MATMUL.replace("let right", "assert!(k < 1000);\n        let right")
    assert after("find_access_facts,specialise", claimed).count('"tile.assert"') == 1
