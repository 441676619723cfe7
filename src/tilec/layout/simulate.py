"""What the plans mean: each one executed with NumPy, thread by thread.

The code generator's instructions must do the same. Data is an array [warps, lanes, registers].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tilec.layout.boxes import Boxes
from tilec.layout.conversion import ConversionPlan, RegisterPermutation
from tilec.layout.exchange import Exchange
from tilec.layout.layout import LANES
from tilec.layout.linear_map import LinearMap
from tilec.layout.matrix_access import MatrixAccesses
from tilec.layout.reduction import ReductionPlan
from tilec.layout.scan import BetweenLanes, BetweenWarps, InThread, Level, ScanPlan
from tilec.layout.shared_access import Access, ThreadAccesses
from tilec.layout.shared_memory import SharedMemory
from tilec.layout.shuffle import Shuffle, Swap

Data = npt.NDArray[Any]
Combine = Callable[[Data, Data], Data]


def simulate_conversion(plan: ConversionPlan, source: Data) -> Data:
    """The registers of the target after the conversion, [warps, lanes, target registers]."""
    match plan:
        case RegisterPermutation():
            return source[..., list(plan.registers)]
        case Shuffle():
            return _shuffled(plan, source)
        case SharedMemory():
            return _through_memory(plan, source)


def _shuffled(plan: Shuffle, source: Data) -> Data:
    gathered = _swapped(plan.gather, source)
    warps = np.arange(len(source))[:, None]
    start = _thread_numbers(plan.lane, plan.warp)
    values = [gathered[warps, start ^ step.lane_xor, step.register] for step in plan.rounds]
    placed = np.stack([values[index] for index in plan.placement], axis=-1)
    return _swapped(plan.scatter, placed)


def _swapped(swaps: tuple[Swap, ...], data: Data) -> Data:
    registers = np.arange(data.shape[-1])
    for swap in swaps:
        other = data[..., registers ^ swap.register_xor]
        ones = [
            (lane & swap.lane_mask).bit_count() + (warp & swap.warp_mask).bit_count()
            for warp, lane in np.ndindex(*data.shape[:2])
        ]
        holds = np.array(ones).reshape(data.shape[:2]) % 2 == 1
        data = np.where(holds[..., None], other, data)
    return data


def _through_memory(plan: SharedMemory, source: Data) -> Data:
    buffer, writers = _written(plan.write, plan.elements, source)
    count = sum(len(access.registers) for access in plan.read.accesses)
    result: Data = np.zeros((*source.shape[:2], count), dtype=source.dtype)
    for register, where in _places(plan.read):
        result[..., register] = buffer[where]
        writer = writers[where]
        own = writer == np.arange(len(source))[:, None]
        assert (own if plan.warp_local else writer >= 0).all(), "read before it was written"
    return result


def simulate_boxes(boxes: Boxes, source: Data) -> tuple[list[Data], Data]:
    """What is in the buffer for each box, and the registers after reading each by rows.

    Shapes:   `source` and what is read are [warps, lanes, registers]
    """
    elements = prod(boxes.box.shape) * len(source)
    found, read = [], np.full((*source.shape[:2], boxes.by_rows.registers), -1, source.dtype)
    for box in boxes.boxes:
        buffer, _ = _written(box.writes, elements, source)
        found.append(buffer)
        for register, where in _places(box.reads):
            read[..., register] = buffer[where]
    return found, read


def _written(write: ThreadAccesses, elements: int, data: Data) -> tuple[Data, Data]:
    """The buffer after all writes, and the warp that wrote each element (-1: none)."""
    buffer = np.zeros(elements, dtype=data.dtype)
    writers = np.full(elements, -1)
    active = _active(write, *data.shape[:2])
    warps = np.broadcast_to(np.arange(len(data))[:, None], data.shape[:2])
    for register, places in _places(write):
        where = places[active]
        assert len(np.unique(where)) == len(where), "two threads write one element"
        assert (writers[where] < 0).all(), "an element is written twice"
        buffer[where], writers[where] = data[..., register][active], warps[active]
    return buffer, writers


def _active(write: ThreadAccesses, warps: int, lanes: int) -> Data:
    """Which threads give what they hold, [warps, lanes]."""
    # All lanes give their part of a matrix, whether they name a row or not.
    is_matrix = isinstance(write, MatrixAccesses)
    found = [
        write.takes_part(0 if is_matrix else lane, warp) for warp, lane in np.ndindex(warps, lanes)
    ]
    return np.array(found).reshape(warps, lanes)


def _places(side: ThreadAccesses) -> Iterator[tuple[int, Data]]:
    """Each register with its place in the buffer for every thread, [warps, lanes]."""
    for access, offsets in _offsets(side):
        if isinstance(side, MatrixAccesses):
            yield from _places_in_matrices(side, access, offsets)
            continue
        assert (offsets % len(access.registers) == 0).all(), "a vector access is not aligned"
        for place, register in enumerate(access.registers):
            yield register, offsets + place


def _places_in_matrices(
    side: MatrixAccesses, access: Access, offsets: Data
) -> Iterator[tuple[int, Data]]:
    """The same, from where the rows begin that lanes name."""
    lanes = np.arange(LANES)
    word = len(access.registers) // side.matrices
    row_elements = 4 * word
    for matrix in range(side.matrices):
        starts = offsets[:, matrix * 8 : matrix * 8 + 8]
        assert (starts % row_elements == 0).all(), "a row is not aligned"
        for element in range(word):
            if side.transposed:
                row, column = lanes % 4 * 2 + element, lanes // 4
            else:
                row, column = lanes // 4, lanes % 4 * word + element
            yield access.registers[matrix * word + element], starts[:, row] + column


def _offsets(side: ThreadAccesses) -> Iterator[tuple[Access, Data]]:
    """Each access with the offset of every thread, [warps, lanes]."""
    numbers = _thread_numbers(side.lane, side.warp)
    for access in side.accesses:
        yield access, (numbers ^ access.xor) + access.add


def _thread_numbers(lane: tuple[int, ...], warp: tuple[int, ...]) -> Data:
    """The XOR of the constants of each thread's lane and warp bits, [warps, lanes]."""
    bits = max(map(int.bit_length, (*lane, *warp)), default=0)
    lanes, warps = LinearMap(lane, bits).images(), LinearMap(warp, bits).images()
    return warps[:, None] ^ lanes[None, :]


def simulate_reduction(
    plan: ReductionPlan, source: Data, combine: Combine, element_bytes: int = 4
) -> Data:
    """The registers of `plan.result` after the reduction, [warps, lanes, result registers].

    `element_bytes`: as if elements had this size.
    """
    folded = [reduce(combine, (source[..., r] for r in fold)) for fold in plan.folds]
    value = np.stack(folded, axis=-1)
    lanes, registers = np.arange(LANES), np.arange(value.shape[-1])
    for step in plan.butterflies:
        offered = value[..., registers ^ step.register_xor]
        value = combine(value, offered[:, lanes ^ step.lane_mask])
    exchange = plan.exchange(element_bytes)
    return value if exchange is None else _exchanged(exchange, value, combine)


def _exchanged(exchange: Exchange, value: Data, combine: Combine) -> Data:
    buffer, writers = _written(exchange.write, exchange.elements, value)
    found: list[list[Data]] = [[] for _ in range(value.shape[-1])]
    for register, where in _places(exchange.read):
        assert (writers[where] >= 0).all(), "read before it was written"
        found[register].append(buffer[where])
    return np.stack([reduce(combine, partials) for partials in found], axis=-1)


def simulate_scan(plan: ScanPlan, source: Data, starts: Data, combine: Combine) -> Data:
    """The registers after the scan, [warps, lanes, registers].

    Shapes:   `starts` is as `source`: what the scan of each register's row starts from
    """
    levels = []
    blocks = source
    for level in plan.levels:
        levels.append(_level(level, blocks, combine))
        blocks = levels[-1].totals
    before = starts[..., list(plan.tops)]
    for number in reversed(range(len(levels))):
        scanned = levels[number]
        whole = before[..., list(scanned.parents)]
        if number == 0:
            return combine(whole, scanned.inclusive)
        before = np.where(scanned.has_before, combine(whole, scanned.before), whole)
    return combine(before[..., : source.shape[-1]], source)


@dataclass(frozen=True)
class _Scanned:
    """A level: within it, each block with all before it, and all before it, if there are any."""

    inclusive: Data
    before: Data
    has_before: Data
    parents: tuple[int, ...]
    totals: Data


def _level(level: Level, blocks: Data, combine: Combine) -> _Scanned:
    match level:
        case InThread():
            return _in_thread(level, blocks, combine)
        case BetweenLanes():
            return _between_lanes(level, blocks, combine)
        case BetweenWarps():
            return _between_warps(level, blocks, combine)


def _in_thread(level: InThread, blocks: Data, combine: Combine) -> _Scanned:
    inclusive, before = blocks.copy(), blocks.copy()
    has_before = np.zeros(blocks.shape[-1], dtype=bool)
    parents = [0] * blocks.shape[-1]
    for parent, run in enumerate(level.runs):
        for earlier, block in zip((None, *run), run, strict=False):
            parents[block] = parent
            if earlier is not None:
                has_before[block] = True
                before[..., block] = inclusive[..., earlier]
                inclusive[..., block] = combine(before[..., block], blocks[..., block])
    totals = inclusive[..., [run[-1] for run in level.runs]]
    return _Scanned(inclusive, before, has_before, tuple(parents), totals)


def _between_lanes(level: BetweenLanes, blocks: Data, combine: Combine) -> _Scanned:
    value = blocks
    for step in level.steps:
        offered = value[:, [step.source(lane) for lane in range(LANES)]]
        takes = np.array([step.takes(lane) for lane in range(LANES)])[:, None]
        value = np.where(takes, combine(offered, value), value)
    first = level.flip & level.mask
    has_before = np.array([lane & level.mask != first for lane in range(LANES)])
    sources = [level.before(lane) if has_before[lane] else lane for lane in range(LANES)]
    totals = value
    if level.spreads:
        totals = value[:, [level.last(lane) for lane in range(LANES)]]
    parents = tuple(range(blocks.shape[-1]))
    return _Scanned(value, value[:, sources], has_before[:, None], parents, totals)


def _between_warps(level: BetweenWarps, blocks: Data, combine: Combine) -> _Scanned:
    buffer, writers = _written(level.write, level.elements, blocks)
    warps = len(blocks)
    position = LinearMap(level.position, len(level.position)).images()[:, None]
    before, totals = blocks.copy(), blocks.copy()
    for access, offsets in _offsets(level.read):
        block = access.registers[0]
        assert access.registers == (block,) * level.partials
        assert (offsets % level.partials == 0).all(), "a vector access is not aligned"
        total = None
        for partial in level.order:
            slots = offsets + partial
            assert (writers[slots] >= 0).all(), "read before it was written"
            if total is None:
                total = buffer[slots]
                continue
            before[..., block] = np.where(position == partial, total, before[..., block])
            total = combine(total, buffer[slots])
        totals[..., block] = total
    has_before = np.broadcast_to(position != level.order[0], (warps, LANES))[..., None]
    parents = tuple(range(blocks.shape[-1]))
    inclusive = np.where(has_before, combine(before, blocks), blocks)
    return _Scanned(inclusive, before, has_before, parents, totals)
