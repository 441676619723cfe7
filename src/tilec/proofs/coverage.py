"""Which tensors a kernel writes in full, whatever the arguments, and which it may read before.

Written in full: every element of the tensor is touched by some store of some program, for all
extents and scalars that the preconditions allow. A precondition that is not followed exactly leaves
more launches to think of, never fewer; a store that is not, less that it touches (`stores.py`).

Read before: some load may touch an element that its own program has not stored to before. What
other programs store counts for nothing, for programs run in no order. A store comes before a load
where it stands before it: of loops around both it is the store of the same turn. So the elements of
the load, as functions of arguments, program and these turns, minus those of such stores must be
none; the load's set may be too large, the stores' may not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import islpy as isl
from mlir import ir

from tilec.integers.conditions import projected
from tilec.integers.formula import Formula, equal, less
from tilec.integers.isl_sets import Undecided, limited, one_question
from tilec.integers.polynomial import Unknown, variable
from tilec.proofs.access import Access
from tilec.proofs.certain import certainly_touched, loops_around
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.stores import Doubt, Launch, Store, Touching, element_of, store_of_program


@dataclass(frozen=True)
class Coverage:
    """What a kernel does with a tensor that it may write.

    `doubts` say what kept stores from being known to write in full, where it is not; none where the
    stores are known, and leave something.
    """

    tensor: str
    is_written: bool
    writes_all: bool
    reads_first: bool
    doubts: tuple[Doubt, ...] = field(default=(), compare=False)


def find_coverage(
    reasoning: Reasoning,
    function: ir.OpView,
    stores_of: Callable[[str], Touching],
    given: Mapping[str, int] | None = None,
) -> list[Coverage]:
    """For each parameter that the kernel may write, in order.

    `stores_of` says what the stores to a tensor touch, of which there are some. `given` are scalars
    that a launch gives; without them it is of every launch.
    """
    found = []
    for entry in map(ir.DictAttr, ir.ArrayAttr(function.attributes["tile.parameters"])):
        if "own" not in entry or ir.StringAttr(entry["own"]).value == "shared":
            continue
        tensor = ir.StringAttr(entry["name"]).value
        accesses = [a for a in reasoning.accesses if a.view.tensor == tensor]
        is_written = any(a.writes for a in accesses)
        is_covered, doubts = _covers(stores_of(tensor), given or {}) if is_written else (False, [])
        found.append(
            Coverage(
                tensor,
                is_written=is_written,
                writes_all=is_covered,
                reads_first=any(
                    not a.writes and not _is_stored_before(reasoning, a, accesses[:number])
                    for number, a in enumerate(accesses)
                ),
                doubts=tuple(doubts),
            )
        )
    return found


_ON_DATA = "what it is done under depends on data", "store on the other paths, too"
_TOO_MUCH = "the budget of the proof is used up", "store in one loop, without branches"

# ---- written in full -----------------------------------------------------------------------------


def _covers(touching: Touching, given: Mapping[str, int]) -> tuple[bool, list[Doubt]]:
    """Whether stores touch every element, and why that may not be known."""
    launch, element, stores = touching.launch, touching.element, touching.stores
    first = touching.accesses[0]
    doubts = [*touching.doubts, *(Doubt(s.access, *_ON_DATA) for s in stores if s.data)]
    whole = known_of_launch(launch, stores, inside(first, element), given)
    shared = [*dict.fromkeys([*shared_by(launch, stores), *element])]
    try:
        with one_question():
            rest = projected(whole, shared)
            for touched in certainly_touched(stores, shared):
                rest = _without(rest, touched)
            if limited(rest.is_empty):
                return True, []
    except Undecided:
        doubts.insert(0, Doubt(first, *_TOO_MUCH))
    return False, doubts


def inside(access: Access, element: Sequence[Unknown]) -> list[Formula]:
    """That the element is one of the tensor."""
    extents = access.view.extents
    return [less(variable(e), extent) for e, extent in zip(element, extents, strict=True)]


def known_of_launch(
    launch: Launch,
    stores: Sequence[Store],
    wanted: Sequence[Formula],
    given: Mapping[str, int],
) -> list[Formula]:
    """What is known of the arguments, and of what else stores are about, where `wanted` holds."""
    reasoning = launch.reasoning
    stated = [f.formula for f in reasoning.knowledge.facts if f.why == "requires"]
    scalars = {name: u for name, u in reasoning.scalars.items() if name in given}
    stated += [equal(variable(u), given[name]) for name, u in scalars.items()]
    known = reasoning.knowledge.context([*stated, *wanted], (), wide=False, only=True)
    return launch.linear([*known, *launch.of_quotients(shared_by(launch, stores))])


def shared_by(launch: Launch, stores: Sequence[Store]) -> list[Unknown]:
    """The arguments, and what else of the launch stores are about that does not follow in them."""
    reasoning = launch.reasoning
    used = {u for store in stores for f in store.formulas for u in f.unknowns if u.uniform}
    choices = reasoning.knowledge.definitions.keys()
    kept = {u for u in used if u.opaque or u not in choices or launch.of_quotients([u])}
    arguments = [*reasoning.dims.values(), *reasoning.scalars.values()]
    return [*arguments, *sorted(kept.difference(arguments))]


# ---- read before ---------------------------------------------------------------------------------


def _is_stored_before(reasoning: Reasoning, load: Access, before: Sequence[Access]) -> bool:
    """Whether a program has stored to all that a load touches; `before` are in program order."""
    launch = Launch(reasoning)
    element = element_of(reasoning, load)
    around = loops_around(load)
    found = [store_of_program(launch, a, element) for a in before if a.writes]
    stores = [one for one in found if isinstance(one, Store)]
    if not stores:
        return False
    touched = launch.linear(
        reasoning.knowledge.context(
            load.touches([variable(e) for e in element]),
            load.path,
            wide=True,
            about=reasoning.ids.values(),
        )
    )
    # The turns of the loops around both, and what data the load depends on itself.
    turns = {u for s in stores for u in s.chosen if u in reasoning.turns}
    common = {u for u in turns if isinstance(u.about, ir.OpView) and u.about.operation in around}
    common |= {u for s in stores for u in s.data} & {u for f in touched for u in f.unknowns}
    shared = [*shared_by(launch, stores), *element]
    shared = [*dict.fromkeys([*shared, *reasoning.ids.values(), *sorted(common)])]
    try:
        with one_question():
            rest = projected(touched, shared)
            for stored in certainly_touched(stores, shared):
                rest = _without(rest, stored)
            return bool(limited(rest.is_empty))
    except Undecided:
        return False


def _without(whole: isl.Set, part: isl.Set) -> isl.Set:
    return limited(lambda: whole.subtract(part))
