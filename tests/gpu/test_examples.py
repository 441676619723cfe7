"""The examples, on a GPU: compiled where it is, from headers that were built elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from host_driver import DRY_RUN

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.skipif(DRY_RUN, reason="the examples launch by the driver itself")


def printed(folder, compiler):
    """What `make run` prints of a project whose headers are there."""
    headers = sorted((EXAMPLES / folder / "build").glob("*.h"))
    if not headers:
        pytest.skip(f"the headers of {folder} are not built")
    for program in ("make", compiler):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    for header in headers:
        os.utime(header)  # newer than its source, so that nothing is to be compiled by tilec
    done = subprocess.run(
        ["make", "run", "TILEC=false", f"CC={compiler}", f"CXX={compiler}"],
        cwd=EXAMPLES / folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_c():
    lines = printed("c", "gcc")
    assert "y[7] = 15, the sum of y = 1000000" in lines
    assert lines[-3:] == ["at once: 1.0000", "as a graph: 1.0000", "of another vector: 1.0000"]


def test_rust():
    program = EXAMPLES / "rust" / "build" / "axpy"
    if not program.exists():
        pytest.skip(f"{program} was not built: there was no cargo")
    done = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shorter, *rest = done.stdout.splitlines()
    assert "`x`: expected extent 1000 of axis 0 (`N`, as axis 0 of `y`), got 999" in shorter
    assert rest == [
        "the sum of y = 500500", "at once: 1.0000", "as a graph: 1.0000",
        "of another vector: 1.0000",
    ]  # fmt: skip


def test_python():
    pytest.importorskip("torch")
    folder = EXAMPLES / "python"
    if not (folder / "build" / "gated_torch.py").exists():
        pytest.skip(f"{folder}/build is not built")
    found = os.pathsep.join(["build", *map(os.path.abspath, sys.path)])
    done = subprocess.run(
        [sys.executable, "main.py"],
        cwd=folder, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": found},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "called: as expected",
        "compiled, in one graph: as expected",
        "differentiated: as expected",
        "a shorter one: `gated__f32_1024`: `up`: expected extent 100000 of axis 0 (`N`, as axis 0 "
        "of `gate`), got 50",
        "after own.free(): `gate` was freed",
    ]


def test_cxx():
    assert printed("cpp", "g++")[-2:] == [
        "float: the sum of y = 1000000",
        "double: the sum of y = 1000000",
    ]
