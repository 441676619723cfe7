"""Products of matrices: bound by arithmetic."""

from __future__ import annotations

from suite import ROUNDING, named, rivals

from tilec.bench import Benchmark, Case, Input, Operations, Output, fitting

_SIDES = (2048, 4096, 8192)


def _case(m: int, n: int, k: int) -> Case:
    return Case(
        name=named("bf16", m, n, k),
        # k times a sum of magnitude √k is cut to 24 bits: k√k 2^-24 if all errors point one way, of
        # which 8 / √k has been seen at most. Then it is rounded once.
        outputs=(Output((m, n), "bf16", absolute=k * 2.0**-21, relative=ROUNDING["bf16"]),),
        inputs=(Input((m, k), "bf16"), Input((k, n), "bf16")),
        operations=Operations(2 * m * n * k, "16-bit mma"),
    )


BENCHMARKS = (
    Benchmark(
        name="matmul",
        ours=fitting("matmul"),
        operation="torch_operations:matmul",
        rivals=rivals("matmul", triton=False),
        cases=tuple(_case(side, side, side) for side in _SIDES),
    ),
)
