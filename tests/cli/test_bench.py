"""`tilec bench` as far as it goes without a GPU."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DESCRIPTION = """
from tilec.bench import Benchmark, Case, Input, Output, Rival, fitting

X = Input((1000,), "f32")
BENCHMARKS = [
    Benchmark(
        name="add",
        ours=fitting("add"),
        operation="mine:add",
        cases=(Case("small", (Output((1000,), "f32"),), (X, X)),),
        rivals=(Rival("torch", "mine:add", "function"),),
    )
]
"""
NOT_AT_A_RUNTIME = ("mlir", "lark", "islpy", "rich", "ml_dtypes", "torch", "cuda")


def described():
    Path("add.py").write_text(DESCRIPTION)


def test_list_names_the_cases_and_what_each_must_move(tilec):
    described()
    ended = tilec("bench", "add.py", "--list")
    assert ended.status == 0
    assert ended.out == "add (rivals: torch)\n  small: 0.0 MB\n"


def test_without_files_it_takes_those_of_the_folder_benchmarks(tilec):
    ended = tilec("bench", "--list")
    assert ended.status == 2
    assert "there is no `benchmarks/bench_*.py` here" in ended.err
    Path("benchmarks").mkdir()
    Path("benchmarks/bench_add.py").write_text(DESCRIPTION)
    assert tilec("bench", "--list").out.startswith("add (")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("none.py",), "cannot read `none.py`"),
        (("add.py", "--only", "sub"), "no case has that name"),
        (("add.py", "--rivals", "jax"), "no rival is called `jax`; there are torch"),
        (("add.py", "--rounds", "0"), "--rounds"),
    ],
)
def test_what_cannot_be_measured_is_usage(tilec, options, said):
    described()
    ended = tilec("bench", *options)
    assert ended.status == 2
    assert said in ended.err


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is there")
def test_without_torch_the_error_says_so(tilec):
    described()
    ended = tilec("bench", "add.py")
    assert ended.status == 2
    assert "measuring needs the package torch, which cannot be imported" in ended.err
    assert "`tilec bench --list`" in ended.err


def test_a_machine_with_the_runtime_alone_can_list():
    described()
    code = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_AT_A_RUNTIME}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from tilec.cli.entry import run_command_line
assert run_command_line(["bench", "add.py", "--list"]) == 0
assert run_command_line(["bench", "none.py"]) == 2
assert run_command_line(["bench", "add.py"]) == 2
"""
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
