"""Events of CUDA: they tell when a stream is done with what it was given.

Over `cuda.bindings`: an event of cuda.core costs several launches to make. They are used again, so
that none is destroyed where there may be no context, and few are made.
"""

from __future__ import annotations

from collections import defaultdict, deque

from cuda.bindings import driver as bindings

from tilec.runtime.devices import SUCCESS, text_of
from tilec.runtime.errors import LaunchError

_NOT_READY = bindings.CUresult.CUDA_ERROR_NOT_READY
_NO_TIMING = int(bindings.CUevent_flags.CU_EVENT_DISABLE_TIMING)

# Those that nobody has any more, by device. What still waits for one does so for what it stood for.
_FREE: defaultdict[int, deque[bindings.CUevent]] = defaultdict(deque)


class Event:
    """An event of a device, whose context is current when it is made.

    Raises:   LaunchError; what the device failed with, when it is asked
    """

    __slots__ = ("_device", "handle")

    def __init__(self, device: int) -> None:
        self._device = device
        try:
            self.handle = _FREE[device].pop()
        except IndexError:
            status, handle = bindings.cuEventCreate(_NO_TIMING)
            _check(status)
            self.handle = handle

    @property
    def is_done(self) -> bool:
        [status] = bindings.cuEventQuery(self.handle)
        if status == _NOT_READY:
            return False
        _check(status)
        return True

    def sync(self) -> None:
        """Returns when it is done."""
        [status] = bindings.cuEventSynchronize(self.handle)
        _check(status)

    def __del__(self) -> None:
        handle = getattr(self, "handle", None)
        if handle is not None:
            _FREE[self._device].append(handle)


def _check(status: bindings.CUresult) -> None:
    if status != SUCCESS:
        raise LaunchError(text_of(status))
