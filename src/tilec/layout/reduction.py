"""Reductions: which registers, lanes and warps fold together along axes of a tile.

Algorithm:
1. In a thread: registers that agree off the axes fold into one.
2. Between lanes: butterflies. A lane combination z takes part when it leads to a lane with the same
   elements off the axes (perhaps in other registers, at a constant XOR) that holds others along
   them; combinations that only lead to copies are left out, so that nothing counts twice.
3. Between warps: each warp writes its partial results to shared memory, and after a barrier every
   thread combines all partials of each of its results.
Every layout is handled, also lanes that move along several axes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tilec.layout.layout import LANE_BITS, Layout, LayoutError
from tilec.layout.linear_map import LinearMap, Reduced, combine, intersection
from tilec.layout.shared_access import ThreadAccesses, thread_accesses
from tilec.layout.views import View, projected


@dataclass(frozen=True)
class Butterfly:
    """For all r at once: `v[r] = f(v[r], shuffle_xor(v[r ^ register_xor], lane_mask))`.

    Source:   PTX ISA, "shfl.sync", mode bfly
    """

    lane_mask: int
    register_xor: int


@dataclass(frozen=True)
class Exchange:
    """Partial results of warps through shared memory: write, barrier, read, combine.

    The buffer has `elements` elements. Each write and each read names one register. A read's
    offset is that of the first of `partials` neighbouring elements, all of which are combined into
    that register; it is a multiple of `partials`, a power of two. If the buffer is used again, a
    barrier must come before.
    """

    elements: int
    partials: int
    write: ThreadAccesses
    read: ThreadAccesses


@dataclass(frozen=True)
class ReductionPlan:
    """How a tile of `source` is reduced: folds, then butterflies in order, then the exchange.

    `folds[r]` are the registers of `source` that are combined into register r of `result`, in the
    order in which thread 0 has them along the axes. `result` has extent 1 along the axes, and
    every thread that held an element has the results it took part in.
    """

    source: Layout
    result: Layout
    folds: tuple[tuple[int, ...], ...]
    butterflies: tuple[Butterfly, ...]
    exchange: Exchange | None


@lru_cache(maxsize=256)
def reduction_plan(layout: Layout, *axes: int) -> ReductionPlan:
    """The plan that reduces a tile along one or more axes.

    Assumes:  the combination is associative and commutative
    Raises:   LayoutError if an axis is not there
    """
    if not axes or len(set(axes)) < len(axes):
        raise LayoutError(f"expected distinct axes, got {axes}")
    view = projected(layout, *axes)
    return ReductionPlan(
        layout, view.layout, _folds(layout, view), _butterflies(layout, view.layout),
        _exchange(layout, view, axes),
    )  # fmt: skip


def _folds(layout: Layout, view: View) -> tuple[tuple[int, ...], ...]:
    folds: list[list[tuple[int, int]]] = [[] for _ in range(view.layout.registers)]
    seen: set[int] = set()
    for register, element in enumerate(layout.elements()[0, 0].tolist()):
        if element in seen:  # a copy in the same thread
            continue
        seen.add(element)
        new = view.to_new[register]
        assert new is not None, "a projection keeps every register"
        folds[new].append((element, register))
    return tuple(tuple(register for _, register in sorted(fold)) for fold in folds)


def _butterflies(layout: Layout, result: Layout) -> tuple[Butterfly, ...]:
    own = [result.flat(vector) for vector in result.register]
    lanes = [result.flat(vector) for vector in result.lane]
    same = _parts(own, lanes)
    copies = _parts(
        [layout.flat(vector) for vector in layout.register],
        [layout.flat(vector) for vector in layout.lane],
    )
    reach = Reduced(own)
    butterflies = []
    used = Reduced(copies)
    for mask in _simple_first(same):
        if used.add(mask):
            register_xor = reach.solve(combine(lanes, mask))
            assert register_xor is not None, "the partner has the same results"
            butterflies.append(Butterfly(mask, register_xor))
    return tuple(butterflies)


def _parts(inner: Sequence[int], outer: Sequence[int]) -> list[int]:
    """Those combinations of `outer` that give a vector in the span of `inner`: a spanning set."""
    bits = max(map(int.bit_length, (*inner, *outer)), default=0)
    return [v >> len(inner) for v in LinearMap((*inner, *outer), bits).kernel if v >> len(inner)]


def _simple_first(masks: Sequence[int]) -> list[int]:
    """The masks of one bit in their span, then the masks themselves."""
    span = Reduced(masks)
    single = [1 << bit for bit in range(LANE_BITS) if 1 << bit in span]
    return [*single, *masks]


def _exchange(layout: Layout, view: View, axes: Sequence[int]) -> Exchange | None:
    slots = _Slots(layout, view.layout, axes)
    if slots.partial_bits == 0:
        return None
    result = view.layout
    lane = tuple(slots.of(layout.flat(vector)) for vector in layout.lane)
    warp = tuple(slots.of(layout.flat(vector)) for vector in layout.warp)
    old = [
        combine([layout.flat(v) for v in layout.register], view.to_old[1 << bit])
        for bit in range(len(result.register))
    ]
    register = [slots.of(vector) for vector in old]
    free = _free((*register, *lane, *warp)) >> len(register)
    write = thread_accesses(
        lane, warp, slots.places(result, register),
        lane_mask=free & ((1 << LANE_BITS) - 1), warp_mask=free >> LANE_BITS,
    )  # fmt: skip
    read = thread_accesses(
        tuple(slots.first(result.flat(vector)) for vector in result.lane),
        tuple(slots.first(result.flat(vector)) for vector in result.warp),
        slots.places(result, [slots.first(result.flat(v)) for v in result.register]),
    )
    elements = prod(result.shape) << slots.partial_bits
    return Exchange(elements, 1 << slots.partial_bits, write, read)


def _free(columns: Sequence[int]) -> int:
    """The mask of the columns that are combinations of earlier ones."""
    pivots = Reduced(columns).pivots
    return sum(1 << index for index in range(len(columns)) if index not in pivots)


class _Slots:
    """The numbering of partial results: all partials of one result side by side."""

    def __init__(self, layout: Layout, result: Layout, axes: Sequence[int]) -> None:
        along: list[int] = []
        across: list[int] = []
        columns = []
        bit = 1
        for axis in reversed(range(layout.rank)):
            for coordinate in range(layout.block[axis].bit_length() - 1):
                (along if axis in axes else across).append(bit)
                unit = [1 << coordinate if a == axis else 0 for a in range(layout.rank)]
                columns.append(0 if axis in axes else result.flat(unit))
                bit <<= 1
        bits = len(columns)
        # What one warp reaches along the axes without leaving a result is folded already.
        within = intersection([layout.flat(v) for v in (*layout.register, *layout.lane)], along)
        self._partial = Reduced((*within, *across)).quotient(bits)
        self._result = LinearMap(tuple(columns), bits)

    @property
    def partial_bits(self) -> int:
        return self._partial.rows

    def of(self, element: int) -> int:
        """The slot of the partial result that an element of the block goes into."""
        return self.first(self._result(element)) | self._partial(element)

    def first(self, result: int) -> int:
        """The slot of the first partial of a result, given its number in the result's block."""
        return result << self.partial_bits

    def places(
        self, result: Layout, register: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Each register of the result with its constants, from those of its bits."""
        block = self.first(prod(result.block))
        for repeat in range(prod(result.repeats)):
            for bits, constant in enumerate(
                LinearMap(tuple(register), block.bit_length()).images()
            ):
                number = repeat << len(register) | bits
                yield (number,), int(constant), repeat * block
