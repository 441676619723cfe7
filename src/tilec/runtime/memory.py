"""Device memory that several tensors share, and who has it beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from tilec.runtime.errors import BorrowError
from tilec.runtime.launch import UNDER_WAY

if TYPE_CHECKING:
    from tilec.runtime.cuda_driver import Memory
    from tilec.runtime.tensor import Tensor


class Export:
    """Keeps memory for another library, which has imported a tensor of it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def __repr__(self) -> str:
        return "another library (DLPack)"


class SharedMemory:
    """Memory, the tensors in it, and whoever else needs it: graphs, other libraries."""

    __slots__ = ("buffer", "holders", "is_freed", "tensors")

    def __init__(self, buffer: Memory) -> None:
        self.buffer = buffer
        self.is_freed = False
        self.tensors: WeakSet[Tensor] = WeakSet()
        self.holders: WeakSet[object] = WeakSet()

    def check_free(self) -> None:
        """That nothing needs the memory.

        Raises:   BorrowError, which says what does; LaunchError if the device failed
        """
        for holder in self.holders:
            raise BorrowError(f"the tensor is not freed: {holder!r} holds its memory")
        start = int(self.buffer.handle)
        end = start + self.buffer.size
        for launch in UNDER_WAY.borrowers():
            for one in launch.ranges():
                if one.start < end and start < one.end and launch.may_run():
                    raise BorrowError(
                        f"the tensor is not freed: `{launch.label}`, which may still run, has "
                        f"borrowed it as `{one.name}`; wait for its handle"
                    )
