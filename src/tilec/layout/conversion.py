"""Conversion between any two layouts of a tile: one algorithm, three kinds of plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilec.layout.costs import BARRIER
from tilec.layout.facts import register_permutation
from tilec.layout.layout import Layout, LayoutError
from tilec.layout.shared_memory import SharedMemory, shared_memory_plan
from tilec.layout.shuffle import Shuffle, shuffle_plans


@dataclass(frozen=True)
class RegisterPermutation:
    """No data leaves its thread: target register r is source register `registers[r]`."""

    registers: tuple[int, ...]


ConversionPlan = RegisterPermutation | Shuffle | SharedMemory

# In wavefronts, which take a cycle each: a shuffle occupies the same unit as an access to shared
# memory; a select runs on wider units.
SELECT_COST = 0.5


@lru_cache(maxsize=256)
def plan_conversion(
    source: Layout,
    target: Layout,
    element_bytes: int = 4,
    *,
    has_stmatrix: bool = False,
    has_ldmatrix: bool = True,
) -> ConversionPlan:
    """The cheapest plan that brings a tile from `source` to `target`.

    `has_stmatrix`: whether the machine has that instruction (sm_90), and the plan may use it.

    Assumes:  `element_bytes` is 1, 2, 4 or 8
    Raises:   LayoutError if shapes or numbers of warps differ
    """
    if source.shape != target.shape:
        raise LayoutError(f"expected equal shapes, got {source.shape} and {target.shape}")
    if source.warps != target.warps:
        raise LayoutError(f"expected equal warps, got {source.warps} and {target.warps}")
    registers = register_permutation(source, target)
    if registers is not None:
        return RegisterPermutation(registers)
    shared = shared_memory_plan(
        source, target, element_bytes, has_stmatrix=has_stmatrix, has_ldmatrix=has_ldmatrix
    )
    shuffles = list(shuffle_plans(source, target))
    plans: list[Shuffle | SharedMemory] = [*shuffles, shared]
    return min(plans, key=lambda plan: _cost(plan, element_bytes))


def _cost(plan: Shuffle | SharedMemory, element_bytes: int) -> float:
    """About how many cycles of the memory unit of a multiprocessor one warp keeps busy."""
    if isinstance(plan, SharedMemory):
        return plan.wavefronts + BARRIER
    words = max(1, element_bytes // 4)
    return words * (plan.instructions + SELECT_COST * plan.selects)
