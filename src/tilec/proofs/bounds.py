"""Bounds: which accesses are inside their tensors, always, under a condition, or never.

For each access and each axis of it, two questions: can some of its elements be below the view, and
can some be past its end? What cannot be is *proved*. Where it can be, the arguments for which it
cannot are asked for (`tilec.integers.conditions`): if there is such a condition on extents and
scalars, a launch decides, and the access is *launch-checked*; what remains is *in-kernel*. The code
masks both, and no launcher asks for the condition: it is for reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tilec.integers.budget import Phase
from tilec.integers.conditions import Condition, never_holds
from tilec.integers.formula import FALSE, Formula
from tilec.integers.polynomial import Unknown, variable
from tilec.integers.satisfiable import can_hold
from tilec.integers.solver import Undecided
from tilec.proofs.access import Access
from tilec.proofs.arithmetic import UNDECIDED
from tilec.proofs.knowledge import Fact
from tilec.proofs.reasoning import Reasoning


class Verdict(Enum):
    """What is known of an access as a whole."""

    PROVED = "proved"
    LAUNCH_CHECKED = "launch-checked"
    IN_KERNEL = "in-kernel"
    UNCHECKED = "unchecked"  # vouched for in `unsafe`


@dataclass(frozen=True)
class Side:
    """One end of an axis: whether all is inside, always or where a condition holds.

    `is_given_up`: whether it was not decided within the budget.
    """

    is_inside: bool
    condition: Condition | None = None
    is_given_up: bool = False

    @property
    def is_inside_where(self) -> bool:
        """Whether all is inside where the condition, if there is one, holds."""
        return self.is_inside or self.condition is not None


@dataclass(frozen=True)
class Bounds:
    """What is known of an access; `sides` are the lower and upper end of each axis of the view, and
    `begins` whether its first element is inside along it."""

    access: Access
    sides: tuple[tuple[Side, Side], ...]
    begins: tuple[bool, ...] = ()

    @property
    def verdict(self) -> Verdict:
        if self.access.is_unchecked:
            return Verdict.UNCHECKED
        sides = [side for pair in self.sides for side in pair]
        if not sides and self.access.starts is None:
            return Verdict.IN_KERNEL
        if all(side.is_inside for side in sides):
            return Verdict.PROVED
        if all(side.is_inside_where for side in sides):
            return Verdict.LAUNCH_CHECKED
        return Verdict.IN_KERNEL

    @property
    def is_given_up(self) -> bool:
        """Whether it is left to the kernel because it was not decided within the budget."""
        return self.verdict is Verdict.IN_KERNEL and any(
            side.is_given_up and not side.is_inside_where for pair in self.sides for side in pair
        )

    @property
    def conditions(self) -> tuple[Condition, ...]:
        found = (side.condition for pair in self.sides for side in pair)
        return tuple(dict.fromkeys(c for c in found if c is not None))


def find_bounds(reasoning: Reasoning) -> list[Bounds]:
    """What is known of each access of a kernel, in program order."""
    with reasoning.budget.phase(Phase.BOUNDS):
        return [_bounds(reasoning, access) for access in reasoning.accesses]


def _bounds(reasoning: Reasoning, access: Access) -> Bounds:
    if access.starts is None:
        return Bounds(access, ())
    sides, begins = [], []
    for axis in access.view.axes:
        low = _side(reasoning, access, access.is_below(axis))
        high = _side(reasoning, access, access.is_above(axis))
        sides.append((low, high))
        begins.append(low.is_inside and (high.is_inside or _begins(reasoning, access, axis)))
    return Bounds(access, tuple(sides), tuple(begins))


def _begins(reasoning: Reasoning, access: Access, axis: int) -> bool:
    return not reasoning.knowledge.possible([access.begins_above(axis)], access.path)


def _side(reasoning: Reasoning, access: Access, outside: Formula) -> Side:
    knowledge = reasoning.knowledge
    if not knowledge.possible([outside], access.path):
        return Side(True)
    is_given_up = knowledge.is_given_up
    beyond = _beyond(reasoning, outside)
    if beyond:
        # The range of a type says nothing that anybody would want to rely on.
        return Side(False, is_given_up=is_given_up or any(u.name == UNDECIDED for u in beyond))
    try:
        return Side(False, _condition(reasoning, access, outside), is_given_up)
    except Undecided:
        return Side(False, is_given_up=True)


def _condition(reasoning: Reasoning, access: Access, outside: Formula) -> Condition | None:
    """When nothing is outside, in terms of what launchers know. Raises Undecided."""
    knowledge = reasoning.knowledge
    known = [*reasoning.dims.values(), *reasoning.scalars.values()]
    bad = knowledge.context([outside], access.path, wide=True)
    stated = [f.formula for f in knowledge.facts if f.why == "requires"]
    where = [f for f in stated if f.unknowns <= set(known)]
    element = [
        variable(knowledge.unknown(f"element {axis}", (0, 2**40), uniform=False))
        for axis in range(access.rank)
    ]
    wanted = knowledge.context(access.touches(element), access.path, wide=True)
    return never_holds(bad, where, [*wanted, *where], known)


def _beyond(reasoning: Reasoning, formula: Formula) -> set[Unknown]:
    """What a formula is about that is not followed."""
    meant = reasoning.knowledge.context([formula], (), wide=False, only=True)
    return {u for f in meant for u in f.unknowns if u.opaque}


def is_never_inside(reasoning: Reasoning, access: Access) -> bool:
    """Whether an access can execute and none of its elements is ever inside."""
    with reasoning.budget.phase(Phase.OUTSIDE):
        return _is_never_inside(reasoning, access)


def _is_never_inside(reasoning: Reasoning, access: Access) -> bool:
    knowledge = reasoning.knowledge
    element = [
        variable(knowledge.unknown(f"element {axis}", (0, 2**40), uniform=False))
        for axis in range(access.rank)
    ]
    if knowledge.possible(access.touches(element), access.path):
        return False
    executed = [fact.formula for fact in access.path]
    ids = reasoning.ids.values()
    try:
        return can_hold(knowledge.context(executed, (), wide=True, about=ids))
    except Undecided:
        return False


def needed_facts(reasoning: Reasoning, access: Access) -> tuple[Fact, ...]:
    """Facts without any one of which a proved access would not be.

    Where the budget ends before that is known, some may not be needed.
    """
    ends = [f(axis) for axis in access.view.axes for f in (access.is_below, access.is_above)]
    outside = [formula for formula in ends if formula != FALSE]
    # Facts that share nothing with what is asked cannot be needed.
    kept = _near(reasoning, outside, [*access.path, *reasoning.knowledge.facts])
    with reasoning.budget.phase(Phase.FACTS):
        for fact in list(kept):
            fewer = [other for other in kept if other is not fact]
            if all(_is_impossible(reasoning, formula, fewer) for formula in outside):
                kept = fewer
    return tuple(kept)


def _near(reasoning: Reasoning, formulas: Sequence[Formula], facts: Sequence[Fact]) -> list[Fact]:
    """The facts that share unknowns with formulas, also by way of others."""
    meant = reasoning.knowledge.context(formulas, (), wide=False, only=True)
    known = frozenset[Unknown]().union(*(f.unknowns for f in meant))
    kept: set[Fact] = set()
    while True:
        near = {f for f in facts if f not in kept and not known.isdisjoint(f.formula.unknowns)}
        if not near:
            return [fact for fact in facts if fact in kept]
        kept |= near
        meant = reasoning.knowledge.context([f.formula for f in near], (), wide=False, only=True)
        known = known.union(*(f.unknowns for f in meant))


def _is_impossible(reasoning: Reasoning, formula: Formula, facts: Sequence[Fact]) -> bool:
    knowledge = reasoning.knowledge
    try:
        found = knowledge.context([formula], facts, wide=True, only=True)
        return not can_hold(found)
    except Undecided:
        return False
