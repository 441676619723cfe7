"""Which layout each tile of a program gets: constraints, costs, and the search for the cheapest.

Where a value is wanted in another layout than it has, it is converted, once for each.

Algorithm:
1. Candidates for each value and group (`candidates.py`).
2. Start from the first candidates, which are those of the accesses to memory before it.
3. Change all groups that may have one layout at once, since tiles that meet each other in a loop
   gain nothing by changing one by one; then one group at a time to whichever candidate makes the
   whole program cheapest, until nothing changes (iterated conditional modes). What a change costs
   follows from what it changes (`running_cost.py`). The same, starting from the last candidates,
   and the cheaper of the two: what a program ends in may matter more than what it starts from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from tilec.layout.candidates import Candidates
from tilec.layout.layout import Layout
from tilec.layout.nodes import Places, Problem
from tilec.layout.running_cost import Keys, RunningCost

_SWEEPS = 3


@dataclass(frozen=True)
class Solution:
    """The layouts of each fixed node, and what each open one would like best, by node number.

    `keys` are those of the groups, `cost` that of the whole program. `visits` counts the parts of
    costs that were computed until it was found.
    """

    places: dict[int, Places]
    liked: dict[int, Layout]
    keys: dict[int, Layout]
    cost: float
    visits: int


def infer_layouts(problem: Problem) -> Solution:
    """The cheapest layouts that were found."""
    candidates = Candidates(problem)
    first = _improved(candidates, {g: found[0] for g, found in candidates.of_group.items()})
    if all(len(found) == 1 for found in candidates.of_group.values()):
        return first
    last = _improved(candidates, {g: found[-1] for g, found in candidates.of_group.items()})
    return min(first, last, key=lambda solution: solution.cost)


def cost_of(problem: Problem, keys: dict[int, Layout]) -> float:
    """What a program costs in which the groups have these layouts."""
    return RunningCost(Candidates(problem), keys).total


def _improved(candidates: Candidates, keys: Keys) -> Solution:
    """What changing one group at a time leads to, from these keys."""
    cost = RunningCost(candidates, keys)
    undecided = {g: found for g, found in candidates.of_group.items() if len(found) > 1}
    for _ in range(_SWEEPS):
        has_changed = False
        for together in _joint(undecided):
            has_changed |= _improve_together(cost, together)
        for group, layouts in undecided.items():
            has_changed |= _improve(cost, group, layouts)
        if not has_changed:
            break
    places = {
        number: candidates.placed(number, cost.keys[node.group])
        for number, node in enumerate(candidates.problem.nodes)
        if not node.is_open
    }
    return Solution(places, cost.liked, dict(cost.keys), cost.total, cost.visits)


def _improve(cost: RunningCost, group: int, layouts: list[Layout]) -> bool:
    """Give a group the first of its cheapest layouts, if any is cheaper than what it has."""
    best, more, least = cost.keys[group], 0.0, 0.0
    before = best
    for layout in layouts:
        if layout == cost.keys[group]:
            continue
        more += cost.change(group, layout)
        if more < least:
            best, least = layout, more
    if cost.keys[group] != best:
        cost.change(group, best)
    return best != before


def _joint(undecided: Mapping[int, Sequence[Layout]]) -> Iterator[Keys]:
    """For each layout that several of these groups may have: all of them with it."""
    may_have: dict[Layout, Keys] = {}
    for group, layouts in undecided.items():
        for layout in layouts:
            may_have.setdefault(layout, {})[group] = layout
    return (together for together in may_have.values() if len(together) > 1)


def _improve_together(cost: RunningCost, together: Keys) -> bool:
    """Give several groups these layouts, if that is cheaper than what they have."""
    before = {group: cost.keys[group] for group in together}
    if before == together:
        return False
    more = fsum(cost.change(group, layout) for group, layout in together.items())
    if more < 0:
        return True
    for group, layout in before.items():
        cost.change(group, layout)
    return False
