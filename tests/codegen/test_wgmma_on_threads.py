"""Products by `wgmma` executed with NumPy: every sum is that of the product, exactly."""

from __future__ import annotations

import numpy as np
import pytest
from simt import Code, Launch, run_block
from simt_memory import Memory, Segment
from simt_wgmma import FACTORS, TOTALS, Array
from wgmma_loops import SLOTS, Loop, built

from tilec.layout import Layout
from tilec.layout.wgmma import SharedOperand

TRIPS = 3
OUT, IMAGE, SOURCE = 1 << 40, 1 << 41, 1 << 42
_PTX = {"f8e4m3": "e4m3", "f8e5m2": "e5m2", "i8": "s8", "i32": "s32"}

LOOPS = [
    Loop(),
    Loop(columns=48, rows=128, depth=32),
    Loop(columns=144, warpgroups=2, depth=16),
    Loop(columns=320, depth=32),
    Loop(columns=64, warpgroups=2, rows=128, a_along=False),
    Loop(columns=96, b_along=False, depth=32),
    Loop(columns=192, a_along=False, b_along=False, warpgroups=2, depth=16),
    Loop(columns=16, adds=False, waits=True),
    Loop("f16", "f16", columns=96),
    Loop("f16", "f16", columns=64, rows=128, adds=False, waits=True, warpgroups=2),
    Loop("f16", "f32", columns=32, depth=128),
    Loop("tf32", columns=32, depth=32),
    Loop("f8e4m3", columns=32, depth=128),
    Loop("f8e5m2", "f16", columns=32),
    Loop("i8", "i32", columns=48),
    Loop("u8", "i32", columns=32, warpgroups=2),
    Loop(a_held=True, columns=48),
    Loop(a_held=True, waits=True, columns=32, rows=128, warpgroups=2),
    Loop(a_held=True, waits=True, columns=32, b_along=False, depth=96),
    Loop("f16", "f16", a_held=True, waits=True, columns=32, adds=False),
    Loop("tf32", a_held=True, waits=True, columns=32, depth=32),
    Loop("f8e4m3", a_held=True, waits=True, columns=32),
    Loop("i8", "i32", a_held=True, waits=True, columns=32),
    Loop("u8", "i32", a_held=True, columns=32),
]


@pytest.mark.parametrize("loop", LOOPS, ids=str)
def test_sums_are_those_of_the_product(loop: Loop) -> None:
    dot, rng = loop.dot, np.random.default_rng(1)
    element = np.dtype(FACTORS[_PTX.get(loop.element, loop.element)])
    total = np.dtype(TOTALS[_PTX.get(loop.total, loop.total)])
    rows = loop.rows * loop.warpgroups
    # Numbers whose sums are exact in every type.
    low, high = (0, 3) if loop.element == "u8" else (-1, 2)
    b = rng.integers(low, high, (SLOTS, loop.columns, loop.depth))
    first = rng.integers(low, high, (TRIPS if loop.a_held else SLOTS, rows, loop.depth))
    image = b"".join(
        placed(dot.b, b[slot].astype(element))
        + (placed(dot.a, first[slot].astype(element)) if not loop.a_held else b"")
        for slot in range(SLOTS)
    )
    source = b"".join(read_for(dot.a, a, element) for a in first) if loop.a_held else b"\0" * 4

    out = np.zeros(loop.threads * dot.sums.registers, total)
    run(loop, out, image, source)

    sums = np.zeros((rows, loop.columns), np.int64)
    for trip in range(TRIPS):
        slot = trip % SLOTS
        a = first[(trip if loop.waits else 0) if loop.a_held else slot]
        sums = sums * loop.adds + a @ b[slot].T
    row, column = np.moveaxis(dot.sums.table().reshape(loop.threads, -1, 2), -1, 0)
    np.testing.assert_array_equal(out.reshape(loop.threads, -1), sums[row, column])


def placed(operand: SharedOperand | Layout, values: Array) -> bytes:
    """A factor [across, k] as it lies in shared memory."""
    assert isinstance(operand, SharedOperand)
    tile = operand.tile
    content = np.zeros(tile.bytes // values.dtype.itemsize, values.dtype)
    ordered = values if operand.k_major else values.T
    for place in np.ndindex(tile.shape):
        content[tile.offset_of(place) // values.dtype.itemsize] = ordered[place]
    return content.tobytes()


def read_for(layout: SharedOperand | Layout, values: Array, element: np.dtype[object]) -> bytes:
    """What threads read to hold a factor [rows, k] in registers: f32, or the bits as i32; one is
    added to it."""
    assert isinstance(layout, Layout)
    row, k = np.moveaxis(layout.table(), -1, 0)
    held = values[row, k]
    if element.itemsize == 1:
        bits = held.astype(element).view(np.uint8).astype(np.int32)
        return (bits - 1).tobytes()
    return (held - 1).astype(np.float32).tobytes()


def run(loop: Loop, out: Array, image: bytes, source: bytes) -> None:
    memory = Memory()
    content = out.view(np.uint8)
    memory.add(Segment("out", OUT, content, is_read_only=False))
    for name, address, data in (("image", IMAGE, image), ("source", SOURCE, source)):
        memory.add(Segment(name, address, np.frombuffer(data, np.uint8), is_read_only=True))
    launch = Launch(loop.threads, (0, 0, 0), (1, 1, 1), SLOTS * loop.slot_bytes)
    with built(loop) as (_, function):
        run_block(Code(function), [OUT, IMAGE, SOURCE, TRIPS], launch, memory)
