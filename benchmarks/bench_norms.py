"""Normalisation of rows, and its gradients."""

from __future__ import annotations

from suite import ROUNDING, named, rivals

from tilec.bench import Benchmark, Call, Case, Input, Kernels, Output, Scratch, fitting

_SHAPES = (
    *((8192, columns) for columns in (1024, 2048, 4096, 8192, 16384)),
    *((65536, columns) for columns in (1024, 4096)),
)
_EPS = 1e-5
# One rounding of the result to bf16; where PyTorch takes several steps, one each.
_ERROR = ROUNDING["bf16"]
_BLOCK = 32  # rows of a program of `layernorm_backward`


def _norm(rows: int, columns: int, parameters: int, kind: str = "") -> Case:
    """One input, and parameters for each column."""
    weights = (Input((columns,), "bf16") for _ in range(parameters))
    return Case(
        name=f"bf16 {kind}{rows}x{columns}",
        outputs=(Output((rows, columns), "bf16", absolute=2 * _ERROR, relative=2 * _ERROR),),
        inputs=(Input((rows, columns), "bf16"), *weights),
        scalars=(_EPS,),
    )


def _added_norm(rows: int, columns: int) -> Case:
    shape = rows, columns
    return Case(
        name=named("bf16", *shape),
        outputs=(
            Output(shape, "bf16", absolute=3 * _ERROR, relative=3 * _ERROR),
            Output(shape, "bf16", relative=_ERROR),
        ),
        inputs=(Input(shape, "bf16"), Input(shape, "bf16"), Input((columns,), "bf16")),
        scalars=(_EPS,),
    )


def _backward(rows: int, columns: int) -> Case:
    shape, sums = (rows, columns), (1, columns)
    parts = Scratch((-(-rows // _BLOCK), columns), "f32")
    return Case(
        name=named("bf16", *shape),
        outputs=(
            Output(shape, "bf16", absolute=3 * _ERROR, relative=3 * _ERROR),
            # Sums of `rows` terms of magnitude 1, which cancel.
            Output(sums, "f32", absolute=rows**0.5 * _ERROR, relative=_ERROR),
            Output(sums, "f32", absolute=rows**0.5 * _ERROR, relative=_ERROR),
        ),
        scratch=(parts, parts),
        inputs=(
            Input(shape, "bf16"),
            Input(shape, "bf16"),
            Input((columns,), "bf16"),
            Input((rows,), "f32", span=(-0.1, 0.1)),
            Input((rows,), "f32", span=(0.9, 1.1)),
        ),
    )


def _layernorm_backward(kernels: Kernels) -> Call:
    """Sums over blocks of rows, then over the blocks."""
    of_blocks = kernels.fitting("layernorm_backward")
    weights, biases = (kernels.fitting("column_sum") for _ in range(2))

    def launch(dx, dweight, dbias, weight_parts, bias_parts, *inputs):
        of_blocks(dx, weight_parts, bias_parts, *inputs)
        weights(dweight, weight_parts)
        biases(dbias, bias_parts)

    return launch


BENCHMARKS = (
    Benchmark(
        name="layernorm",
        ours=fitting("layernorm", "layernorm_long"),
        operation="torch_operations:layernorm",
        rivals=rivals("layernorm"),
        cases=tuple(_norm(*shape, parameters=2) for shape in _SHAPES),
    ),
    Benchmark(
        name="rmsnorm",
        ours=fitting("rmsnorm", "rmsnorm_long"),
        operation="torch_operations:rmsnorm",
        rivals=rivals("rmsnorm"),
        cases=(
            *(_norm(*shape, parameters=1) for shape in _SHAPES),
            _norm(1024, 1024, parameters=1, kind="small "),
        ),
    ),
    Benchmark(
        name="add_rmsnorm",
        ours=fitting("add_rmsnorm", "add_rmsnorm_long"),
        operation="torch_operations:add_rmsnorm",
        rivals=rivals("add_rmsnorm"),
        cases=(_added_norm(8192, 14336),),
    ),
    Benchmark(
        name="layernorm_backward",
        ours=_layernorm_backward,
        operation="torch_operations:layernorm_backward",
        rivals=rivals("layernorm_backward"),
        cases=(_backward(8192, 1024), _backward(8192, 4096)),
    ),
)
