"""What is found along rows: losses, places, running sums, the largest, scales."""

from __future__ import annotations

from suite import named, rivals

from tilec.bench import Benchmark, Case, Input, Output, fitting

_LOGITS = 4096, 151_936  # tokens, and the vocabulary of a language model
_ROWS = 4096, 32_768
_K = 8
# exp in f32 and a sum of a row: some hundred units of f32.
_LOGARITHM = 2.0**-15


def _case(name: str, outputs: tuple[Output, ...], *inputs: Input) -> Case:
    return Case(name=name, outputs=outputs, inputs=inputs)


def _of_logits(*more: Input) -> Case:
    loss = Output(_LOGITS[:1], "f32", absolute=_LOGARITHM, relative=_LOGARITHM)
    return _case(named("bf16", *_LOGITS), (loss,), Input(_LOGITS, "bf16"), *more)


def _cumsum() -> Case:
    # Positive terms, so that sums are large against the errors of 15 to some hundred additions.
    y = Output(_ROWS, "f32", relative=256 * 2.0**-24)
    return _case(named("f32", *_ROWS), (y,), Input(_ROWS, "f32", span=(0, 1)))


def _topk() -> Case:
    outputs = (Output((_ROWS[0], _K), "f32"), Output((_ROWS[0], _K), "i32"))
    return _case(named("f32", *_ROWS), outputs, Input(_ROWS, "f32"))


def _quantise(rows: int, columns: int, element: str) -> Case:
    # Of half a step: next to the middle between two numbers of 8 bits either is right.
    steps = {"i8": (0.5 + 2.0**-12, 0.0), "f8e4m3": (2.0**-10, 2.0**-4 + 2.0**-20)}
    absolute, relative = steps[element]
    outputs = (
        Output((rows, columns), element, absolute=absolute, relative=relative),
        Output((rows,), "f32", relative=2.0**-22),
    )
    return _case(named("bf16", rows, columns), outputs, Input((rows, columns), "bf16"))


BENCHMARKS = (
    Benchmark(
        name="cross_entropy",
        ours=fitting("cross_entropy"),
        operation="torch_operations:cross_entropy",
        rivals=rivals("cross_entropy"),
        cases=(_of_logits(Input(_LOGITS[:1], "i32", span=(0, _LOGITS[1]))),),
    ),
    Benchmark(
        name="logsumexp",
        ours=fitting("logsumexp"),
        operation="torch_operations:logsumexp",
        rivals=rivals("logsumexp"),
        cases=(_of_logits(),),
    ),
    Benchmark(
        name="argmax",
        ours=fitting("argmax"),
        operation="torch_operations:argmax",
        observed="torch_operations:at_index",
        rivals=rivals("argmax"),
        cases=(_case(named("f32", *_ROWS), (Output(_ROWS[:1], "i32"),), Input(_ROWS, "f32")),),
    ),
    Benchmark(
        name="cumsum_rows",
        ours=fitting("cumsum"),
        operation="torch_operations:cumsum_rows",
        rivals=rivals("cumsum_rows"),
        cases=(_cumsum(),),
    ),
    Benchmark(
        name="topk8",
        ours=fitting("topk"),
        operation="torch_operations:topk8",
        observed="torch_operations:values_at_indices",
        rivals=rivals("topk8"),
        cases=(_topk(),),
    ),
    Benchmark(
        name="quantise",
        ours=fitting("quantise"),
        operation="torch_operations:quantise",
        rivals=rivals("quantise"),
        cases=(_quantise(8192, 4096, "i8"), _quantise(8192, 14336, "i8")),
    ),
    Benchmark(
        name="quantise_f8",
        ours=fitting("quantise_f8"),
        operation="torch_operations:quantise_f8",
        rivals=rivals("quantise_f8"),
        cases=(_quantise(8192, 4096, "f8e4m3"),),
    ),
)
