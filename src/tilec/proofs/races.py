"""Races: two programs of one launch that touch one element, one of them writing.

Algorithm, for each pair of accesses to a tensor that several programs may write (an access with
itself included), unless no launch has two programs:

1. the relation of the first, of a program p; that of the second, of a program q: the same formulas
   over other unknowns, but for those that all programs share (`Knowledge.second`);
2. p and q differ in some axis of the grid, and both touch the element e.

If that cannot hold, the pair is no race, whatever the sizes. If it can, the least numbers with
which it does are the witness. Where opaque unknowns take part, or the solver gives up, nobody
knows.

Accesses that differ by constants alone are asked about together (`clusters.py`): many stores in a
row take as many questions as they have different forms, unless some of them race.

Parts need no question: each belongs to one program. Atomic accesses do not race with each other,
and an atomic tensor has no others. What stands in `unsafe` is vouched for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from tilec.integers.budget import SHARE, Phase
from tilec.integers.formula import Formula, either, equal, negated
from tilec.integers.polynomial import Unknown, variable
from tilec.integers.satisfiable import can_hold
from tilec.integers.solver import Undecided
from tilec.proofs.access import Access
from tilec.proofs.clusters import Cluster, clusters, split
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.witness import Witness, box_of, least_values

# The part of the steps that are left which a first look at all pairs may take, and at least at one.
# The facts near to a pair mostly say no at once, or need those that are farther.
_QUICK = 0.5
_QUICK_OF_ONE = 0.03
_PART_OF_NEAR = 0.25
# The part that pairs may take which may meet by that; the rest is for witnesses.
_THOROUGH = 0.9


@dataclass(frozen=True)
class Race:
    """Two accesses that may meet; `first` is the earlier of them, as the kernel executes.

    `witness` has the two programs, in the order of the accesses. Without one nobody knows whether
    they meet, and `beyond` are the unknowns that are not followed.
    """

    first: Access
    second: Access
    witness: Witness | None
    beyond: tuple[Unknown, ...] = ()

    @property
    def tensor(self) -> str:
        return self.first.view.tensor

    @property
    def is_given_up(self) -> bool:
        """Whether nobody knows because the question cost too much."""
        return self.witness is None and not self.beyond

    @property
    def fault(self) -> Access:
        return at_fault(self.first, self.second)

    @property
    def other(self) -> Access:
        """The access that the one at fault meets; itself, if it meets itself."""
        return self.second if self.fault is self.first else self.first


def find_races(reasoning: Reasoning) -> Iterator[Race]:
    """Pairs of accesses of a kernel that may race: one for each access at fault."""
    shared: dict[str, list[Access]] = {}
    for access in reasoning.accesses:
        if access.view.own == "mut" and not access.view.ids and not access.is_unsafe:
            shared.setdefault(access.view.tensor, []).append(access)
    written = [accesses for accesses in shared.values() if any(a.writes for a in accesses)]
    if not written or not _are_several(reasoning):
        return
    for accesses in written:
        yield from _of_tensor(reasoning, accesses)


def _of_tensor(reasoning: Reasoning, accesses: Sequence[Access]) -> Iterator[Race]:
    refused: set[Access] = set()
    pairs = _meeting_pairs(reasoning, accesses)
    for place, (first, second) in enumerate(pairs):
        if at_fault(first, second) in refused:
            continue
        # What is left is for all pairs that are left.
        found = _race(reasoning, first, second, len(pairs) - place)
        if found is not None:
            refused.add(found.fault)
            yield found


def _meeting_pairs(reasoning: Reasoning, accesses: Sequence[Access]) -> list[tuple[Access, Access]]:
    """Pairs of which one writes and that may meet, in program order, by a first quick look."""
    kept: set[tuple[int, int]] = set()
    places = {access: place for place, access in enumerate(accesses)}
    pairs = combinations_with_replacement(clusters(accesses), 2)
    waiting = [(one, other) for one, other in pairs if one.writes or other.writes]
    while waiting:
        one, other = waiting.pop()
        part = max(_QUICK_OF_ONE, _QUICK / (len(waiting) + 1))
        if not _may_meet(reasoning, one, other, part):
            continue
        if one.is_single and other.is_single:
            first, second = sorted((places[one.members[0]], places[other.members[0]]))
            kept.add((first, second))
        else:
            parts = split(one, other)
            waiting += [(a, b) for a, b in parts if a.writes or b.writes]
    return [(accesses[first], accesses[second]) for first, second in sorted(kept)]


def _may_meet(reasoning: Reasoning, one: Cluster, other: Cluster, part: float) -> bool:
    ids = list(reasoning.ids.values())
    first, second = one.access(reasoning.knowledge), other.access(reasoning.knowledge)
    return all(
        _can_hold(reasoning, _meeting(reasoning, first, second, ids, wide=wide), steps)
        for wide, steps in ((False, part * _PART_OF_NEAR), (True, part))
    )


def _are_several(reasoning: Reasoning) -> bool:
    """Whether some launch may have two programs."""
    ids = list(reasoning.ids.values())
    knowledge = reasoning.knowledge
    one = knowledge.context([], (), wide=True, about=ids)
    twins = knowledge.twins(ids)
    differ = either(*(negated(equal(variable(u), variable(twins[u]))) for u in ids))
    return _can_hold(reasoning, [*one, *knowledge.second(one), differ])


def at_fault(first: Access, second: Access) -> Access:
    """Of a read and a write the read, of two writes the later one in the source."""
    reads = [access for access in (first, second) if not access.writes]
    return reads[0] if reads else max(first, second, key=lambda access: _place(access))


def _place(access: Access) -> tuple[int, int]:
    location = access.op.location
    return (location.start_line, location.start_col) if location.is_a_file() else (0, 0)


def _race(reasoning: Reasoning, first: Access, second: Access, left: int) -> Race | None:
    ids = list(reasoning.ids.values())
    formulas = _meeting(reasoning, first, second, ids, wide=True)
    if not _can_hold(reasoning, formulas, _THOROUGH / left):
        return None
    beyond = tuple(sorted({u for f in formulas for u in f.unknowns if u.opaque}))
    if beyond:
        return Race(first, second, None, beyond)
    try:
        values = _least_values(reasoning, formulas, ids)
    except Undecided:
        return Race(first, second, None)
    if values is None:  # they never meet, which took more steps than were looked at first
        return None
    return Race(first, second, _witness(reasoning, first, second, values, ids))


def meet(reasoning: Reasoning, first: Access, second: Access) -> bool:
    """Whether two programs may touch one element by these accesses; if nobody knows, they may."""
    ids = list(reasoning.ids.values())
    return all(
        _can_hold(reasoning, _meeting(reasoning, first, second, ids, wide=wide))
        for wide in (False, True)
    )


def _can_hold(reasoning: Reasoning, formulas: Sequence[Formula], part: float = SHARE) -> bool:
    try:
        with reasoning.budget.phase(Phase.RACES):
            return can_hold(formulas, part=part)
    except Undecided:
        return True


def _element(reasoning: Reasoning, access: Access) -> list[Unknown]:
    return [
        reasoning.knowledge.unknown(f"element {axis}", (0, 2**40), uniform=True)
        for axis in range(access.rank)
    ]


def _meeting(
    reasoning: Reasoning,
    first: Access,
    second: Access,
    ids: Sequence[Unknown],
    *,
    wide: bool,
) -> list[Formula]:
    """That two different programs touch one element, with what is known of everything in it."""
    knowledge = reasoning.knowledge
    element = [variable(u) for u in _element(reasoning, first)]
    one = knowledge.context(first.touches(element), first.path, wide=wide, about=ids)
    other = knowledge.context(second.touches(element), second.path, wide=wide, about=ids)
    other = knowledge.second(other)
    twins = knowledge.twins(ids)
    differ = either(*(negated(equal(variable(u), variable(twins[u]))) for u in ids))
    return [*one, *other, differ]


def _least_values(
    reasoning: Reasoning, formulas: Sequence[Formula], ids: Sequence[Unknown]
) -> dict[Unknown, int] | None:
    """The least values with which two programs meet; None if there are none. Raises Undecided."""
    # Sizes that nothing of this is about must be allowed, too.
    stated = [fact.formula for fact in reasoning.knowledge.facts if fact.why == "requires"]
    stated = reasoning.knowledge.context(stated, [], wide=False)
    twins = reasoning.knowledge.twins(())
    order = [*ids, *(twins[u] for u in ids)]
    with reasoning.budget.phase(Phase.RACES):
        return least_values(reasoning, [*formulas, *stated], order)


def _witness(
    reasoning: Reasoning,
    first: Access,
    second: Access,
    values: Mapping[Unknown, int],
    ids: Sequence[Unknown],
) -> Witness | None:
    if any(u.opaque for u in values):
        return None
    twins = reasoning.knowledge.twins(())
    seconds = {u: values[twin] for u, twin in twins.items() if twin in values}
    seconds.update((u, value) for u, value in values.items() if u.uniform)
    mine, theirs = box_of(first, values), box_of(second, seconds)
    return Witness(
        {name: values[u] for name, u in reasoning.dims.items() if u in values},
        {name: values[u] for name, u in reasoning.scalars.items() if u in values},
        (
            tuple(values[u] for u in ids),
            tuple(values[twins[u]] for u in ids),
        ),
        (mine, theirs),
        tuple(max(a, b) for (a, _), (b, _) in zip(mine, theirs, strict=True)),
    )
