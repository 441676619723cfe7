"""What threads exchange through shared memory, one exchange after another and in loops around each
other: each buffer is written, read and written again on many ways, which barriers must order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lowered import ANY, program

SIDE = 16
# Numbers stay small: each step keeps ten bits.
KEPT = 1023

# Each exchange as the language has it, and by its definition.
EXCHANGES: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    ("a.permute::<1, 0>()", lambda a: a.T),
    ("a.cumsum::<0>()", lambda a: a.cumsum(0)),
    ("a.reshape::<256>().cumsum::<0>().reshape::<16, 16>()", lambda a: a.cumsum().reshape(16, 16)),
    ("a.flip::<0>()", lambda a: a[::-1]),
    ("a.sum::<0>()", lambda a: a.sum(0, keepdims=True)),
    ("a.sum_all()", lambda a: a.sum()),
    ("a.max::<1>()", lambda a: a.max(1, keepdims=True)),
    ("a.cumsum::<1>()", lambda a: a.cumsum(1)),
]


def step(number: int) -> str:
    return f"a = (a + {EXCHANGES[number % len(EXCHANGES)][0]} + {number}) & {KEPT};"


def stepped(a: np.ndarray, number: int) -> np.ndarray:
    return (a + EXCHANGES[number % len(EXCHANGES)][1](a) + number) & KEPT


def in_a_row() -> str:
    return "".join(map(step, range(2 * len(EXCHANGES))))


def row_of(a: np.ndarray, turns: int) -> np.ndarray:
    for number in range(2 * len(EXCHANGES)):
        a = stepped(a, number)
    return a


DEPTH = 4  # with an exchange before each inner loop and one behind it


def nested(head: str) -> str:
    body = ""
    for number in reversed(range(DEPTH)):
        body = f"{head.format(number)} {{ {step(number)} {body} {step(DEPTH + number)} }}"
    return body


def nest_of(a: np.ndarray, turns: int, level: int = 0) -> np.ndarray:
    for _ in range(turns):
        a = stepped(a, level)
        if level < DEPTH - 1:
            a = nest_of(a, turns, level + 1)
        a = stepped(a, DEPTH + level)
    return a


def _run(body: str, a: np.ndarray, turns: int) -> np.ndarray:
    text = f"""
    #[hint(warps = 2)]
    #[kernel]
    pub fn k<M: Dim, N: Dim>(
        z: Part<&mut Tensor<i32, M, N>, {SIDE}, {SIDE}>, x: &Tensor<i32, M, N>, n: i32,
    ) {{
        let mut a = x.load_like(&z);
        {body}
        z.store(a);
    }}"""
    with program(text) as threads:
        given = {"z": np.zeros_like(a), "x": a.copy(), "n": turns}
        threads.run("k", given, ANY)
        return given["z"]


@pytest.mark.parametrize(
    ("body", "meant", "turns"),
    [
        (in_a_row(), row_of, 1),
        (nested("for i{0} in 0..n"), nest_of, 2),
        (nested("if n > {0} - 100"), nest_of, 1),
    ],
    ids=["in a row", "loops", "branches"],
)
def test_exchanges_follow_each_other(
    body: str, meant: Callable[[np.ndarray, int], np.ndarray], turns: int
) -> None:
    a = np.random.default_rng(0).integers(0, KEPT, (SIDE, SIDE), dtype=np.int32)
    np.testing.assert_array_equal(_run(body, a, turns), meant(a.astype(np.int64), turns))
