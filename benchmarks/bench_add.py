"""Element-wise addition against torch: nothing but memory traffic."""

from __future__ import annotations

import torch

from benchmarks.harness import Buffers, Case, run
from benchmarks.kernels import kernel, versions

SIZES = (2**20, 2**24, 2**26, 2**28)
# One rounding of the exact sum: half a unit in the last place of 24 or 8 bits.
TOLERANCE = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8}


def cases() -> list[Case]:
    add = kernel("add")
    return [_case(add, size, dtype) for dtype in TOLERANCE for size in SIZES]


def _case(add, size: int, dtype: torch.dtype) -> Case:
    def make() -> Buffers:
        x, y = (torch.randn(size, device="cuda", dtype=dtype) for _ in range(2))
        return torch.empty_like(x), x, y

    return Case(
        name=f"add {str(dtype).removeprefix('torch.')}, 2^{size.bit_length() - 1}",
        make=make,
        contenders={"tilec": add, "torch": lambda z, x, y: torch.add(x, y, out=z)},
        reference=lambda x, y: x.double() + y.double(),
        tolerance=TOLERANCE[dtype],
        traffic_bytes=3 * size * dtype.itemsize,
    )


if __name__ == "__main__":
    run("add", cases(), versions("add"))
