"""What the command-line tests share: a folder and a cache of their own, and a way to run."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import pytest

from tilec.cli.entry import run_command_line


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty current folder, and a cache that no other test sees."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TILEC_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def tilec(capfd):
    """Runs a command line in this process."""

    def run(*arguments: object) -> Ended:
        capfd.readouterr()
        status = run_command_line([str(argument) for argument in arguments])
        return Ended(status, *capfd.readouterr())

    return run


@pytest.fixture
def tilec_process():
    """Runs a command line in a process of its own."""

    def run(*arguments: object) -> Ended:
        command = [sys.executable, "-m", "tilec", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
