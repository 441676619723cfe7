"""Compilers of C and C++, and the fake driver that they make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STRICT = ("-pedantic", "-Wall", "-Wextra", "-Werror")
CXX_STANDARD = "c++17"
LINKED = ("-ldl", "-lpthread")


def compilers(*names: str) -> list[str]:
    """Those of these that are installed, each once, whatever its name."""
    found: dict[str, str] = {}
    for name in names:
        if place := shutil.which(name):
            found.setdefault(os.path.realpath(place), name)
    return list(found.values())


def c_compiler() -> str:
    """A compiler of C; the test is skipped where there is none."""
    found = compilers("gcc", "cc", "clang")
    if not found:
        pytest.skip("there is no C compiler")
    return found[0]


def cxx_compiler() -> str:
    found = compilers("g++", "clang++")
    if not found:
        pytest.skip("there is no C++ compiler")
    return found[0]


@cache
def cuda_include() -> Path | None:
    """Where `cuda.h` is: in the wheels of the compiler, or of a toolkit."""
    for kind in ("purelib", "platlib"):
        for found in sorted(Path(sysconfig.get_paths()[kind], "nvidia").glob("**/include/cuda.h")):
            return found.parent
    toolkit = Path("/usr/local/cuda/include")
    return toolkit if (toolkit / "cuda.h").exists() else None


def run(*command: object, timeout: int = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def compiled(*command: object) -> None:
    """Runs a compiler, which must say nothing."""
    done = run(*command)
    assert done.returncode == 0 and not done.stderr, done.stderr[:4000]


def failing_driver_text() -> str:
    """The fake driver, any call of which may be made to fail: `failing_driver.h` as C."""
    header = (HERE.parents[1] / "src/tilec/emit/header/support/driver.h").read_text()
    names = sorted(set(re.findall(r'"(cu[A-Z]\w+)"', header)))
    text = (HERE / "failing_driver.h").read_text()
    for word, line in (
        ("#RENAMED", "#define {0} fake_{0}"),
        ("#RESTORED", "#undef {0}"),
        ("#PASSED", "PASS_ON({0})"),
    ):
        text = text.replace(word, "\n".join(line.format(name) for name in names))
    return text


@cache
def failing_driver(folder: Path) -> Path:
    """That as a shared library."""
    source, made = folder / "failing_driver.c", folder / "libfailing_cuda.so"
    source.write_text(failing_driver_text())
    compiled(c_compiler(), "-std=gnu11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I", HERE,
             "-o", made, source, "-lpthread")  # fmt: skip
    return made


@cache
def fake_driver(folder: Path) -> Path:
    """The fake driver as a shared library."""
    made = folder / "libfake_cuda.so"
    compiled(c_compiler(), "-std=gnu11", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", made,
             HERE / "fake_cuda.c", "-lpthread")  # fmt: skip
    return made
