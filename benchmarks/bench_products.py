"""Products of matrices with more around them, of fewer bits, and of few rows."""

from __future__ import annotations

from suite import named, product_output

from tilec.bench import (
    Benchmark,
    Call,
    Case,
    Input,
    Kernels,
    Operations,
    Output,
    Rival,
    Scratch,
    fitting,
)

_LINEAR = ((4096, 4096, 4096), (8192, 4096, 1024), (4096, 14336, 4096))


def _torch(operation: str, *, is_part: bool = False) -> Rival:
    """PyTorch; `is_part` where it rounds a product before it goes on, or has other weights."""
    return Rival("torch", f"torch_operations:{operation}", "function", is_part=is_part)


def _product_alone(operation: str) -> Rival:
    return Rival("product", f"torch_operations:{operation}", "function", is_part=True)


def _operations(m: int, n: int, k: int) -> Operations:
    return Operations(2 * m * n * k, "16-bit mma")


# ---- of f32 --------------------------------------------------------------------------------------


def _tf32(m: int, n: int, k: int, *, transposed: bool) -> Case:
    # Each factor is rounded by up to 2^-11: a sum by that of k such errors, eight times their
    # magnitude at most.
    rounding = 2.0**-8 * k**0.5
    return Case(
        name=named("f32", m, n, k),
        outputs=(product_output("f32", m, n, k, more=rounding),),
        inputs=(Input((m, k), "f32"), Input((n, k) if transposed else (k, n), "f32")),
        operations=Operations(2 * m * n * k, "tf32 mma"),
    )


# ---- with more around them -----------------------------------------------------------------------


def _bias_gelu(m: int, n: int, k: int) -> Case:
    inputs = Input((m, k), "bf16"), Input((n, k), "bf16"), Input((n,), "bf16")
    return Case(
        name=named("bf16", m, n, k),
        outputs=(product_output("bf16", m, n, k),),
        inputs=inputs,
        operations=_operations(m, n, k),
    )


def _residual(m: int, n: int, k: int) -> Case:
    return Case(
        name=named("bf16", m, n, k),
        # A scale of a row or column is hardly ever above 5.
        outputs=(product_output("bf16", m, n, k, scale=25.0),),
        inputs=(
            *(Input((m, k), "bf16"), Input((n, k), "bf16"), Input((m, n), "bf16")),
            *(Input((m,), "f32"), Input((n,), "f32")),
        ),
        operations=_operations(m, n, k),
    )


def _gated(m: int, n: int, k: int) -> Case:
    inputs = Input((m, k), "bf16"), Input((n, k), "bf16"), Input((n, k), "bf16")
    # The error of one product goes with the other one, whose magnitude is √k: 5 of that at most.
    # The rival rounds each of them before.
    rounding = 2.0**-7 * 25 * k
    return Case(
        name=named("bf16", m, n, k),
        outputs=(product_output("bf16", m, n, k, more=rounding),),
        inputs=inputs,
        operations=_operations(m, 2 * n, k),
    )


def _batched(count: int, m: int, n: int, k: int) -> Case:
    return Case(
        name=named("bf16", count, m, n, k),
        outputs=(product_output("bf16", m, n, k, count=count),),
        inputs=(Input((count, m, k), "bf16"), Input((count, k, n), "bf16")),
        operations=_operations(count * m, n, k),
    )


_ROWS_OF_BLOCK = 128  # of the instances


def _by_blocks(kernels: Kernels) -> Call:
    blocks, product = kernels.fitting("group_blocks"), kernels.fitting("matmul_grouped")

    def launch(
        y: object, expert: object, first: object, x: object, w: object, ends: object
    ) -> None:
        blocks(expert, first, ends)
        product(y, x, w, ends, expert, first)

    return launch


def _grouped(experts: int, m: int, n: int, k: int) -> Case:
    ends = tuple(m * (e + 1) // experts for e in range(experts))
    blocks = -(-m // _ROWS_OF_BLOCK) + experts
    return Case(
        name=named("bf16", experts, m, n, k),
        outputs=(product_output("bf16", m, n, k),),
        inputs=(
            *(Input((m, k), "bf16"), Input((experts, n, k), "bf16")),
            Input((experts,), "i32", values=ends),
        ),
        scratch=(Scratch((blocks,), "i32"), Scratch((blocks,), "i32")),
        operations=_operations(m, n, k),
    )


# ---- of fewer bits -------------------------------------------------------------------------------


def _f8(m: int, n: int, k: int) -> Case:
    # PyTorch sums in fewer bits: 14 of a sum of magnitude √k, once for 32 products.
    coarse = k / 32 * k**0.5 * 2.0**-12
    return Case(
        name=named("f8e4m3", m, n, k),
        outputs=(product_output("bf16", m, n, k, more=coarse),),
        inputs=(Input((m, k), "f8e4m3"), Input((n, k), "f8e4m3")),
        scalars=(1.0,),
        operations=Operations(2 * m * n * k, "8-bit mma"),
    )


def _w8a16(m: int, n: int, k: int) -> Case:
    inputs = Input((m, k), "bf16"), Input((n, k), "i8", (-128, 128)), Input((n,), "f32", (0.5, 1))
    return Case(
        name=named("bf16", m, n, k),
        outputs=(product_output("bf16", m, n, k, scale=128.0),),
        inputs=inputs,
        operations=_operations(m, n, k),
    )


def _w4a16(m: int, n: int, k: int, *, is_rounded: bool = False) -> Case:
    # Weights of up to 8, each of which may be rounded to bf16, by up to 8 · 2^-9: evenly, its
    # deviation is 1/√3 of that. Among millions of sums of k, six deviations are seen.
    rounding = 6 / 3**0.5 * 8 * 2.0**-9 * k**0.5 if is_rounded else 0.0
    return Case(
        name=named("bf16", m, n, k),
        outputs=(product_output("bf16", m, n, k, scale=8.0, more=rounding),),
        inputs=(
            Input((m, k), "bf16"),
            Input((n, k // 2), "u8", (0, 256)),
            Input((n, k // 128), "bf16", (0.5, 1)),
        ),
        operations=_operations(m, n, k),
    )


# ---- of few rows: bound by memory ----------------------------------------------------------------


def _skinny(m: int, n: int, k: int) -> Case:
    return Case(
        name=named("bf16", m, n, k),
        outputs=(product_output("bf16", m, n, k),),
        inputs=(Input((m, k), "bf16"), Input((n, k), "bf16")),
    )


def _gemv(n: int, k: int) -> Case:
    output = Output((n,), "bf16", absolute=k * 2.0**-21, relative=2.0**-8)
    inputs = Input((n, k), "bf16"), Input((k,), "bf16")
    return Case(name=named("bf16", n, k), outputs=(output,), inputs=inputs)


_SHARES = 4


def _split(m: int, n: int, k: int) -> Case:
    return Case(
        name=named("bf16", m, n, k),
        outputs=(product_output("bf16", m, n, k),),
        inputs=(Input((m, k), "bf16"), Input((n, k), "bf16")),
        scratch=(Scratch((_SHARES, m, n), "f32"),),
    )


def _in_shares(kernels: Kernels) -> Call:
    product, total = kernels.fitting("matmul_split"), kernels.fitting("sum_parts")

    def launch(c: object, parts: object, a: object, b: object) -> None:
        product(parts, a, b)
        total(c, parts)

    return launch


_FEW_ROWS = tuple((m, n, k) for m in (1, 16) for n, k in ((4096, 4096), (14336, 4096)))
_VECTORS = ((6144, 2560), (2560, 4096), (19456, 2560), (2560, 9728), (151936, 2560))

_CUBES = tuple((side, side, side) for side in (2048, 4096, 8192))

BENCHMARKS = (
    *(
        Benchmark(
            name=name,
            ours=fitting(name),
            operation=f"torch_operations:{name}",
            rivals=(_torch(name),),
            cases=tuple(_tf32(*n, transposed=name.endswith("nt")) for n in _CUBES),
        )
        for name in ("matmul_tf32", "matmul_tf32_nt")
    ),
    Benchmark(
        name="matmul_bias_gelu",
        ours=fitting("matmul_bias_gelu"),
        operation="torch_operations:matmul_bias_gelu",
        rivals=(_torch("matmul_bias_gelu", is_part=True), _product_alone("product_of_three")),
        cases=tuple(_bias_gelu(*n) for n in _LINEAR),
    ),
    Benchmark(
        name="matmul_residual",
        ours=fitting("matmul_residual"),
        operation="torch_operations:matmul_residual",
        rivals=(_torch("matmul_residual", is_part=True), _product_alone("product_of_five")),
        cases=tuple(_residual(*n) for n in _LINEAR[:1]),
    ),
    Benchmark(
        name="gated_mlp",
        ours=fitting("gated_mlp"),
        operation="torch_operations:gated_mlp",
        rivals=(_torch("gated_mlp"),),
        cases=tuple(_gated(*n) for n in _LINEAR),
    ),
    Benchmark(
        name="matmul_batched",
        ours=fitting("matmul_batched"),
        operation="torch_operations:matmul",
        rivals=(_torch("matmul"),),
        cases=(_batched(32, 1024, 1024, 1024), _batched(8, 2048, 2048, 128)),
    ),
    Benchmark(
        name="matmul_grouped",
        ours=_by_blocks,
        operation="torch_operations:matmul_grouped",
        rivals=(_torch("matmul_grouped"),),
        cases=(_grouped(8, 4096, 4096, 4096), _grouped(64, 4096, 2048, 2048)),
    ),
    Benchmark(
        name="matmul_f8",
        ours=fitting("matmul_f8"),
        operation="torch_operations:matmul_f8",
        rivals=(
            _torch("matmul_f8"),
            Rival("exact", "torch_operations:matmul_f8_exact", "function"),
        ),
        cases=tuple(_f8(side, side, side) for side in (4096, 8192)),
    ),
    Benchmark(
        name="matmul_w8a16",
        ours=fitting("matmul_w8a16"),
        operation="torch_operations:matmul_w8a16",
        rivals=(_torch("w8_in_16_bits", is_part=True),),
        cases=(_w8a16(4096, 4096, 4096),),
    ),
    Benchmark(
        name="matmul_w4a16",
        ours=fitting("matmul_w4a16"),
        operation="torch_operations:matmul_w4a16",
        rivals=(_torch("w4_in_16_bits", is_part=True),),
        cases=tuple(_w4a16(*n, is_rounded=True) for n in ((4096, 4096, 4096), (16, 14336, 4096))),
    ),
    Benchmark(
        name="skinny_w4a16",
        ours=fitting("skinny_w4a16"),
        operation="torch_operations:matmul_w4a16",
        rivals=(_torch("w4_in_16_bits", is_part=True),),
        cases=tuple(_w4a16(*n) for n in _FEW_ROWS),
    ),
    Benchmark(
        name="matmul_skinny",
        ours=fitting("matmul_skinny"),
        operation="torch_operations:matmul_nt",
        rivals=(_torch("matmul_nt"),),
        cases=tuple(_skinny(*n) for n in _FEW_ROWS),
    ),
    Benchmark(
        name="gemv",
        ours=fitting("gemv"),
        operation="torch_operations:matmul",
        rivals=(
            _torch("matmul"),
            Rival("linear", "torch_operations:linear_of_one_row", "function"),
            Rival("triton", "triton_products:gemv", "kernel", needs=("triton",)),
        ),
        cases=tuple(_gemv(*n) for n in _VECTORS),
    ),
    Benchmark(
        name="matmul_split",
        ours=_in_shares,
        operation="torch_operations:matmul_nt",
        rivals=(_torch("matmul_nt"),),
        cases=(_split(64, 4096, 4096), _split(64, 2048, 14336)),
    ),
)
