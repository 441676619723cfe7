from __future__ import annotations

import pytest
from passes import after

PASSES = "find_access_facts,place_layouts,insert_barriers"
SIGNATURE = (
    "#[kernel]\npub fn k<N: Dim>"
    "(z: Part<&mut Tensor<f32, N>, 256>, y: Part<&mut Tensor<f32, N>, 256>, n: usize)"
)


def barriers(body: str) -> int:
    text = after(PASSES, f"{SIGNATURE} {{ {body} }}")
    return text.count('"tile.barrier"')


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("z.store(1.0); z.store(z.load() + 1.0);", id="the same tile"),
        pytest.param("z.store(1.0); y.store(2.0);", id="two tensors"),
        pytest.param("z.load(); z.sub::<64>([0]).load();", id="reads only"),
    ],
)
def test_threads_that_touch_their_own_elements_do_not_wait(body: str) -> None:
    assert barriers(body) == 0


def test_a_piece_is_read_after_all_threads_have_written_the_whole() -> None:
    assert barriers("z.store(1.0); let s = z.sub::<64>([0]).load(); y.store(s.sum_all());") == 1


def test_one_barrier_orders_all_that_came_before() -> None:
    body = (
        "z.store(1.0);"
        "let a = z.sub::<64>([0]).load();"
        "let b = z.sub::<64>([1]).load();"
        "y.store((a + b).sum_all());"
    )
    assert barriers(body) == 1


def test_a_loop_orders_its_turns() -> None:
    body = "for i in 0..n { let s = z.sub::<64>([i]).load(); z.store(s.sum_all()); }"
    assert barriers(body) == 2
