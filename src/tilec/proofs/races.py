"""Races: two programs of one launch that touch one element, one of them writing.

Algorithm, for each pair of accesses to a tensor that several programs may write (an access with
itself included):

1. the relation of the first, of a program p; that of the second, of a program q: the same formulas
   over other unknowns, but for those that all programs share (`Knowledge.second`);
2. p and q differ in some axis of the grid, and both touch the element e.

If that cannot hold, the pair is no race, whatever the sizes. If it can, the least numbers with
which it does are the witness. Where opaque unknowns take part, or the solver gives up, nobody
knows.

Parts need no question: each belongs to one program. Atomic accesses do not race with each other,
and an atomic tensor has no others. What stands in `unsafe` is vouched for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from tilec.integers.formula import Formula, either, equal, negated
from tilec.integers.polynomial import Unknown, variable
from tilec.integers.satisfiable import can_hold
from tilec.integers.solver import Undecided
from tilec.proofs.access import Access
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.witness import Witness, box_of, least_values

# A program that is right is worth some time before it is refused.
_MOST_EFFORT = 4
# After so many questions that cost too much, no more are asked of a kernel.
_GIVEN_UP = 2


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
    effort, given_up = _MOST_EFFORT, 0
    shared: dict[str, list[Access]] = {}
    for access in reasoning.accesses:
        if access.view.own == "mut" and not access.view.ids and not access.is_unsafe:
            shared.setdefault(access.view.tensor, []).append(access)
    for accesses in shared.values():
        if not any(access.writes for access in accesses):
            continue
        refused: set[Access] = set()
        for first, second in combinations_with_replacement(accesses, 2):
            if not (first.writes or second.writes) or at_fault(first, second) in refused:
                continue
            found = _race(reasoning, first, second, effort)
            if found is None:
                continue
            refused.add(found.fault)
            yield found
            # What is refused anyway is not worth as much time for each further access.
            effort = max(1, effort - 1)
            given_up += found.is_given_up
            if given_up == _GIVEN_UP:
                return


def at_fault(first: Access, second: Access) -> Access:
    """Of a read and a write the read, of two writes the later one in the source."""
    reads = [access for access in (first, second) if not access.writes]
    return reads[0] if reads else max(first, second, key=lambda access: _place(access))


def _place(access: Access) -> tuple[int, int]:
    location = access.op.location
    return (location.start_line, location.start_col) if location.is_a_file() else (0, 0)


def _race(reasoning: Reasoning, first: Access, second: Access, effort: int) -> Race | None:
    ids = list(reasoning.ids.values())
    near = _meeting(reasoning, first, second, ids, wide=False)
    if not _can_hold(near):
        return None
    formulas = _meeting(reasoning, first, second, ids, wide=True)
    if not _can_hold(formulas, effort):
        return None
    beyond = tuple(sorted({u for f in formulas for u in f.unknowns if u.opaque}))
    witness = None if beyond else _witness(reasoning, first, second, formulas, ids)
    return Race(first, second, witness, beyond)


def meet(reasoning: Reasoning, first: Access, second: Access) -> bool:
    """Whether two programs may touch one element by these accesses; if nobody knows, they may."""
    ids = list(reasoning.ids.values())
    near = _meeting(reasoning, first, second, ids, wide=False)
    return _can_hold(near) and _can_hold(_meeting(reasoning, first, second, ids, wide=True))


def _can_hold(formulas: Sequence[Formula], effort: int = 1) -> bool:
    try:
        return can_hold(formulas, effort=effort)
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


def _witness(
    reasoning: Reasoning,
    first: Access,
    second: Access,
    formulas: Sequence[Formula],
    ids: Sequence[Unknown],
) -> Witness | None:
    # Sizes that nothing of this is about must be allowed, too.
    stated = [fact.formula for fact in reasoning.knowledge.facts if fact.why == "requires"]
    stated = reasoning.knowledge.context(stated, [], wide=False)
    twins = reasoning.knowledge.twins(())
    order = [*ids, *(twins[u] for u in ids)]
    values = least_values(reasoning, [*formulas, *stated], order)
    if values is None or any(u.opaque for u in values):
        return None
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
