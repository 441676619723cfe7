"""Layouts of matrix products by `mma`: accumulators and factors.

An `mma` instruction multiplies a fragment of (m, k) by one of (k, n), held by the lanes of a warp.
Repeated over registers and warps, fragments are layouts of whole tiles. Along an axis on which a
tile is shorter than a fragment, lanes hold copies of rows or columns, which then are those of the
product too; registers that would be outside do not exist.

Shapes:   tiles are (…, M, K), (…, K, N) and (…, M, N), at most one batch axis
Source:   PTX ISA, "Matrix multiply-accumulate operation using mma instruction", the "Matrix
          fragments" of each shape
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilec.layout.facts import unique_holders
from tilec.layout.layout import Basis, Layout
from tilec.layout.over_warps import Places, doubling, independent, warp_bits

Pair = tuple[int, int]


@dataclass(frozen=True)
class Fragment:
    """Where a warp keeps a matrix: the (row, column) that each bit of register and lane adds."""

    register: tuple[Pair, ...]
    lane: tuple[Pair, ...]


@dataclass(frozen=True)
class Mma:
    """The shape of an instruction; `word` elements of a factor are neighbours in one register.

    Of factors, neighbours along k share a word, four lanes share a row of words, eight lanes go
    down the rows (columns of the second). Accumulators have two neighbours along n in two
    registers.
    """

    m: int
    n: int
    k: int
    word: int

    @property
    def a(self) -> Fragment:
        down = ((1, 0), (2, 0), (4, 0))
        register = [(0, k) for k in doubling(1, self.word)]
        register += [(8, 0)] if self.m == 16 else []
        register += [(0, k) for k in doubling(4 * self.word, self.k)]
        return Fragment(tuple(register), ((0, self.word), (0, 2 * self.word), *down))

    @property
    def b(self) -> Fragment:
        across = ((0, 1), (0, 2), (0, 4))
        inside, beyond = doubling(1, self.word), doubling(4 * self.word, self.k)
        register = tuple((k, 0) for k in (*inside, *beyond))
        return Fragment(register, ((self.word, 0), (2 * self.word, 0), *across))

    @property
    def c(self) -> Fragment:
        register = ((0, 1), (8, 0)) if self.m == 16 else ((0, 1),)
        return Fragment(register, ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)))


# ---- accumulators --------------------------------------------------------------------------------


def accumulator_layout(
    shape: Sequence[int], warps: int, mma: Mma, *, rows_first: bool = False
) -> Layout:
    """The layout of a product that `mma` computes.

    Warps are spread over the batch, then over rows and columns such that each reads as little of
    the factors as possible; `rows_first` spreads them over rows while there are any, so that each
    warp has whole rows. Warps that are left hold copies.
    """
    nowhere = (0,) * len(shape)
    places = Places(shape)
    register = [places.at(*p) for p in mma.c.register if _in(p, shape)]
    lane = [places.at(*p) if _in(p, shape) else nowhere for p in mma.c.lane]
    over = warp_bits(shape, warps, mma.m, mma.n, rows_first)
    left = [v for v in places.beyond(mma.m, mma.n) if v not in over]
    return Layout(
        tuple(shape),
        (*register, *left),
        tuple(lane),
        (*over, *[nowhere] * (warps.bit_length() - 1 - len(over))),
    )


def is_accumulator_layout(layout: Layout, mma: Mma) -> bool:
    """Whether `mma` can add to a tile that threads hold so."""
    wanted = accumulator_layout(layout.shape, 1, mma)
    own = [p for p in mma.c.register if _in(p, layout.shape)]
    whole = layout.register[: len(own)] == wanted.register[: len(own)]
    others = (*layout.register[len(own) :], *layout.warp)
    return (
        whole
        and layout.lane == wanted.lane
        and unique_holders(layout).register == 0
        and all(v[-2] % mma.m == 0 and v[-1] % mma.n == 0 for v in others)
    )


# ---- factors -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KOrder:
    """Which k of a tile stands at each k of the instructions: the same in both factors, so that the
    product is the same.

    As instructions have it, a thread holds a word of every four. By `neighbours` it holds so many
    elements side by side, the next thread as many more, four threads in all; then that again.
    """

    word: int
    inner: int  # the largest power of two in the extent of k
    neighbours: int | None = None

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Where each bit of k goes."""
        if self.neighbours is None:
            return tuple(doubling(1, self.inner))
        width = self.neighbours
        inside, across = doubling(1, self.word), [width, 2 * width]
        rest = [*doubling(self.word, width), *doubling(4 * width, self.inner)]
        return (*inside, *across, *rest)

    def of(self, k: int) -> int:
        """Where an element along k is that instructions take as this one."""
        repeat, bits = divmod(k, self.inner)
        moved = sum(place for bit, place in enumerate(self.places) if bits >> bit & 1)
        return repeat * self.inner + moved


def k_order(mma: Mma, depth: int, neighbours: int | None = None) -> KOrder:
    """The order along k of tiles of a depth: that of instructions, or with so many neighbours."""
    inner = depth & -depth
    if neighbours is None or inner < mma.k:
        return KOrder(mma.word, inner)
    return KOrder(mma.word, inner, max(mma.word, min(neighbours, inner // 4)))


def operand_layouts(
    accumulator: Layout, mma: Mma, depth: int, order: KOrder | None = None
) -> tuple[Layout, Layout]:
    """The layouts of the factors whose product `mma` adds to a tile of this layout.

    Units:    `depth` is the extent of k
    Assumes:  `is_accumulator_layout`
    """
    *batch, rows, columns = accumulator.shape
    zeros = (0,) * len(batch)
    order = order or k_order(mma, depth)
    ks = doubling(mma.k, order.inner)

    def left(place: Pair) -> Basis:
        row, k = place
        return (*zeros, row, order.of(k))

    def right(place: Pair) -> Basis:
        k, column = place
        return (*zeros, order.of(k), column)

    a_shape, b_shape = (*batch, rows, depth), (*batch, depth, columns)
    a = Layout(
        a_shape,
        independent(
            *([[left((0, k)) for k in _in_registers(mma, order)]] if order.neighbours else []),
            [left(p) for p in mma.a.register if _in(p, a_shape)],
            [(*v[:-1], 0) for v in accumulator.register if v[-2] % mma.m == 0],
            [left((0, k)) for k in ks],
        ),
        tuple(left(_clipped(p, a_shape)) for p in mma.a.lane),
        tuple((*v[:-1], 0) for v in accumulator.warp),
    )
    b = Layout(
        b_shape,
        independent(
            *([[right((k, 0)) for k in _in_registers(mma, order)]] if order.neighbours else []),
            [right(p) for p in mma.b.register if _in(p, b_shape)],
            [(*v[:-2], 0, v[-1]) for v in accumulator.register if v[-1] % mma.n == 0],
            [right((k, 0)) for k in ks],
        ),
        tuple(right(_clipped(p, b_shape)) for p in mma.b.lane),
        tuple((*v[:-2], 0, v[-1]) for v in accumulator.warp),
    )
    return a, b


def _in_registers(mma: Mma, order: KOrder) -> list[int]:
    """The bits of k, as instructions have them, that one thread holds: neighbours first."""
    return [*doubling(1, mma.word), *doubling(4 * mma.word, order.inner)]


def _in(place: Pair, shape: Sequence[int]) -> bool:
    return all(p < (extent & -extent) for p, extent in zip(place, shape[-2:], strict=True))


def _clipped(place: Pair, shape: Sequence[int]) -> Pair:
    return place if _in(place, shape) else (0, 0)
