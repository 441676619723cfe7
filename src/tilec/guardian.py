"""Ends what a command started, however the command itself ends, `kill -9` among the ways.

The processes that a command starts are of one process group, with all that they start in turn. A
guardian leads it: a process that does nothing but wait for the end of a pipe, which comes when the
command is gone, and then kills the group.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# What a terminal, or `timeout`, sends to all of a command.
_OF_COMMANDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}

_is_guarded = False


@dataclass(frozen=True)
class Group:
    """A process group to join; `leader` is None in a process that is of one already."""

    leader: int | None = None
    pipe: int | None = None

    def join(self) -> None:
        """For a child, first of all."""
        global _is_guarded
        if self.leader is not None and self.pipe is not None:
            os.close(self.pipe)  # which only the command itself shall hold
            with suppress(OSError):
                os.setpgid(0, self.leader)
            _is_guarded = True


@contextmanager
def guarded() -> Iterator[Group]:
    """A group for children. At the end of the block all that is left of it is killed."""
    if _is_guarded:
        yield Group()
        return
    reads, writes = os.pipe()
    leader = _fork_guardian(reads, writes)
    os.close(reads)
    with suppress(OSError):  # it does so itself; whoever is first
        os.setpgid(leader, leader)
    try:
        yield Group(leader, writes)
    finally:
        with suppress(OSError):
            os.killpg(leader, signal.SIGKILL)
        with suppress(OSError):
            os.kill(leader, signal.SIGKILL)
        os.waitpid(leader, 0)
        os.close(writes)


def _fork_guardian(reads: int, writes: int) -> int:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_COMMANDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which it has none of
            pid = os.fork()
        if pid == 0:
            _guard(reads, writes)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _guard(reads: int, writes: int) -> None:
    """The guardian's whole life, deaf to what is sent to commands; does not return."""
    try:
        os.close(writes)
        os.setpgid(0, 0)
        os.read(reads, 1)
        os.killpg(0, signal.SIGKILL)
    finally:
        os._exit(0)
