"""The random kernels are what they are for: they type-check, differ, and race half of the time."""

from __future__ import annotations

import pytest

from tests.proofs.adversary import trials
from tests.proofs.random_kernels import random_kernel

SEEDS = range(1000, 1030)


@pytest.fixture(scope="module")
def counts():
    return trials(SEEDS, verifier=None).counts


def test_nearly_all_of_them_type_check(counts) -> None:
    assert counts["not typed"] <= 0.05 * len(SEEDS)


def test_some_race_and_some_do_not(counts) -> None:
    assert 0.25 * len(SEEDS) < counts["with races"] < 0.75 * len(SEEDS)


def test_accesses_are_inside_outside_and_between(counts) -> None:
    always, never = counts["accesses always inside"], counts["accesses never inside"]
    assert always > 0.1 * counts["accesses"]
    assert never > 0.05 * counts["accesses"]
    assert always + never < 0.8 * counts["accesses"]


def test_they_are_launched_often_enough(counts) -> None:
    assert counts["launches"] > 8 * len(SEEDS)


def test_a_seed_is_a_kernel() -> None:
    assert random_kernel(7) == random_kernel(7)
    assert random_kernel(7).text != random_kernel(8).text
    few = [launch for launch, _ in zip(random_kernel(7).launches(), range(5), strict=False)]
    assert few == [launch for launch, _ in zip(random_kernel(7).launches(), range(5), strict=False)]


@pytest.mark.parametrize(
    "what",
    [
        "Part<&mut",
        "grid = [",
        "requires!(",
        ".step_by(",
        ".rev()",
        "..=",
        "while ",
        "return;",
        ".t()",
        ".permute::<",
        ".sub::<",
        "load_like(",
        ".store_at::<",
        ".load::<",
        "as i32",
        "as u8",
        "div_ceil(",
        ".clamp(",
        " / N",
        " % N",
        "* 1073741824",
        "else {",
        "fn pick(",
        ".at([",
    ],
)
def test_the_whole_language_of_indices_is_in_them(what: str) -> None:
    assert any(what in random_kernel(seed).text for seed in range(400))
