from __future__ import annotations

import re

from passes import after

PASSES = "find_access_facts,place_layouts"
SIGNATURE = (
    "#[kernel]\npub fn k<M: Dim, N: Dim>"
    "(z: Part<&mut Tensor<f32, M, N>, 16, 64>, x: &Tensor<f32, M, N>, y: &Tensor<f32, N, M>)"
)


def placed(body: str) -> str:
    return after(PASSES, f"{SIGNATURE} {{ {body} }}")


def conversions(text: str) -> int:
    return text.count('"tile.layout"')


def test_every_tile_has_a_layout() -> None:
    text = placed("z.store(select(x.load_like(&z).gt(0.0), 1.0, 2.0) * 3.0);")
    tiles = re.findall(r"tensor<[^>]*>", text)
    assert tiles
    assert all("lane = " in tile for tile in tiles)


def test_element_wise_work_stays_where_it_was_loaded() -> None:
    assert conversions(placed("z.store((x.load_like(&z) + 1.0).exp() * z.load());")) == 0


def test_constants_and_broadcasts_are_made_where_they_are_wanted() -> None:
    row = "iota::<i32, 64>().to::<f32>().expand::<0>()"
    assert conversions(placed(f"z.store(x.load_like(&z) * {row} + 0.5);")) == 0


def test_a_transposed_load_is_converted_for_the_store() -> None:
    text = placed("z.store(y.load::<64, 16>([z.id(1), z.id(0)]).t());")
    assert conversions(text) == 1


def test_what_a_loop_needs_is_converted_before_it() -> None:
    text = placed(
        "let t = z.load().reshape::<64, 16>().t();"
        "let mut sum = x.load_like(&z);"
        "for i in 0..N { sum += t; }"
        "z.store(sum);"
    )
    _, inside = text.split("scf.for")
    assert conversions(inside.split("scf.yield")[0]) == 0
    assert conversions(text) <= 2
