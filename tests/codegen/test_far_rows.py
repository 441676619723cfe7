"""Rows beyond 2^31 elements, by indices of 32 bits and of 64: addresses are counted in 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from lowered import ALIGNED, ANY, program

KERNEL = """#[kernel]
pub fn k<M: Dim, N: Dim>(
    z: Part<&mut Tensor<i8, 4, N>, 4, 32>, x: &Tensor<i8, M, N>, rows: &Tensor<INT, 4>, r: INT,
) {
    let picked = x.gather::<4, 32>([rows.load::<4>([0]), z.offset(1)]);
    z.store(picked + x.load::<1, 32>([r, z.id(1)]));
}"""


@pytest.mark.parametrize(
    ("element", "dtype"), [("i32", np.int32), ("u32", np.uint32), ("usize", np.int64)]
)
def test_an_index_of_any_width_reaches_every_row(element: str, dtype: type) -> None:
    x = np.arange(6 * 32, dtype=np.uint8).view(np.int8).reshape(6, 32)
    rows = np.array([5, 0, 3, 5], dtype)
    for vector_bytes in (ANY, ALIGNED):
        z = np.zeros((4, 32), np.int8)
        with program(KERNEL.replace("INT", element)) as compiled:
            given = {"z": z, "x": x, "rows": rows, "r": 4}
            compiled.run("k", given, vector_bytes, strides={"x": (2**31 + 16,)})
        np.testing.assert_array_equal(z, x[rows] + x[4])
