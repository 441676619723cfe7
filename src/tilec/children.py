"""Jobs in forked child processes, so that an abort inside LLVM costs one job and not the command.

A fork shares what is imported, so a child costs milliseconds. The parent must have no thread of its
own that holds a lock: no MLIR context but one without threads.

However the parent ends, its children end with it, and what they started (`tilec.guardian`). Their
temporary files are in a folder of the parent's: a child that is killed tidies nothing up, and where
the parent is killed too, a later command does.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import pickle
import resource
import selectors
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import IO, Generic, TypeVar

from tilec.diagnostics.setup_error import SetupError, of_the_machine
from tilec.guardian import Group, guarded
from tilec.leftovers import sweep_folders, temporary_folder

T = TypeVar("T")

# Deeply nested programs recurse deeply; on Python 3.10 a frame also takes C stack, of which a
# main thread has 8 MiB.
RECURSION_LIMIT = 8000
_KEPT_OUTPUT_BYTES = 64 * 1024
_READ_BYTES = 1 << 20
# What a program does not send itself: the system where memory is out, a limit of processor time.
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGXCPU}
_PR_SET_PDEATHSIG = 1  # prctl(2)


@dataclass(frozen=True)
class Crashed:
    """A job that did not end as it should: an exception, or a signal."""

    reason: str
    details: str  # the traceback, or what the child wrote before it died
    from_outside: bool = False  # ended by the system or by somebody: no fault of the job


@dataclass(frozen=True)
class _Place:
    """Where children are: a folder for temporary files, and a process group."""

    folder: str
    group: Group


@dataclass
class _Child(Generic[T]):
    index: int
    pid: int
    output: IO[bytes]
    received: bytearray


def run_in_children(
    jobs: Sequence[Callable[[], T]], limit: int
) -> Iterator[tuple[int, T | Crashed]]:
    """Run each job in a child of its own, `limit` at a time; gives (index, result) as they end.

    Assumes:  results can be pickled
    Raises:   SetupError if a job raises one
    """
    _sweep()
    with temporary_folder() as folder, guarded() as group:
        yield from _run_in_children(jobs, limit, _Place(str(folder), group))


@cache
def _sweep() -> None:
    """Once in a process, and not in its children."""
    sweep_folders()


def _run_in_children(
    jobs: Sequence[Callable[[], T]], limit: int, place: _Place
) -> Iterator[tuple[int, T | Crashed]]:
    selector = selectors.DefaultSelector()
    running: dict[int, _Child[T]] = {}
    waiting = list(reversed(range(len(jobs))))
    # What is there stays: a collection in a child would look at, and so copy, all that it shares.
    gc.freeze()
    try:
        while waiting or running:
            while waiting and len(running) < max(limit, 1):
                index = waiting.pop()
                pipe, child = _start(index, jobs[index], place)
                running[pipe] = child
                selector.register(pipe, selectors.EVENT_READ)
            for event, _ in selector.select():
                data = os.read(event.fd, _READ_BYTES)
                if data:
                    running[event.fd].received += data
                    continue
                selector.unregister(event.fd)
                os.close(event.fd)
                child = running.pop(event.fd)
                result = _result(child)
                yield child.index, result
    finally:
        gc.unfreeze()
        selector.close()
        for pipe, child in running.items():
            os.close(pipe)
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            child.output.close()


def _start(index: int, job: Callable[[], T], place: _Place) -> tuple[int, _Child[T]]:
    output = tempfile.TemporaryFile()  # noqa: SIM115 (outlives this function)
    receive, send = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # NumPy's own threads hold nothing that a compile needs; Python 3.12 warns of any thread.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _end_with(parent)
        place.group.join()
        tempfile.tempdir = place.folder
        _run(job, send, output)
    os.close(send)
    return receive, _Child(index, pid, output, bytearray())


def _end_with(parent: int) -> None:
    """Have this process killed when its parent is gone; what the parent does at signals is not for
    it to do."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it went before that was said
        os._exit(1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _run(job: Callable[[], T], send: int, output: IO[bytes]) -> None:
    """The child's whole life; does not return."""
    status = 1
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        faulthandler.enable(2)  # an abort then says where Python was
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.setrecursionlimit(max(RECURSION_LIMIT, sys.getrecursionlimit()))
        answer = pickle.dumps(_answer(job))
        view = memoryview(answer)
        while view:
            view = view[os.write(send, view) :]
        status = 0
    finally:
        # Not `sys.exit`: nothing of the parent's may be flushed or unlinked here.
        os._exit(status)


def _answer(job: Callable[[], T]) -> T | Crashed | SetupError:
    try:
        return job()
    except SetupError as error:
        return SetupError(error.message, error.help, error.code)
    except Exception as error:
        if (missing := of_the_machine(error)) is not None:
            return missing
        return Crashed(f"{type(error).__name__}: {error}", traceback.format_exc())


def _result(child: _Child[T]) -> T | Crashed:
    _, status = os.waitpid(child.pid, 0)
    with child.output:
        size = child.output.seek(0, os.SEEK_END)
        child.output.seek(max(0, size - _KEPT_OUTPUT_BYTES))
        printed = child.output.read().decode("utf-8", "replace")
    if status != 0:
        return Crashed(_ending(status), printed, _is_from_outside(status))
    answer: T | Crashed | SetupError = pickle.loads(child.received)
    if isinstance(answer, SetupError):
        raise answer
    return answer


def _is_from_outside(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in _FROM_OUTSIDE


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"ended with status {os.WEXITSTATUS(status)}"
