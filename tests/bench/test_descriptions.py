"""The descriptions of `benchmarks/`, as far as they go without a GPU."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tilec.bench.loading import benchmarks_of, matching
from tilec.diagnostics.setup_error import SetupError

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
FILES = sorted(FOLDER.glob("bench_*.py"))
BENCHMARKS = [b for path in FILES for b in benchmarks_of(path)]


def functions(module):
    """How many arguments each function of a file takes, without reading it in."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    return {f.name: len(f.args.args) for f in tree.body if isinstance(f, ast.FunctionDef)}


FUNCTIONS = {
    name: functions(name) for name in ("torch_operations", "triton_kernels", "triton_products")
}


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda b: b.name)
def test_what_a_benchmark_names_takes_the_arguments_of_its_cases(benchmark):
    def count(operation):
        module, _, name = operation.partition(":")
        return FUNCTIONS[module][name]

    for case in benchmark.cases:
        given = len(case.inputs) + len(case.scalars)
        assert count(benchmark.operation) == given
        for rival in benchmark.rivals:
            is_kernel = rival.style == "kernel"
            assert count(rival.operation) == given + is_kernel * len(case.outputs)
        if benchmark.observed is not None:
            assert count(benchmark.observed) == len(case.inputs) + len(case.outputs)


def test_names_are_of_one_case_each():
    names = [f"{b.name} {case.name}" for b in BENCHMARKS for case in b.cases]
    assert len(names) == len(set(names))


def test_inputs_of_integers_have_a_span():
    for benchmark in BENCHMARKS:
        for case in benchmark.cases:
            for spec in case.inputs:
                is_float = spec.element in ("f32", "bf16", "f16", "f8e4m3")
                assert spec.span is not None or spec.values is not None or is_float


def test_cases_are_chosen_by_parts_of_their_names():
    [found] = matching(BENCHMARKS, ["softmax bf16 4096x256"])
    assert [case.name for case in found.cases] == ["bf16 4096x256"]
    found = matching(BENCHMARKS, ["*small*"])
    assert {b.name for b in found} == {"add", "softmax", "rmsnorm", "silu_mul"}
    assert matching(BENCHMARKS, ["nonsense"]) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("BENCHMARKS = 3", "has no `BENCHMARKS`"),
        ("", "has no `BENCHMARKS`"),
        ("1 / 0", "fails: ZeroDivisionError"),
        ("x = (", "fails: SyntaxError"),
    ],
)
def test_what_is_no_description_is_refused(tmp_path, text, reason):
    path = tmp_path / "bench_no.py"
    path.write_text(text)
    with pytest.raises(SetupError, match=reason):
        benchmarks_of(path)
