"""Wavefronts of accesses to shared memory, counted from the addresses that threads compute.

Nothing of layouts or plans is used: the operations that an address is made of are executed for all
threads of a block, as `simt` executes them, and each warp's addresses are sorted into banks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mlir import ir
from numpy.typing import NDArray
from simt import Code, Launch, _Block
from simt_async import Machine
from simt_memory import SHARED_BASE, Memory, Segment

from tilec.ops.notes import Place, place_of

Array = NDArray[Any]

LANES, BANKS, WORD_BYTES, WIDEST = 32, 32, 4, 16
_COPY = "nvvm.cp.async.shared.global"
_POINTER_AT = {"llvm.load": 0, "llvm.store": 1, "nvvm.ldmatrix": 0, "nvvm.stmatrix": 0, _COPY: 0}


class NotFromThreadError(Exception):
    """A value depends on more than the thread's number."""


@dataclass(frozen=True)
class Wavefronts:
    """Units: of one warp: instructions, wavefronts, and how many groups of lanes take part."""

    instructions: int = 0
    wavefronts: int = 0
    groups: int = 0

    def __add__(self, other: Wavefronts) -> Wavefronts:
        return Wavefronts(
            self.instructions + other.instructions,
            self.wavefronts + other.wavefronts,
            self.groups + other.groups,
        )


def wavefronts_by_place(function: ir.OpView, threads: int) -> dict[Place, Wavefronts]:
    """Those of all accesses to shared memory of a lowered function, by their place in the source.

    Of an access, the warp counts that takes longest.
    """
    executed = _Executed(function, threads)
    total: dict[Place, Wavefronts] = {}
    for op, taking_part in _accesses(function.regions[0].blocks[0], ()):
        place = place_of(op.location)
        total[place] = total.get(place, Wavefronts()) + _count(op, taking_part, executed)
    return total


def _accesses(
    block: ir.Block, conditions: tuple[ir.Value, ...]
) -> Iterator[tuple[ir.OpView, tuple[ir.Value, ...]]]:
    for op in block.operations:
        pointer_at = _POINTER_AT.get(op.operation.name)
        if pointer_at is not None and str(op.operands[pointer_at].type) == "!llvm.ptr<3>":
            yield op, conditions
        for region in op.regions:
            inner = conditions
            if op.operation.name == "scf.if" and "warp.uniform" not in op.attributes:
                inner = (*conditions, op.operands[0])
            for body in region.blocks:
                yield from _accesses(body, inner)


class _Executed:
    """Values that depend on nothing but the thread's number, executed when they are asked for."""

    def __init__(self, function: ir.OpView, threads: int) -> None:
        self.threads = threads
        self.code = Code(function)
        launch = Launch(threads, (0, 0, 0), (1, 1, 1), 0, 10**9)
        memory = Memory()
        nothing = Segment("", SHARED_BASE, np.zeros(0, np.uint8), is_read_only=False)
        machine = Machine(threads, memory, nothing, launch.tensor_maps, launch.timing)
        self.block = _Block(self.code, launch, memory, machine, np.arange(threads))

    def of(self, value: ir.Value) -> Array:
        number = self.code.number(value)
        if number not in self.block.values:
            op = value.owner
            if isinstance(op, ir.Block) and str(value.type) == "index" and value.arg_number:
                # A slot of a ring: the first, for all are alike.
                return np.zeros(self.threads, np.int64)
            if op.name == "llvm.load" and op.operands[0].owner.name == "llvm.alloca":
                # A cursor, which tells a slot of a ring: the first.
                return np.zeros(self.threads, np.int64)
            if isinstance(op, ir.Block) or len(op.regions) or op.name in _POINTER_AT:
                raise NotFromThreadError(str(value))
            step = self.code._step(op.opview)
            operands = [self.of(operand) for operand in op.operands]
            everyone = np.ones(self.threads, bool)
            results = step.execute(self.block, op.opview, operands, everyone)
            self.block.values.update(zip(step.results, results, strict=True))
        return self.block.values[number]


def _count(op: ir.OpView, conditions: tuple[ir.Value, ...], executed: _Executed) -> Wavefronts:
    name = op.operation.name
    addresses = executed.of(op.operands[_POINTER_AT[name]])
    active = np.ones(executed.threads, bool)
    for condition in conditions:
        active &= executed.of(condition).astype(bool)
    size = WIDEST
    if name == _COPY:
        size = ir.IntegerAttr(op.attributes["size"]).value
    elif name.startswith("nvvm"):
        matrices = len(op.operands) - 1
        if name == "nvvm.ldmatrix":
            matrices = ir.IntegerAttr(op.attributes["num"]).value
        active &= np.arange(executed.threads) % LANES < 8 * matrices
    else:
        size = _bytes_of(op.results[0].type if name == "llvm.load" else op.operands[0].type)
    by_warp = zip(addresses.reshape(-1, LANES), active.reshape(-1, LANES), strict=True)
    counts = [_of_warp(where, who, size) for where, who in by_warp]
    return max(counts, key=lambda count: count.wavefronts)


def _of_warp(addresses: Array, active: Array, size: int) -> Wavefronts:
    total = Wavefronts()
    width = min(size, WIDEST)
    at_once = LANES // max(1, width // WORD_BYTES)
    for begin in range(0, size, width):
        total += Wavefronts(instructions=1)
        for first in range(0, LANES, at_once):
            served = slice(first, first + at_once)
            starts = addresses[served][active[served]] + begin
            words = np.unique((starts[:, None] + np.arange(width)) // WORD_BYTES)
            if len(words):
                busiest = np.bincount(words % BANKS).max()
                total += Wavefronts(wavefronts=int(busiest), groups=1)
    return total


def _bytes_of(kind: ir.Type) -> int:
    if isinstance(kind, ir.VectorType):
        return kind.shape[0] * _bytes_of(kind.element_type)
    return int(kind.width) // 8
