"""A gate for streams: what is behind it is under way for as long as a test wants.

The GPU waits for a word of host memory (CUDA Driver API, "Stream Memory Operations"), so that no
test depends on how long a kernel takes.
"""

from __future__ import annotations

import ctypes
from types import TracebackType

from cuda.bindings import driver

_OPEN = 1
_LEGACY_STREAM = 1  # cuda.h


class Gate:
    """Closed for the streams given to `close` until `open` is called, or its `with` is left."""

    def __init__(self) -> None:
        status, self._host = driver.cuMemHostAlloc(4, driver.CU_MEMHOSTALLOC_DEVICEMAP)
        assert status == driver.CUresult.CUDA_SUCCESS
        status, self._device = driver.cuMemHostGetDevicePointer(self._host, 0)
        assert status == driver.CUresult.CUDA_SUCCESS
        self._word = ctypes.c_uint32.from_address(int(self._host))
        self._word.value = 0

    def close(self, stream: object) -> None:
        """What the stream is given from now on waits until the gate is open."""
        self._word.value = 0
        address = int(getattr(stream, "handle", stream)) or _LEGACY_STREAM
        equal = int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ)
        [status] = driver.cuStreamWaitValue32(driver.CUstream(address), self._device, _OPEN, equal)
        assert status == driver.CUresult.CUDA_SUCCESS, status.name

    def open(self) -> None:
        self._word.value = _OPEN

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.open()
        driver.cuCtxSynchronize()
        driver.cuMemFreeHost(self._host)
