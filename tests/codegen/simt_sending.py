"""Copies from shared memory to tensors, which go on while threads do.

What is found: a copy of what was stored without a fence or barrier between, a store to what a copy
reads, bytes written beyond a tensor's rows, and copies that nobody waits for.

Source:   PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk.commit_group", "cp.async.bulk.wait_group"
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from mlir import ir
from simt_copies import PIECE, MappedTensor
from simt_memory import Memory, Segment, SimtError
from simt_strands import Chance

Array = Any


@dataclass(eq=False)
class _Copy:
    tensor: MappedTensor
    first: tuple[int, ...]
    pieces: Array
    thread: int
    is_done: bool = False


@dataclass
class _Begun:
    """What one thread began: in no group yet, and in groups."""

    loose: list[_Copy] = field(default_factory=list)
    groups: list[list[_Copy]] = field(default_factory=list)


class Sending:
    """Copies from the shared memory of a block."""

    def __init__(self, memory: Memory, shared: Segment, chance: Chance) -> None:
        self.memory, self.shared, self.chance = memory, shared, chance
        self.by_thread: dict[int, _Begun] = {}
        self.readers = np.zeros(-(-shared.bytes.size // PIECE), np.int32)

    def begin(self, tensor: MappedTensor, first: Sequence[int], place: int, thread: int) -> None:
        pieces = tensor.pieces(place)
        if pieces.min() < 0 or (pieces.max() + 1) * PIECE > self.shared.bytes.size:
            raise SimtError(f"a copy from byte {place}, beyond shared memory")
        if not tensor.is_written:
            raise SimtError("a copy to a tensor that is described to be read")
        # A thread that reads, and what it reads must have been stored before a barrier.
        self.memory.load(self.shared.start + pieces * PIECE, PIECE, np.full(len(pieces), thread))
        copy = _Copy(tensor, tuple(first), pieces, thread)
        self.readers[pieces] += 1
        self.by_thread.setdefault(thread, _Begun()).loose.append(copy)
        if self.chance.says(self.chance.timing.early_copies):
            self._do(copy)

    def commit(self, thread: int) -> None:
        begun = self.by_thread.setdefault(thread, _Begun())
        begun.groups.append(begun.loose)
        begun.loose = []

    def wait(self, thread: int, pending: int) -> None:
        begun = self.by_thread.get(thread, _Begun())
        while len(begun.groups) > pending:
            for copy in begun.groups.pop(0):
                self._do(copy)
                self.readers[copy.pieces] -= 1
                places = (copy.pieces[:, None] * PIECE + np.arange(PIECE)).ravel()
                # It has read now: a barrier is to come before others write.
                self.shared.reads.note(places, np.full(len(places), thread), self.memory.clock)

    def expect_unread(self, pieces: Array) -> None:
        if (self.readers[pieces] > 0).any():
            raise SimtError("a store to what a copy reads, which nobody waited for")

    def expect_over(self) -> None:
        for thread, begun in self.by_thread.items():
            if begun.loose or begun.groups:
                raise SimtError(f"thread {thread} leaves while copies read shared memory")

    def _do(self, copy: _Copy) -> None:
        if copy.is_done:
            return
        copy.is_done = True
        whole = self.shared.bytes.size // PIECE * PIECE
        content = self.shared.bytes[:whole].reshape(-1, PIECE)[copy.pieces]
        size, box = copy.tensor.array.itemsize, copy.tensor.box
        rows = content.reshape(*box[:-1], box[-1] * size)
        *outer, extent = copy.tensor.array.shape
        *above, along = copy.first
        low, high = max(along, 0), min(along + box[-1], extent)
        if low >= high:
            return
        # The hardware writes whole pieces of 16 bytes.
        end = along * size + -(-(high - along) * size // PIECE) * PIECE
        for place in product(*map(range, box[:-1])):
            row = [a + b for a, b in zip(above, place, strict=True)]
            if not all(0 <= r < n for r, n in zip(row, outer, strict=True)):
                continue
            steps = zip(row, copy.tensor.strides, strict=True)
            address = copy.tensor.address + low * size + sum(r * s for r, s in steps)
            inside = rows[place][(low - along) * size : end - along * size]
            self.memory.store(np.array([address]), inside[None], np.array([copy.thread]))


def _begin(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    target, source, *places = operands
    for thread in np.flatnonzero(active):
        self.memory.expect_waited(self.threads[thread])
        tensor = self.machine.tensor_maps[int(target[thread])]
        first = [int(place[thread]) for place in places][::-1]
        place = int(source[thread]) - self.machine.base
        self.machine.expect_fenced(tensor.pieces(place))
        self.machine.sending.begin(tensor, first, place, int(self.threads[thread]))
    return []


def _commit(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    for thread in self.threads[active]:
        self.machine.sending.commit(int(thread))
    return []


def _wait(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    for thread in self.threads[active]:
        pending = ir.IntegerAttr(op.attributes["group"]).value
        self.machine.sending.wait(int(thread), pending)
    return []


RULES = {
    "nvvm.cp.async.bulk.tensor.global.shared.cta": _begin,
    "nvvm.cp.async.bulk.commit.group": _commit,
    "nvvm.cp.async.bulk.wait_group": _wait,
}
