"""Products of matrices: bound by arithmetic."""

from __future__ import annotations

from suite import named, product_output, product_rivals

from tilec.bench import Benchmark, Case, Input, Operations, fitting

_LARGE = (
    (2048, 2048, 2048),
    (3072, 3072, 3072),
    (4096, 4096, 4096),
    (6144, 6144, 6144),
    (8192, 8192, 8192),
    (16384, 4096, 4096),
    (4096, 14336, 4096),
    (4096, 4096, 14336),
)
# Where tiles do not divide the work among the multiprocessors, or there are few of them.
_OTHER = (
    (1536, 1536, 1536),
    (2560, 2560, 2560),
    (3000, 3000, 3000),
    (3584, 3584, 3584),
    (5120, 5120, 5120),
    (2048, 5120, 2048),
    (512, 14336, 4096),
    (200, 5000, 3000),
    (512, 512, 512),
    (1024, 1024, 1024),
    (64, 4096, 4096),
    (16, 4096, 4096),
    (16, 14336, 4096),
)
# Rows that no hardware copies: odd, or no multiple of 16 bytes.
_ODD = ((4097, 4095, 4104), (4096, 4096, 4095))


def _case(element: str, extents: tuple[int, int, int], *, transposed: bool) -> Case:
    m, n, k = extents
    right = (n, k) if transposed else (k, n)
    return Case(
        name=named(element, m, n, k),
        outputs=(product_output(element, m, n, k),),
        inputs=(Input((m, k), element), Input(right, element)),
        operations=Operations(2 * m * n * k, "16-bit mma"),
    )


def _benchmark(name: str, *, transposed: bool) -> Benchmark:
    return Benchmark(
        name=name,
        ours=fitting(name),
        operation=f"torch_operations:{name}",
        rivals=product_rivals(name),
        cases=(
            *(_case("bf16", n, transposed=transposed) for n in (*_LARGE, *_OTHER, *_ODD)),
            *(_case("f16", n, transposed=transposed) for n in _LARGE),
        ),
    )


BENCHMARKS = (_benchmark("matmul", transposed=False), _benchmark("matmul_nt", transposed=True))
