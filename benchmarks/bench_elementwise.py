"""Element by element: nothing but memory traffic, and what must hide behind it."""

from __future__ import annotations

from suite import ROUNDING, named, rivals

from tilec.bench import Benchmark, Case, Input, Output, fitting

# Outputs of f32 arithmetic are off by a few units beside their rounding; PyTorch rounds bf16 to
# bf16 after each of up to three operations.
_STEPS = {"f32": 16, "bf16": 3}

HIDDEN = 8192, 14336  # tokens, and the inner width of a feed-forward network
SMALL_BYTES = 4 * 2**20  # of all tensors of a case together


def _output(element: str, *shape: int) -> Output:
    error = _STEPS[element] * ROUNDING[element]
    return Output(shape, element, absolute=error, relative=error)


def _vectors(element: str, length: int, inputs: int, name: str | None = None) -> Case:
    return Case(
        name=name or named(element, length),
        outputs=(_output(element, length),),
        inputs=tuple(Input((length,), element) for _ in range(inputs)),
    )


def _small(element: str, inputs: int) -> Case:
    size = {"f32": 4, "bf16": 2}[element]
    length = SMALL_BYTES // (inputs + 1) // size // 1024 * 1024
    return _vectors(element, length, inputs, f"{element} small {length}")


def _bias(element: str) -> Case:
    rows, columns = HIDDEN
    return Case(
        name=named(element, *HIDDEN),
        outputs=(_output(element, *HIDDEN),),
        inputs=(Input((rows, columns), element), Input((columns,), element)),
    )


_HIDDEN = HIDDEN[0] * HIDDEN[1]

BENCHMARKS = (
    Benchmark(
        name="add",
        ours=fitting("add"),
        operation="torch_operations:add",
        rivals=rivals("add"),
        cases=(
            *(_vectors(element, 2**28, 2) for element in ("f32", "bf16")),
            *(_small(element, 2) for element in ("f32", "bf16")),
        ),
    ),
    Benchmark(
        name="gelu",
        ours=fitting("gelu"),
        operation="torch_operations:gelu",
        rivals=rivals("gelu"),
        cases=(_vectors("bf16", _HIDDEN, 1, named("bf16", *HIDDEN)),),
    ),
    Benchmark(
        name="silu_mul",
        ours=fitting("silu_mul"),
        operation="torch_operations:silu_mul",
        rivals=rivals("silu_mul"),
        cases=(_vectors("bf16", _HIDDEN, 2, named("bf16", *HIDDEN)), _small("bf16", 2)),
    ),
    Benchmark(
        name="bias_gelu",
        ours=fitting("bias_gelu"),
        operation="torch_operations:bias_gelu",
        rivals=rivals("bias_gelu"),
        cases=(_bias("bf16"),),
    ),
)
