"""The CUDA side of the runtime, imported when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, SupportsInt, TypeAlias

import numpy as np

from tilec.runtime.array import Array
from tilec.runtime.entry import Cells, Entry, Node, Start, Started
from tilec.runtime.errors import NoDevice

HostArray: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.generic]]"


class Completion(Protocol):
    """Tells when a launch is done; an event of cuda.core."""

    @property
    def is_done(self) -> bool: ...

    def sync(self) -> None: ...


class Memory(Protocol):
    """Device memory, freed with the object; a buffer of cuda.core."""

    @property
    def handle(self) -> SupportsInt: ...

    @property
    def size(self) -> int: ...

    def close(self) -> None: ...


class Exported(Protocol):
    """Something that other libraries import by DLPack; a view of cuda.core."""

    def __dlpack__(self, **options: object) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class Executable(Protocol):
    """A graph that is launched as a whole. One launch of it begins when the one before is done."""

    def launch(self, stream: int) -> None: ...

    def update(self, nodes: Sequence[Node]) -> bool: ...


class Driver(Protocol):
    """What the runtime asks of CUDA; `tilec.runtime.driver` is it, and tests have another.

    Streams are addresses, 0 the default stream.
    """

    def current_device(self) -> int: ...

    def device_count(self) -> int: ...

    def sm_count(self, device: int | None) -> int: ...

    def card(self, device: int | None) -> str: ...

    def capability(self, device: int | None) -> tuple[int, int]: ...

    def allocated(self, size_bytes: int, device: int) -> Memory: ...

    def copy_to_device(self, address: int, host: HostArray, device: int) -> None: ...

    def copy_to_host(self, host: HostArray, address: int, device: int) -> None: ...

    def exported(self, array: Array, memory: object) -> Exported: ...

    def stream_of(self, given: object) -> int: ...

    def device_of(self, stream: int) -> int: ...

    def array_of(self, name: str, given: object, stream: int) -> Array: ...

    def loaded(self, cubin: bytes, target: str, name: str) -> object: ...

    def prepared(self, code: object, entry: Entry, cells: Cells, early: bool = False) -> Start: ...

    def side_streams(
        self, count: int, entry: Started, beside: int
    ) -> AbstractContextManager[Sequence[int]]: ...

    def made_event(self, device: int | None) -> Completion: ...

    def record(self, event: Completion, stream: int) -> None: ...

    def wait_for(self, event: Completion, stream: int) -> None: ...

    def stream_memory(self, size_bytes: int, entry: Started, stream: int) -> int: ...

    def free_stream_memory(self, address: int, entry: Started, stream: int) -> None: ...

    def built_graph(self, code: object, entry: Started, nodes: Sequence[Node]) -> Executable: ...

    def finish(self, entry: Started, stream: int) -> None: ...

    def finish_device(self, entry: Started) -> None: ...

    def recorded(self, entry: Started, stream: int) -> Completion | None: ...

    def is_over(self, event: Completion) -> bool: ...

    def tail(self, stream: int, device: int | None) -> Completion | None: ...

    def order(self, event: Completion, stream: int, device: int | None) -> bool: ...

    def is_captured(self, stream: int) -> bool: ...

    def waits_for_legacy(self, stream: int) -> bool: ...


def cuda_driver() -> Driver:
    """The driver of this machine. That there is a device is found out by the first use.

    Raises:   NoDevice if cuda-python is not installed
    """
    try:
        from tilec.runtime import driver
    except ImportError as error:
        raise NoDevice(f"launching needs the package cuda-python: {error}") from None
    return driver
