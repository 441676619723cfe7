"""What plans cost, counted: instructions of a thread, and wavefronts of a warp on shared memory.

Counted from the plan as its code is written, so that it can be told without a GPU. All warps that
take part have the same number of wavefronts: what their addresses differ by is added to, or XORed
with, all of a warp alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from math import prod

from tilec.layout.banks import bank_conflicts, least_wavefronts
from tilec.layout.conversion import ConversionPlan
from tilec.layout.facts import unique_holders
from tilec.layout.flip import Flip, Part
from tilec.layout.layout import LANES, Layout
from tilec.layout.matrix_access import ROW_BYTES, MatrixAccesses
from tilec.layout.reduction import ReductionPlan
from tilec.layout.scan import BetweenLanes, BetweenWarps, InThread, ScanPlan
from tilec.layout.shared_access import ThreadAccesses
from tilec.layout.shared_memory import VECTOR_BYTES, SharedMemory
from tilec.layout.shuffle import Shuffle

_WORD_BYTES = 4


@dataclass(frozen=True)
class Traffic:
    """What moving values between registers and threads takes.

    Units:    instructions of a thread; wavefronts of a warp, `least_wavefronts` if no two lanes
              met in a bank; `shared_bytes` of the buffers together
    """

    folds: int = 0  # combinations of two registers
    shuffles: int = 0
    selects: int = 0
    stores: int = 0
    loads: int = 0
    shared_bytes: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.folds + other.folds,
            self.shuffles + other.shuffles,
            self.selects + other.selects,
            self.stores + other.stores,
            self.loads + other.loads,
            self.shared_bytes + other.shared_bytes,
            self.wavefronts + other.wavefronts,
            self.least_wavefronts + other.least_wavefronts,
        )


NONE = Traffic()


@lru_cache(maxsize=256)
def of_conversion(plan: ConversionPlan, element_bytes: int) -> Traffic:
    match plan:
        case Shuffle():
            shuffles = plan.instructions * _words(element_bytes)
            return Traffic(shuffles=shuffles, selects=plan.selects)
        case SharedMemory():
            stored = _stored(plan.write, element_bytes)
            loaded = _loaded(plan.read, element_bytes)
            return replace(stored + loaded, shared_bytes=plan.elements * element_bytes)
        case _:
            return NONE


@lru_cache(maxsize=256)
def of_reduction(plan: ReductionPlan, element_bytes: tuple[int, ...]) -> Traffic:
    """`element_bytes` are those of the values that are reduced together."""
    registers = len(plan.folds)
    words = sum(map(_words, element_bytes))
    folds = sum(len(fold) - 1 for fold in plan.folds)
    total = Traffic(folds=folds, shuffles=len(plan.butterflies) * registers * words)
    exchanges = [(plan.exchange(size), size) for size in element_bytes]
    return total + _sum(
        [_exchanged(e.write, e.read, e.elements, size) for e, size in exchanges if e is not None]
    )


@lru_cache(maxsize=256)
def of_scan(plan: ScanPlan, element_bytes: tuple[int, ...]) -> Traffic:
    """`element_bytes` are those of the values that are scanned together."""
    words = sum(map(_words, element_bytes))
    total, blocks = NONE, plan.layout.registers
    for number, level in enumerate(plan.levels):
        match level:
            case InThread(runs):
                total += Traffic(folds=sum(len(run) - 1 for run in runs))
                blocks = len(runs)
            case BetweenLanes():
                each = len(level.steps) + level.spreads + (number > 0)
                total += Traffic(shuffles=each * blocks * words)
            case BetweenWarps():
                total += _sum(
                    [
                        _exchanged(level.write, level.read, level.elements, size)
                        for size in element_bytes
                    ]
                )
    return total


def of_flip_between_warps(parts: Sequence[Part], element_bytes: int) -> Traffic:
    """Of `Flip.exchange`: the parts use one buffer."""
    moved = [_stored(p.write, element_bytes) + _loaded(p.read, element_bytes) for p in parts]
    return replace(_sum(moved), shared_bytes=parts[0].elements * element_bytes)


def of_flip_between_lanes(plan: Flip, element_bytes: int) -> Traffic:
    """Narrow registers go several at once where they fill words."""
    registers, each = len(plan.registers), max(1, _WORD_BYTES // element_bytes)
    if registers % each:
        each = 1
    return Traffic(shuffles=registers // each * _words(element_bytes))


@lru_cache(maxsize=256)
def of_rows(source: Layout, target: Layout, element_bytes: int) -> Traffic:
    """Through memory in row-major order, an element an access."""
    holders = unique_holders(source)
    taking_part = [not lane & holders.lane for lane in range(LANES)]
    stored = _by_element(source, element_bytes, taking_part)
    loaded = _by_element(target, element_bytes, [True] * LANES)
    stores = Traffic(stores=source.registers, shared_bytes=prod(source.shape) * element_bytes)
    return _sum([stores, Traffic(loads=target.registers), stored, loaded])


def of_extract(layout: Layout, element_bytes: int) -> Traffic:
    """One thread writes an element that all read."""
    return Traffic(
        stores=layout.registers, loads=1, shared_bytes=element_bytes, wavefronts=2,
        least_wavefronts=2,
    )  # fmt: skip


def of_reads(reads: ThreadAccesses, element_bytes: int) -> Traffic:
    """Of what lies in a ring of slots already."""
    return _loaded(reads, element_bytes)


def of_writes(writes: ThreadAccesses, element_bytes: int) -> Traffic:
    """Of what others read: a slot of a ring, a box that hardware copies out."""
    return _stored(writes, element_bytes)


def _words(element_bytes: int) -> int:
    return max(1, element_bytes // _WORD_BYTES)


def _sum(parts: Sequence[Traffic]) -> Traffic:
    return reduce(Traffic.__add__, parts, NONE)


def _exchanged(
    write: ThreadAccesses, read: ThreadAccesses, elements: int, element_bytes: int
) -> Traffic:
    """Of one value: each has a buffer of its own."""
    moved = _stored(write, element_bytes) + _loaded(read, element_bytes)
    return replace(moved, shared_bytes=elements * element_bytes)


def _stored(accesses: ThreadAccesses, element_bytes: int) -> Traffic:
    count, wavefronts, least = _accessed(accesses, element_bytes)
    return Traffic(stores=count, wavefronts=wavefronts, least_wavefronts=least)


def _loaded(accesses: ThreadAccesses, element_bytes: int) -> Traffic:
    count, wavefronts, least = _accessed(accesses, element_bytes)
    return Traffic(loads=count, wavefronts=wavefronts, least_wavefronts=least)


def _accessed(accesses: ThreadAccesses, element_bytes: int) -> tuple[int, int, int]:
    """Instructions of a thread, wavefronts of a warp, and the least number of those.

    By linearity each access takes what the first takes. Beyond 16 bytes an access is several
    instructions.
    """
    count, first = len(accesses.accesses), accesses.accesses[0]
    size = element_bytes * len(first.registers)
    if isinstance(accesses, MatrixAccesses):
        size = ROW_BYTES
    starts = [
        accesses.offset(first, lane, 0) * element_bytes if accesses.takes_part(lane, 0) else None
        for lane in range(LANES)
    ]
    # Accesses begin at multiples of their size: the instructions of one differ by what its lanes
    # have in common, as accesses do.
    width = min(size, VECTOR_BYTES)
    instructions = count * (size // width)
    return (
        instructions,
        instructions * bank_conflicts(starts, width),
        instructions * least_wavefronts(starts, width),
    )


def _by_element(layout: Layout, element_bytes: int, taking_part: Sequence[bool]) -> Traffic:
    wavefronts = least = 0
    for register in layout.elements()[0].T.tolist():
        addresses = [
            place * element_bytes if takes_part else None
            for place, takes_part in zip(register, taking_part, strict=True)
        ]
        wavefronts += bank_conflicts(addresses, element_bytes)
        least += least_wavefronts(addresses, element_bytes)
    return Traffic(wavefronts=wavefronts, least_wavefronts=least)
