"""Which registers meet in the instructions of a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.layout.layout import Layout
from tilec.layout.mma import KOrder, Mma, Pair, k_order


@dataclass(frozen=True)
class Step:
    """One instruction: words of the factors and registers of accumulators, in its order.

    None stands for what is outside of the tile: zero in a factor, unused in a product. A word of a
    factor is `elements_per_word` neighbouring registers.
    """

    a: tuple[int | None, ...]
    b: tuple[int | None, ...]
    c: tuple[int | None, ...]


def elements_per_word(mma: Mma, depth: int) -> int:
    """How many elements of a word there are: fewer than `mma.word` if k is shorter."""
    return min(mma.word, depth & -depth)


def lanes_beyond(mma: Mma, depth: int) -> int:
    """The bits of lanes that hold a k which the tile does not have: their factors are zero."""
    return sum(1 << bit for bit, (_, k) in enumerate(mma.a.lane) if k >= depth)


def mma_steps(a: Layout, b: Layout, c: Layout, mma: Mma, order: KOrder | None = None) -> list[Step]:
    """The instructions of a product, along k first outermost."""
    depth = a.shape[-1]
    word = elements_per_word(mma, depth)
    order = order or k_order(mma, depth)
    skip = mma.word.bit_length() - 1
    sides = [
        (_registers(a), _combined(mma.a.register[skip:])),
        (_registers(b), _combined(mma.b.register[skip:])),
        (_registers(c), _combined(mma.c.register)),
    ]
    origins = [x for x in sides[2][0] if x[-2] % mma.m == 0 and x[-1] % mma.n == 0]
    steps = []
    for k in range(0, depth, mma.k):
        for *batch, row, column in origins:
            (left, across), (right, down), (sums, around) = sides
            found = [
                tuple(left.get((*batch, row + x, order.of(k + y))) for x, y in across),
                tuple(right.get((*batch, order.of(k + x), column + y)) for x, y in down),
                tuple(sums.get((*batch, row + x, column + y)) for x, y in around),
            ]
            words = [tuple(None if r is None else r // word for r in f) for f in found[:2]]
            steps.append(Step(words[0], words[1], found[2]))
    return steps


def _registers(layout: Layout) -> dict[tuple[int, ...], int]:
    """The register of thread 0 that has each coordinate that it has."""
    rows = layout.table()[0, 0].tolist()
    return {tuple(row): register for register, row in reversed(list(enumerate(rows)))}


def _combined(vectors: Sequence[Pair]) -> list[Pair]:
    found = [(0, 0)]
    for row, column in vectors:
        found += [(r + row, c + column) for r, c in found]
    return found


@dataclass(frozen=True)
class FmaStep:
    """Registers of one multiplication and addition: c[c] += a[a] * b[b]."""

    a: int
    b: int
    c: int


def fma_steps(a: Layout, b: Layout, c: Layout) -> list[FmaStep]:
    """A product by one thread, along k outermost, in order."""
    left, right = _registers(a), _registers(b)
    steps = []
    for k in range(a.shape[-1]):
        for (*batch, row, column), register in _registers(c).items():
            places = (*batch, row, k), (*batch, k, column)
            steps.append(FmaStep(left[places[0]], right[places[1]], register))
    return steps
