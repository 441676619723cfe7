"""Softmax of rows, from those of one warp to those that fit no tile."""

from __future__ import annotations

from suite import rivals

from tilec.bench import Benchmark, Case, Input, Output, fitting

# exp of differences and the sum in f32, which exp2 of a product makes a little worse; or one
# rounding to bf16. Absolute: what exp makes of the farthest from the largest.
_RELATIVE = {"f32": 2.0**-16, "bf16": 1.25 * 2.0**-8}
_ABSOLUTE = 2.0**-30
_COLUMNS = (256, 1024, 4096, 8192, 16384, 32768)
_LARGE = ((65536, 1024), (32768, 4096), (131072, 256))
_LONG = ((2048, 65536), (1024, 131072), (512, 262144))  # no tile holds such a row
_SMALL = {"f32": (512, 1024), "bf16": (1024, 1024)}  # 4 MiB read and written


def _case(element: str, rows: int, columns: int, kind: str = "") -> Case:
    return Case(
        name=f"{element} {kind}{rows}x{columns}",
        outputs=(Output((rows, columns), element, _ABSOLUTE, _RELATIVE[element]),),
        inputs=(Input((rows, columns), element),),
    )


def _cases(element: str) -> tuple[Case, ...]:
    shapes = (*((4096, columns) for columns in _COLUMNS), *_LARGE, *_LONG)
    return (*(_case(element, *s) for s in shapes), _case(element, *_SMALL[element], "small "))


BENCHMARKS = (
    Benchmark(
        name="softmax",
        ours=fitting("softmax", "softmax_long"),
        operation="torch_operations:softmax",
        rivals=rivals("softmax"),
        cases=(*_cases("f32"), *_cases("bf16")),
    ),
)
