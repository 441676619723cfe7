"""Launches that start before the one before is done (docs/abi.md, "Early starts"), many times.

What would go wrong only at times is a long launch and short ones after it: they read what it writes
at its very end, and write what it read there.
"""

from __future__ import annotations

import numpy as np
import pytest
from cubins import FOLDER
from host_driver import DRY_RUN

import tilec.runtime as rt

BLOCK = 1024
REPEATS, TURNS = (1, 3) if DRY_RUN else (40, 2001)


def step(x):
    blocks = x.reshape(-1, BLOCK)
    return (blocks * np.int32(3) + np.roll(blocks, -1, 0)).ravel()


def slow(x, turns):
    blocks = x.reshape(-1, BLOCK)
    total = blocks.copy()
    for k in range(turns):
        total = total * np.int32(3) + np.roll(blocks, -(k % len(blocks)), 0)
    return total.ravel()


def runs(call, arguments):
    """Runs on one stream, and graphs that are replayed."""
    if DRY_RUN:
        call(*arguments())
        yield
        return
    for _ in range(REPEATS):
        given = arguments()
        call.launch(*given, streams=1).wait()
        yield
        given = arguments()
        with call.graph(*given) as graph:
            graph.replay().wait()
        yield


@pytest.mark.parametrize("blocks", [3, 132, 700])
def test_short_launches_after_a_long_one(load, blocks):
    rng = np.random.default_rng(blocks)
    lowest, highest = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    first, few = (rng.integers(lowest, highest, n * BLOCK, dtype=np.int32) for n in (blocks, 5))
    turns = TURNS // max(1, blocks // 16) + 1
    with np.errstate(over="ignore"):
        y = slow(first, turns)
        wanted = {"y": y, "x": step(y), "z": step(step(y)), "few": step(few)}
    others = rt.to_device(few)
    given = {}

    def arguments():
        given.update(
            z=rt.to_device(np.zeros_like(first)),
            y=rt.to_device(np.zeros_like(first)),
            x=rt.to_device(first),
            few=rt.to_device(np.zeros_like(few)),
        )
        return *given.values(), others, turns

    for _ in runs(load(f"{FOLDER}/early").hurried, arguments):
        for name, values in wanted.items():
            np.testing.assert_array_equal(given[name].numpy(), values, f"`{name}`")


def test_products_of_what_few_blocks_write_late(load, zones):
    """Sums of whole numbers are exact; what is copied at a wrong time are other numbers."""
    rng = np.random.default_rng(1)
    m, n, k = 70, 130, 512
    a, b, w = (rng.integers(-2, 3, shape).astype(np.float64) for shape in ((m, k), (m, k), (n, k)))
    a_there, b_there, w_there = (zones.input(values, "bf16") for values in (a, b, w))
    given = {}

    def arguments():
        given.update(y=zones.output((m, n), "f32"), z=zones.output((m, n), "f32"))
        return *given.values(), a_there, b_there, w_there, TURNS

    for _ in runs(load(f"{FOLDER}/early").products, arguments):
        np.testing.assert_array_equal(zones.values(given["y"]), a @ w.T)
        np.testing.assert_array_equal(zones.values(given["z"]), b @ w.T)
