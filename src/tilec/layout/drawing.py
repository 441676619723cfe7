"""A layout as text: which thread holds what.

Small tiles are drawn element by element, as `warp.lane:register`. Of larger ones the picture shows
the block that the lanes of warp 0 cover, each lane by its number, and a legend says how the whole
tile is made of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from tilec.layout.facts import contiguous_elements
from tilec.layout.layout import LANES, Basis, Layout

_LINE = 100  # columns of a drawing
_ROWS = 32
_SMALL = 256  # elements


def drawn(layout: Layout) -> Iterator[str]:
    """The lines of the drawing, the legend first."""
    yield from _legend(layout)
    if layout.rank == 0:
        return
    small = _each_element(layout)
    if small is not None:
        if layout.rank > 2:
            yield f"at {_at_start(layout)}:"
        yield from small
    else:
        yield from _lanes_of_warp_0(layout)


# ---- the legend ----------------------------------------------------------------------------------


def _legend(layout: Layout) -> Iterator[str]:
    shape = "x".join(map(str, layout.shape)) or "one element"
    yield f"{shape}: {_count(layout.warps, 'warp')} of {LANES} lanes, {_registers(layout)} each"
    for name, vectors in (
        ("registers", layout.register), ("lanes", layout.lane), ("warps", layout.warp)
    ):  # fmt: skip
        if vectors:
            yield f"  {name:<9}  {'; '.join(_runs(vectors))}"
    for axis, times in enumerate(layout.repeats):
        if times > 1:
            yield f"  all of it  {times} times along axis {axis}, each {layout.block[axis]} apart"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _registers(layout: Layout) -> str:
    return _count(layout.registers, "register")


def _runs(vectors: Sequence[Basis]) -> Iterator[str]:
    """What bits do, low ones first: those that double one step along an axis are one run."""
    start = 0
    while start < len(vectors):
        end = start + 1
        while end < len(vectors) and vectors[end] == tuple(2 * x for x in vectors[end - 1]):
            end += 1
        yield _run(vectors[start], 1 << (end - start))
        start = end


def _run(vector: Basis, count: int) -> str:
    moved = [axis for axis, step in enumerate(vector) if step]
    if not moved:
        return f"{count} copies"
    if len(moved) == 1:
        step = vector[moved[0]]
        apart = "side by side" if step == 1 else f"each {step} apart"
        return f"{count} along axis {moved[0]}, {apart}"
    steps = " and ".join(f"{vector[axis]} along axis {axis}" for axis in moved)
    return f"{count}, each {steps}"


# ---- small tiles ---------------------------------------------------------------------------------


def _each_element(layout: Layout) -> Iterator[str] | None:
    """A cell for each element, or None if there are too many."""
    rows, columns = ((1, *layout.shape))[-2:]
    if prod(layout.shape) > _SMALL or rows > _ROWS:
        return None
    places = _first_places(layout)[: rows * columns]
    cells = [_place(layout, *place) for place in places]
    if columns * (max(map(len, cells)) + 2) > _LINE:
        return None
    return _grid(np.array(cells).reshape(rows, columns).tolist())


def _first_places(layout: Layout) -> list[tuple[int, int, int]]:
    """Of each element, in row-major order, the first warp, lane and register that holds it."""
    _, first = np.unique(layout.elements().ravel(), return_index=True)
    shape = (layout.warps, LANES, layout.registers)
    warps, lanes, registers = np.unravel_index(first, shape)
    return list(zip(warps.tolist(), lanes.tolist(), registers.tolist(), strict=True))


def _place(layout: Layout, warp: int, lane: int, register: int) -> str:
    thread = f"{lane}" if layout.warps == 1 else f"{warp}.{lane}"
    return thread if layout.registers == 1 else f"{thread}:{register}"


# ---- large tiles ---------------------------------------------------------------------------------


def _lanes_of_warp_0(layout: Layout) -> Iterator[str]:
    axis, run = _run_of_neighbours(layout)
    extents = _covered(layout, axis, run)
    lane_at: dict[tuple[int, ...], int] = {}
    for lane, coordinates in reversed(list(enumerate(layout.table()[0].tolist()))):
        for held in coordinates:
            lane_at[tuple(held)] = lane
    steps = [run if a == axis else 1 for a in range(layout.rank)]
    size = [n // step for n, step in zip(extents, steps, strict=True)]
    rows, columns = ((1, *size))[-2:]
    shown_rows, shown = min(rows, _ROWS), min(columns, LANES)
    cells = []
    for row in range(shown_rows):
        line = []
        for column in range(shown):
            inner = (row, column)[-min(2, layout.rank) :]
            place = (0,) * (layout.rank - len(inner)) + inner
            held = tuple(p * step for p, step in zip(place, steps, strict=True))
            line.append(str(lane_at.get(held, "·")))
        cells.append([*line, "…"] if shown < columns else line)
    if shown_rows < rows:
        cells.append(["…", *[""] * (len(cells[0]) - 1)])
    each = f", each of {run} elements along axis {axis}" if run > 1 else ""
    yield f"lanes of warp 0 at {_at_start(layout, extents)}{each}:"
    yield from _grid(cells, " ")


def _run_of_neighbours(layout: Layout) -> tuple[int, int]:
    """The axis along which a thread holds neighbours in neighbouring registers, and how many."""
    axes = range(max(0, layout.rank - 2), layout.rank)
    counts = Counter({axis: contiguous_elements(layout, axis) for axis in reversed(axes)})
    [(axis, run)] = counts.most_common(1)
    return axis, run


def _covered(layout: Layout, axis: int, run: int) -> tuple[int, ...]:
    """The extents of the smallest block of powers of two that lanes and the run move within."""
    reach = [0] * layout.rank
    reach[axis] = run - 1
    for vector in layout.lane:
        reach = [a | b for a, b in zip(reach, vector, strict=True)]
    return tuple(1 << r.bit_length() for r in reach)


def _at_start(layout: Layout, extents: Sequence[int] = ()) -> str:
    """The part of the tile that a picture shows: of more than two axes, the first of the others."""
    outer = ["0"] * (layout.rank - 2)
    inner = (extents or layout.shape)[-2:]
    return f"[{', '.join([*outer, *(f'0..{n}' for n in inner)])}]"


def _grid(cells: Sequence[Sequence[str]], gap: str = "  ") -> Iterator[str]:
    width = max(len(cell) for row in cells for cell in row)
    for row in cells:
        yield "  " + gap.join(cell.rjust(width) for cell in row).rstrip()
