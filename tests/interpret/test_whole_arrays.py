"""Combiners with branches, which the CPU execution runs on whole arrays where it can."""

from __future__ import annotations

import numpy as np
import pytest

from tests.on_cpu import compiled_text
from tilec.interpret.contract import BrokenContract
from tilec.ir.walk import operations
from tilec.ops.whole_arrays import works_on_arrays

KERNEL = """#[kernel(grid = [1])]
pub fn k(y: &mut Tensor<i32, 4, 1>, z: &mut Tensor<i32, 4, 16>, x: &Tensor<i32, 4, 16>) {{
    let t = x.load::<4, 16>([0, 0]);
    y.store::<4, 1>([0, 0], t.reduce::<1>(0, {0}));
    z.store::<4, 16>([0, 0], t.scan::<1>(0, {0}));
}}
"""
LARGEST = "if a > b { a } else { b }"
# Each is associative and commutative, and has 0 for a neutral element on what is tried.
LARGER = f"|a, b| {LARGEST}"
# What is divided by is zero where the other side is taken.
LARGER_BY_DIVISION = "|a, b| if b != 0 && a / b >= 1 { a } else { if b == 0 { a } else { b } }"
IN_LOOP = f"|a, b| {{ let mut r = 0; for i in 0..a.max(b) {{ r = {LARGEST}; }} r }}"
CLAIMING = f"|a, b| if b < 0 {{ assert!(false); a }} else {{ {LARGEST} }}"


def executed(closure: str, x: np.ndarray) -> tuple[bool, np.ndarray, np.ndarray]:
    y, z = np.zeros((4, 1), np.int32), np.zeros((4, 16), np.int32)
    with compiled_text("case.tile", KERNEL.format(closure)) as found:
        [function] = found.kernels.values()
        blocks = [
            op.regions[0].blocks[0]
            for op in operations(function)
            if op.operation.name in ("linalg.reduce", "tile.scan")
        ]
        [on_arrays] = {works_on_arrays(block) for block in blocks}
        found.run("k", {"x": x, "y": y, "z": z})
    return on_arrays, y, z


@pytest.mark.parametrize(
    ("closure", "on_arrays"),
    [(LARGER, True), (LARGER_BY_DIVISION, True), (IN_LOOP, False), (CLAIMING, False)],
)
def test_each_element_takes_its_own_branch(closure: str, on_arrays: bool) -> None:
    x = np.random.default_rng(3).integers(0, 50, (4, 16)).astype(np.int32)
    found, largest, so_far = executed(closure, x)
    assert found is on_arrays
    np.testing.assert_array_equal(largest, x.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(so_far, np.maximum.accumulate(x, axis=1))


def test_what_is_claimed_in_a_branch_is_claimed_where_it_is_taken() -> None:
    with pytest.raises(BrokenContract):
        executed(CLAIMING, np.full((4, 16), -1, np.int32))
