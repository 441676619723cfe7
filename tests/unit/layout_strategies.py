"""Random layouts for property tests: all ranks, odd repeats, copies, skewed basis vectors."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from tilec.layout.layout import LANE_BITS, Layout, from_flat
from tilec.layout.linear_map import Reduced

EXTENTS = (1, 2, 4, 8, 16, 32, 48, 80, 96)
ELEMENTS = 1024


@st.composite
def shapes(draw: st.DrawFn, min_rank: int = 0, max_rank: int = 5) -> tuple[int, ...]:
    shape: list[int] = []
    for _ in range(draw(st.integers(min_rank, max_rank))):
        fitting = [n for n in EXTENTS if n * prod(shape) <= ELEMENTS]
        shape.append(draw(st.sampled_from(fitting)))
    return tuple(shape)


@st.composite
def layouts(
    draw: st.DrawFn, shape: tuple[int, ...] | None = None, warp_bits: int | None = None
) -> Layout:
    """Any layout of `shape`; drawn places are a random basis of the block, then copies."""
    if shape is None:
        shape = draw(shapes())
    if warp_bits is None:
        warp_bits = draw(st.integers(0, 3))
    bits = prod(n & -n for n in shape).bit_length() - 1
    basis = [1 << bit for bit in draw(st.permutations(range(bits)))]
    if draw(st.booleans()):
        basis = _skewed(draw, basis)
    places: list[list[int]] = [[], [], []]
    room = [bits, LANE_BITS, warp_bits]
    for vector in basis:
        kind = draw(st.sampled_from([k for k in range(3) if len(places[k]) < room[k]]))
        places[kind].append(vector)
    room[0] = len(places[0]) + draw(st.sampled_from([0, 0, 0, 1]))
    spread = draw(st.booleans())  # copies that are combinations of other vectors, or plain zeros
    for kind, vectors in enumerate(places):
        while len(vectors) < room[kind]:
            copy = draw(st.integers(0, (1 << bits) - 1)) if spread else 0
            vectors.insert(draw(st.integers(0, len(vectors))), copy)
    return from_flat(shape, *places)


def _skewed(draw: st.DrawFn, basis: list[int]) -> list[int]:
    """Another basis of the same space."""
    drawn = [draw(st.integers(0, (1 << len(basis)) - 1)) for _ in basis]
    span = Reduced()
    return [vector for vector in (*drawn, *basis) if span.add(vector)]
