"""Products of matrices where tiles and copies end: against float64, between guards.

Each of `SIDES` is M, N and K, in three families of combinations; beside them extents whose rows are
whole groups of 16 bytes, as hardware copies them. Tensors lie at any address, with gaps between
rows. k takes no turn, one, and more than two times as many as there are slots; some launches have
more tiles than a GPU has multiprocessors.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from host_driver import DRY_RUN
from placement import PLACEMENTS
from test_kernels import fault

from tests.kernels.cases import problem_at, symbols

SIDES = (0, 1, 7, 17, 63, 65, 129, 511, 4097)
WHOLE = (8, 16, 64, 72, 136, 520, 4104)
KERNELS = ("matmul", "matmul_nt", "matmul_tn")
NAMES = {symbol for _, symbol in symbols()}
# Of two that differ in the type alone, one: the other has its references to compute, too.
INSTANCES = [
    (file, symbol)
    for file, symbol in symbols()
    if file in KERNELS
    and "f32" not in symbol
    and not ("__f16_" in symbol and symbol.replace("__f16_", "__bf16_") in NAMES)
]
BLOCK_K, MOST_SLOTS = 64, 8
MOST_RESULTS = 2**21


def combined(sides, *steps):
    """Each side along each axis, without results that are large in both; the number of sides has no
    factor in common with the steps."""
    count = len(sides)
    places = [(i, 2 * i + first, 4 * i + first + 1) for first in steps for i in range(count)]
    found = [tuple(sides[at % count] for at in place) for place in places]
    return [(m, n, k) for m, n, k in found if m * n <= MOST_RESULTS]


EDGES = (
    *combined(SIDES, 1, 4, 6),
    (4097, 65, 129),
    (129, 4097, 63),
    (17, 63, 4097),
    (511, 511, 511),
)
COPIED = (*combined(WHOLE, 1, 3), (4097, 72, 136), (129, 4104, 64), (65, 520, 4104))
TURNS = tuple(
    (130, 264, BLOCK_K * turns - less) for turns in range(1, 2 * MOST_SLOTS + 2) for less in (0, 8)
)
MANY_TILES = ((2000, 2056, 200), (4097, 1288, 64), (300, 20000, 72))


@cache
def problem(symbol, extents):
    return problem_at(symbol, dict(zip("MNK", extents, strict=True)))


def expect(load, file, symbol, shapes, placements):
    kernel, faults = load(file)[symbol], []
    for extents in shapes:
        if DRY_RUN and np.prod([max(n, 1) for n in extents]) > 2**22:
            continue
        for placement in placements:
            found = fault(kernel, problem(symbol, extents), placement)
            if found:
                faults.append(found)
    problem.cache_clear()
    assert not faults, f"{len(faults)} launches are wrong:\n" + "\n".join(faults[:12])


@pytest.mark.parametrize(("file", "symbol"), INSTANCES)
def test_extents_around_tiles(load, file, symbol):
    expect(load, file, symbol, EDGES, PLACEMENTS[::2])


@pytest.mark.parametrize(("file", "symbol"), INSTANCES)
def test_extents_that_hardware_copies(load, file, symbol):
    expect(load, file, symbol, COPIED, PLACEMENTS)


@pytest.mark.parametrize(("file", "symbol"), INSTANCES)
def test_turns_against_slots(load, file, symbol):
    expect(load, file, symbol, TURNS, PLACEMENTS[:1])


@pytest.mark.parametrize(("file", "symbol"), INSTANCES)
def test_more_tiles_than_multiprocessors(load, file, symbol):
    expect(load, file, symbol, MANY_TILES, (PLACEMENTS[0], PLACEMENTS[5]))


def test_each_side_is_along_each_axis():
    for axis in range(3):
        assert {extents[axis] for extents in EDGES} == set(SIDES)
        assert {extents[axis] for extents in COPIED} >= set(WHOLE)
