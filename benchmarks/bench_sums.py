"""Sums of everything, of rows and of columns."""

from __future__ import annotations

from collections.abc import Callable

from suite import ROUNDING, named, rivals

from tilec.bench import Benchmark, Call, Case, Input, Kernels, Output, Scratch, fitting

_LENGTH = 2**28
_SHAPE = 16384, 16384
_ELEMENTS = ("f32", "bf16")
_PROGRAMS = 132 * 8  # of the first launch of `sum_all`
_SHARES = 8  # programs for each block of columns, in the first launch of `sum_columns`
# Positive terms, so that sums are large against their errors: additions in f32, some hundred behind
# one another, and the rounding of the result, which PyTorch gives in the type of the input.
_ERROR = {"f32": 256 * ROUNDING["f32"], "bf16": 1.5 * ROUNDING["bf16"]}


def _case(element: str, shape: tuple[int, ...], output: Output, *scratch: Scratch) -> Case:
    return Case(
        name=named(element, *shape),
        outputs=(output,),
        inputs=(Input(shape, element, span=(0, 1)),),
        scratch=scratch,
    )


def _in_two_launches(kernel: str) -> Callable[[Kernels], Call]:
    """Sums of shares, then the sums of those, by one kernel."""

    def ours(kernels: Kernels) -> Call:
        first, second = kernels.fitting(kernel), kernels.fitting(kernel)

        def launch(y, parts, x):
            first(parts, x)
            second(y, parts)

        return launch

    return ours


BENCHMARKS = (
    Benchmark(
        name="sum_all",
        ours=_in_two_launches("sum_all"),
        operation="torch_operations:sum_all",
        rivals=rivals("sum_all"),
        cases=tuple(
            _case(
                e, (_LENGTH,), Output((1,), "f32", relative=_ERROR[e]), Scratch((_PROGRAMS,), "f32")
            )
            for e in _ELEMENTS
        ),
    ),
    Benchmark(
        name="sum_rows",
        ours=fitting("row_sum"),
        operation="torch_operations:sum_rows",
        rivals=rivals("sum_rows"),
        cases=tuple(_case(e, _SHAPE, Output(_SHAPE[:1], e, relative=_ERROR[e])) for e in _ELEMENTS),
    ),
    Benchmark(
        name="sum_columns",
        ours=_in_two_launches("column_sum"),
        operation="torch_operations:sum_columns",
        rivals=rivals("sum_columns"),
        cases=tuple(
            _case(
                e,
                _SHAPE,
                Output((1, _SHAPE[1]), "f32", relative=_ERROR[e]),
                Scratch((_SHARES, _SHAPE[1]), "f32"),
            )
            for e in _ELEMENTS
        ),
    ),
)
