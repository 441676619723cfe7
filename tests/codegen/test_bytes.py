"""Every byte as bf16, which holds each exactly."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowered import ANY, program


@pytest.mark.parametrize(("element", "kind"), [("i8", np.int8), ("u8", np.uint8)])
def test_bytes_are_bf16(element: str, kind: Any) -> None:
    text = f"""
    #[kernel]
    pub fn k<N: Dim>(z: Part<&mut Tensor<bf16, N>, 256>, x: &Tensor<{element}, N>) {{
        z.store(x.load::<256>([z.id(0)]).to::<bf16>());
    }}"""
    x = np.arange(256).astype(np.uint8).view(kind)
    z = np.full(256, np.nan, ml_dtypes.bfloat16)
    with program(text) as threads:
        threads.run("k", {"z": z, "x": x}, ANY)
    np.testing.assert_array_equal(z.astype(np.float64), x)
