"""The compiler of Rust, where there is one."""

from __future__ import annotations

import shutil
from subprocess import CompletedProcess

import pytest

from tests.emit.toolchain import run

EDITION = "2021"


def rustc() -> str:
    """The compiler; the test is skipped where there is none."""
    found = shutil.which("rustc")
    if found is None:
        pytest.skip("there is no rustc")
    return found


def compile_rust(*arguments: object, edition: str = EDITION) -> CompletedProcess[str]:
    return run(rustc(), f"--edition={edition}", *arguments)


def compiled_rust(*arguments: object, edition: str = EDITION) -> None:
    """Compiles something, of which the compiler has nothing to say."""
    done = compile_rust(*arguments, edition=edition)
    assert done.returncode == 0 and not done.stderr, done.stderr[:4000]
