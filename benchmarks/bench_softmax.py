"""Softmax over rows that fit a tile, against torch."""

from __future__ import annotations

import torch

from benchmarks.harness import Buffers, Case, run
from benchmarks.kernels import kernel, versions

# (rows, columns): short and long rows, and a length that is no power of two.
SHAPES = ((65536, 256), (32768, 1024), (32768, 1000), (16384, 4096))
# Outputs are at most 1: a few units in the last place from exp and the sum in f32, one in bf16.
TOLERANCE = {torch.float32: 2.0**-20, torch.bfloat16: 2.0**-8}


def cases() -> list[Case]:
    softmax = kernel("softmax")
    return [_case(softmax, *shape, dtype) for dtype in TOLERANCE for shape in SHAPES]


def _case(softmax, rows: int, columns: int, dtype: torch.dtype) -> Case:
    def make() -> Buffers:
        x = torch.randn(rows, columns, device="cuda", dtype=dtype)
        return torch.empty_like(x), x

    return Case(
        name=f"softmax {str(dtype).removeprefix('torch.')}, {rows}×{columns}",
        make=make,
        contenders={"tilec": softmax, "torch": lambda y, x: torch.softmax(x, dim=1, out=y)},
        reference=lambda x: torch.softmax(x.double(), dim=1),
        tolerance=TOLERANCE[dtype],
        traffic_bytes=2 * rows * columns * dtype.itemsize,
    )


if __name__ == "__main__":
    run("softmax", cases(), versions("softmax"))
