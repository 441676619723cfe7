"""Many builds at once, with one cache and one folder: each sees whole files, or none."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import pytest

import tilec.driver
from tilec.cli.entry import run_command_line
from tilec.compilation import Compiled

PROCESSES = 32
LARGE = b"0123456789abcdef" * 2**13


@pytest.fixture(autouse=True)
def slow_compiler(monkeypatch):
    """Compiles a source to many bytes, and takes as long as the others are not there yet."""

    def compile_text(sources, options, workers=1):
        time.sleep(0.05)
        outputs = {"a.sm_90a.cubin": sources.root.text.encode() + LARGE, "a.json": b"{}"}
        return Compiled(outputs, (), tuple(sources.files))

    monkeypatch.setattr(tilec.driver, "compile_sources", compile_text)


def child(number):
    """Builds one of two programs into a folder that every second process shares; 0 if all that is
    seen there is whole."""
    name = f"p{number % 2}"
    wanted = (Path(name) / "a.tile").read_bytes() + LARGE
    for _ in range(2):
        if run_command_line(["build", f"{name}/a.tile", "-o", f"{name}/out", "-q"]) != 0:
            return 1
        if Path(f"{name}/out/a.sm_90a.cubin").read_bytes() != wanted:
            return 2
    return 0


def test_many_processes_build_into_one_cache_and_folder(workplace, tmp_path):
    for number in range(2):
        Path(f"p{number}").mkdir()
        Path(f"p{number}/a.tile").write_text(f"// program {number}\n")
    children = []
    for number in range(PROCESSES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that pytest may have threads
            pid = os.fork()
        if pid == 0:
            status = 99
            try:
                status = child(number)
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * PROCESSES
    assert len(list((tmp_path / "cache" / "results").glob("*/*"))) == 2
    assert not list(tmp_path.rglob("*.tmp"))
