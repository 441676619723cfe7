"""A tool that does not end, and a command that is killed: what stays behind, and for how long."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from test_surroundings import COPY, heed_all_signals, session, wait_until

from tilec.diagnostics.setup_error import SetupError
from tilec.target.running import run

TILEC = [sys.executable, "-m", "tilec"]
# It starts a process of its own, and waits for it.
HANGS = """#!/bin/sh
case "$*" in *--version*) echo V13.0.88; exit 0;; esac
sleep 1000
echo never
"""

# What every command that compiles or checks does first.
LATER = "from tilec.children import run_in_children; list(run_in_children([int], 1))"


@pytest.fixture
def ptxas(workplace, monkeypatch) -> Path:
    Path("copy.tile").write_text(COPY)
    path = workplace / "ptxas"
    path.write_text(HANGS)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("TILEC_PTXAS", str(path))
    return path


def test_a_killed_build_leaves_no_process_and_a_later_command_sweeps_its_files(ptxas, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [*TILEC, "build", "copy.tile", "--no-cache"],
        env=environment,
        start_new_session=True,
        preexec_fn=heed_all_signals,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: "sleep" in map(name_of, session(process.pid)))
    # The command, its guardian, the child that compiles, the script and what that waits for.
    assert len(session(process.pid)) >= 5
    subprocess.run([sys.executable, "-c", LATER], env=environment, check=True)
    assert len(list(temporary.iterdir())) == 1  # of the build that goes on
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not session(process.pid))
    assert len(list(temporary.iterdir())) == 1
    subprocess.run([sys.executable, "-c", LATER], env=environment, check=True)
    assert list(temporary.iterdir()) == []


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_a_tool_that_does_not_end_is_an_error_and_ends_with_what_it_started(ptxas):
    process = subprocess.Popen(
        [*TILEC, "build", "copy.tile", "--no-cache"],
        env={**os.environ, "TILEC_PTXAS_TIMEOUT": "0.25"},
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (
        2,
        f"error: `{ptxas}` did not end within 0.25 s\n"
        "  = help: TILEC_PTXAS_TIMEOUT=SECONDS gives it more time\n",
    )
    wait_until(lambda: not session(process.pid))
    assert not Path("build").exists()


def test_a_tool_that_does_not_say_its_version_is_waited_for_once(ptxas, tilec_process, monkeypatch):
    ptxas.write_text(f'#!/bin/sh\necho "$*" >> {ptxas}.asked\nexec sleep 1000\n')
    monkeypatch.setenv("TILEC_PTXAS_TIMEOUT", "0.25")
    Path("other.tile").write_text(COPY)
    # A process of its own: versions are asked once in one, and other tests ask, too.
    ended = tilec_process("build", "copy.tile", "other.tile")
    assert ended.status == 2
    assert "did not end within 0.25 s" in ended.err
    assert Path(f"{ptxas}.asked").read_text().count("--version") == 1


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "soon"])
def test_a_limit_is_seconds(monkeypatch, limit):
    monkeypatch.setenv("TILEC_PTXAS_TIMEOUT", limit)
    with pytest.raises(SetupError, match="expected seconds, more than 0"):
        run(["true"])


def test_gives_what_a_program_says_and_how_it_ends():
    ended = run(["sh", "-c", "echo out; echo err >&2; exit 3"], Path("/"))
    assert (ended.status, ended.output, ended.log) == (3, "out\n", "err\n")
    assert run(["sh", "-c", "kill -9 $$"]).status == -9
    with pytest.raises(SetupError, match="`/nowhere/ptxas` does not run: no such file"):
        run(["/nowhere/ptxas"])
    # What a program leaves behind may hold its streams open.
    assert run(["sh", "-c", "sleep 5 & echo done"], None, 4).output == "done\n"
