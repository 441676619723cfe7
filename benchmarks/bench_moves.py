"""Tensors moved: transposed, turned, looked up."""

from __future__ import annotations

from suite import ROUNDING, named, rivals

from tilec.bench import Benchmark, Case, Input, Output, fitting

_SIDE = 16384
_HEADS = 8, 32, 4096, 2, 64  # batch, heads, positions, halves, half of a head
_VOCABULARY, _WIDTH, _TOKENS = 151_936, 4096, 32_768


def _transpose(element: str) -> Case:
    shape = _SIDE, _SIDE
    return Case(
        name=named(element, *shape),
        outputs=(Output(shape, element),),
        inputs=(Input(shape, element),),
    )


def _rope() -> Case:
    batch, heads, positions, _, half = _HEADS
    angles = Input((positions, half), "f32", span=(-1, 1))
    error = 2 * ROUNDING["bf16"]
    return Case(
        name=named("bf16", batch, heads, positions, 2 * half),
        outputs=(Output(_HEADS, "bf16", absolute=error, relative=error),),
        inputs=(Input(_HEADS, "bf16"), angles, angles),
    )


def _embedding() -> Case:
    """Of the table only what is asked for must be read."""
    rows = _TOKENS * _WIDTH * 2
    return Case(
        name=named("bf16", _TOKENS, _WIDTH),
        outputs=(Output((_TOKENS, _WIDTH), "bf16"),),
        inputs=(
            Input((_VOCABULARY, _WIDTH), "bf16"),
            Input((_TOKENS,), "i64", span=(0, _VOCABULARY)),
        ),
        moved_bytes=2 * rows + _TOKENS * 8,
    )


BENCHMARKS = (
    Benchmark(
        name="transpose",
        ours=fitting("transpose"),
        operation="torch_operations:transpose",
        rivals=rivals("transpose"),
        cases=(_transpose("f32"), _transpose("bf16")),
    ),
    Benchmark(
        name="rope",
        ours=fitting("rope"),
        operation="torch_operations:rope",
        rivals=rivals("rope"),
        cases=(_rope(),),
    ),
    Benchmark(
        name="embedding",
        ours=fitting("embedding"),
        operation="torch_operations:embedding",
        rivals=rivals("embedding"),
        cases=(_embedding(),),
    ),
)
