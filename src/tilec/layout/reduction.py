"""Reductions: which registers, lanes and warps fold together along axes of a tile.

Algorithm:
1. In a thread: registers that agree off the axes fold into one.
2. Between lanes: butterflies. A lane combination z takes part when it leads to a lane with the same
   elements off the axes (perhaps in other registers, at a constant XOR) that holds others along
   them; combinations that only lead to copies are left out, so that nothing counts twice.
3. Between warps: each warp writes its partial results to shared memory, and after a barrier every
   thread combines all partials of each of its results (`exchange`).
Every layout is handled, also lanes that move along several axes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilec.layout.exchange import Exchange, exchange_of
from tilec.layout.layout import LANE_BITS, Layout, LayoutError
from tilec.layout.linear_map import LinearMap, Reduced, combine
from tilec.layout.views import View, projected


@dataclass(frozen=True)
class Butterfly:
    """For all r at once: `v[r] = f(v[r], shuffle_xor(v[r ^ register_xor], lane_mask))`.

    Source:   PTX ISA, "shfl.sync", mode bfly
    """

    lane_mask: int
    register_xor: int


@dataclass(frozen=True)
class ReductionPlan:
    """How a tile of `source` is reduced along `axes`: folds, butterflies in order, the exchange.

    `folds[r]` are the registers of `source` that are combined into register r of `result`, in the
    order in which thread 0 has them along the axes. `result` has extent 1 along the axes, and
    every thread that held an element has the results it took part in.
    """

    source: Layout
    axes: tuple[int, ...]
    result: Layout
    folds: tuple[tuple[int, ...], ...]
    butterflies: tuple[Butterfly, ...]

    def exchange(self, element_bytes: int) -> Exchange | None:
        """What ends the reduction of elements of this size; None if no warp needs another."""
        return exchange_of(self.source, self.axes, element_bytes)


@lru_cache(maxsize=256)
def reduction_plan(layout: Layout, *axes: int) -> ReductionPlan:
    """The plan that reduces a tile along one or more axes.

    Assumes:  the combination is associative and commutative
    Raises:   LayoutError if an axis is not there
    """
    if not axes or len(set(axes)) < len(axes):
        raise LayoutError(f"expected distinct axes, got {axes}")
    view = projected(layout, *axes)
    butterflies = _butterflies(layout, view.layout)
    return ReductionPlan(layout, axes, view.layout, _folds(layout, view), butterflies)


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
