"""Copies to shared memory that go on by themselves: `cp.async`, its groups, and waits for them.

A copy lands where its group is waited for, not before: until then there is nothing at its place,
and what is read there is an error. It counts as a write of its thread both where it begins and
where it lands, so that barriers are missed on either side.

Source:   PTX ISA, "cp.async", "cp.async.commit_group", "cp.async.wait_group"
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mlir import ir
from simt_memory import SHARED_BASE, SimtError

Array = Any


@dataclass(frozen=True)
class _Started:
    """Shapes: targets (n,) addresses, content (n, bytes), threads (n,)"""

    targets: Array
    content: Array
    threads: Array


@dataclass
class Copies:
    """Those of threads in lock-step: begun since the last group, and the groups under way."""

    loose: list[_Started] = field(default_factory=list)
    groups: list[list[_Started]] = field(default_factory=list)

    def expect_over(self) -> None:
        if self.loose or any(self.groups):
            raise SimtError("a copy may be under way at the end: nobody waited for it")


def copy(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    size = ir.IntegerAttr(op.attributes["size"]).value
    target, source, *count = operands
    bytes_ = count[0] if count else np.full(len(active), size)
    if size not in (4, 8, 16) or ("cg" in str(op.attributes["modifier"]) and size != 16):
        raise SimtError(f"no copy moves {size} bytes so")
    if (target[active] % size).any():
        raise SimtError(f"a copy to an address that is no multiple of {size}")
    if ((bytes_[active] < 0) | (bytes_[active] > size)).any():
        raise SimtError(f"a copy of {bytes_[active]} bytes, of {size}")
    content = np.zeros((len(active), size), np.uint8)
    for some in np.unique(bytes_[active]):
        here = active & (bytes_ == some)
        if some:
            if (source[here] % size).any():
                raise SimtError(f"a copy from an address that is no multiple of {size}")
            content[here, :some] = self.memory.load(
                source[here], int(some), self.threads[here], read_only=True
            )
    threads = self.threads[active]
    nothing = np.full((len(threads), size), 0xFF, np.uint8)
    self.machine.touch(target[active], size, writes=True)
    self.memory.store(target[active], nothing, threads)
    places = (target[active] - SHARED_BASE)[:, None] + np.arange(size)
    self.machine.shared.written[places] = False
    self.copies.loose.append(_Started(target[active], content[active], threads))
    return []


def commit(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, op.operation.name)
    self.copies.groups.append(self.copies.loose)
    self.copies.loose = []
    return []


def wait(self: Any, op: ir.OpView, operands: list[Array], active: Array) -> list[Array]:
    self.all_here(active, op.operation.name)
    pending = ir.IntegerAttr(op.attributes["n"]).value
    while len(self.copies.groups) > pending:
        for one in self.copies.groups.pop(0):
            _land(self, one)
    return []


def _land(self: Any, one: _Started) -> None:
    """Whoever came to the place since the copy began was told that nothing is there."""
    shared, size = self.machine.shared, one.content.shape[1]
    places = (one.targets - SHARED_BASE)[:, None] + np.arange(size)
    shared.bytes[places] = one.content
    shared.written[places] = True
    shared.writes.note(places.ravel(), np.repeat(one.threads, size), self.memory.clock)


RULES = {
    "nvvm.cp.async.shared.global": copy,
    "nvvm.cp.async.commit.group": commit,
    "nvvm.cp.async.wait.group": wait,
}
