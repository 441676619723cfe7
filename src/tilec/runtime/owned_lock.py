"""A lock that a thread never waits for while it has it, and that no interrupt leaves taken."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock, get_ident
from typing import TypeVar

from tilec.runtime.errors import BorrowError

_Answer = TypeVar("_Answer")


class OwnedLock:
    """A lock that knows who has it. A collection of garbage, which any line may start, runs
    finalizers of the caller: those that come back here would wait for themselves.

    It is taken and given back by single calls of C, behind which an interrupt of the user comes
    when it is known whether it is taken: between lines of Python it would be taken for ever.
    """

    __slots__ = ("_lock", "_owner")

    def __init__(self) -> None:
        self._lock = RLock()  # as it may be asked to be given back by whoever does not have it
        self._owner = 0  # a thread; no thread is 0

    def run(self, work: Callable[[], _Answer]) -> _Answer:
        """Does what only one thread may at a time.

        Raises:   BorrowError if this thread is at it
        """
        thread = get_ident()
        if self._owner == thread:
            raise BorrowError("a finalizer came in the midst of a launch; call this elsewhere")
        with self._lock:
            return self._run(work, thread)

    def run_if_free(self, work: Callable[[], None]) -> None:
        """The same if no thread is at it; else nothing."""
        thread = get_ident()
        if self._owner == thread:
            return
        try:
            if self._lock.acquire(blocking=False):
                self._run(work, thread)
        finally:
            try:  # noqa: SIM105  (`suppress` is Python, which an interrupt may come into)
                self._lock.release()
            except RuntimeError:  # another thread has it
                pass

    def _run(self, work: Callable[[], _Answer], thread: int) -> _Answer:
        try:
            self._owner = thread
            return work()
        finally:
            self._owner = 0
