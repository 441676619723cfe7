"""A lock that a thread never waits for while it has it."""

from __future__ import annotations

from threading import Lock, get_ident

from tilec.runtime.errors import BorrowError


class OwnedLock:
    """A lock that knows who has it. A collection of garbage, which any line may start, runs
    finalizers of the caller: those that come back here would wait for themselves.
    """

    __slots__ = ("_lock", "_owner")

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = 0  # a thread; no thread is 0

    def acquire(self, blocking: bool = True) -> bool:
        """Whether this thread has it now.

        Raises:   BorrowError if it had it before, and would wait
        """
        if blocking and self._owner == get_ident():
            raise BorrowError("a finalizer came in the midst of a launch; call this elsewhere")
        if not self._lock.acquire(blocking):
            return False
        self._owner = get_ident()
        return True

    def release(self) -> None:
        self._owner = 0
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
