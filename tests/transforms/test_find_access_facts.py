from __future__ import annotations

import re

from passes import after

COPY = """
#[kernel]
pub fn k<N: Dim>(z: Part<&mut Tensor<f32, N>, 128>, x: &Tensor<f32, N>, i: usize) {{
    {first}
    z.store({loaded});
}}
"""
INSIDE, MAYBE = 1, 0


def bounds(loaded: str, first: str = "") -> list[tuple[int, ...]]:
    """What is known of the load and of the store: inside, not negative, two divisors."""
    text = after("find_access_facts", COPY.format(loaded=loaded, first=first))
    found = re.findall(r"bounds = \[\[(\d), (\d), (\d+), (\d+)\]\]", text)
    return [tuple(map(int, numbers)) for numbers in found]


def test_the_own_part_may_be_clipped() -> None:
    assert bounds("x.load_like(&z)") == [(MAYBE, 1, 128, 1), (MAYBE, 1, 128, 1)]


def test_a_precondition_puts_the_own_part_inside() -> None:
    load, store = bounds("x.load_like(&z)", "requires!(N % 128 == 0);")
    assert load[0] == store[0] == INSIDE
    assert load[3] == 128


def test_a_precondition_on_less_gives_a_divisor_only() -> None:
    load, store = bounds("x.load_like(&z)", "requires!(N % 64 == 0);")
    assert load == (MAYBE, 1, 128, 64)
    assert store[0] == MAYBE


def test_the_id_of_the_part_is_the_place_of_its_tile() -> None:
    load, _ = bounds("x.load::<128>([z.id(0)])", "requires!(N % 128 == 0);")
    assert load[0] == INSIDE


def test_nothing_is_known_of_an_argument() -> None:
    load, _ = bounds("x.load_at::<128>([i])", "requires!(N % 128 == 0);")
    assert load[0] == MAYBE
    assert load[2] == 1


def test_the_next_tile_is_not_the_own() -> None:
    load, _ = bounds("x.load::<128>([z.id(0) + 1])", "requires!(N % 128 == 0);")
    assert load[0] == MAYBE
    assert load[2] == 128
