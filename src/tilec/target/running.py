"""Runs the programs of CUDA, for which no user shall wait for ever."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import IO

from tilec.diagnostics.setup_error import SetupError, of_the_machine

LIMIT_VARIABLE = "TILEC_PTXAS_TIMEOUT"
# By the clock. The longest kernels that are known take a minute.
_LIMIT_S = 600.0
_MOST_SAID_BYTES = 16 << 20
_LONGEST_POLL_MS = 2**31 - 1


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what it said."""

    status: int  # negative: the signal that ended it
    output: str
    log: str


def run(command: Sequence[str], folder: Path | None = None, most_s: float = inf) -> Ended:
    """Run a program to its end, in a folder, and for `most_s` or the user's limit at most.

    What it prints goes to files and not to pipes: what it has started itself may hold those open.

    Raises:   SetupError if it cannot be started, or does not end within the limit
    """
    limit_s = min(_limit_s(), most_s)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=log
            )
        except OSError as error:
            raise of_the_machine(error) or _does_not_run(command[0], error) from error
        try:
            has_ended = _ends_within(limit_s, process)
        finally:
            process.kill()  # nothing where it has ended
            process.wait()
        if not has_ended:
            raise SetupError(
                f"`{command[0]}` did not end within {limit_s:g} s",
                help=f"{LIMIT_VARIABLE}=SECONDS gives it more time",
            )
        return Ended(process.returncode, _said(output), _said(log))


def _ends_within(limit_s: float, process: subprocess.Popen[bytes]) -> bool:
    """Whether a program ends in time, found at once and not by looking again and again."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:  # a kernel before 5.3, or a sandbox
        with suppress(subprocess.TimeoutExpired):
            process.wait(limit_s)
        return process.returncode is not None
    try:
        end = select.poll()
        end.register(descriptor, select.POLLIN)
        return bool(end.poll(min(limit_s * 1000, _LONGEST_POLL_MS)))
    finally:
        os.close(descriptor)


def _does_not_run(program: str, error: OSError) -> SetupError:
    return SetupError(f"`{program}` does not run: {(error.strerror or str(error)).lower()}")


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_SAID_BYTES).decode("utf-8", "replace")


def _limit_s() -> float:
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return _LIMIT_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not isfinite(seconds) or seconds <= 0:
        raise SetupError(f"`{LIMIT_VARIABLE}` is `{text}`: expected seconds, more than 0")
    return seconds
