"""Which tensors a kernel writes in full, whatever the arguments, and which it may read before.

Written in full: every element of the tensor is touched by some store of some program. The stores
are projected to the elements they touch, and the tensor minus these must be empty, for all extents
at once. A store counts only where its relation is exact: nothing opaque, and no product of
unknowns (whose sets are too large, which is right for races and wrong here). Program numbers that
are taken apart have products that are none (`digits.py`).

Read before: some load may touch an element that its own program has not stored to before. What
other programs store counts for nothing, for programs run in no order. A store comes before a load
where it stands before it: of loops around both it is the store of the same turn. So the elements of
the load, as functions of arguments, program and these turns, minus those of such stores must be
none; the load's set may be too large, the stores' may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from tilec.integers.conditions import projected
from tilec.integers.formula import Formula, less
from tilec.integers.isl_sets import Dimensions, Undecided, limited, one_question
from tilec.integers.polynomial import Unknown, variable
from tilec.proofs.access import Access
from tilec.proofs.digits import taken_apart
from tilec.proofs.reasoning import Reasoning


@dataclass(frozen=True)
class Coverage:
    """What a kernel does with a tensor that it may write."""

    tensor: str
    is_written: bool
    writes_all: bool
    reads_first: bool


def find_coverage(reasoning: Reasoning, function: ir.OpView) -> list[Coverage]:
    """For each parameter that the kernel may write, in order."""
    found = []
    for entry in map(ir.DictAttr, ir.ArrayAttr(function.attributes["tile.parameters"])):
        if "own" not in entry or ir.StringAttr(entry["own"]).value == "shared":
            continue
        tensor = ir.StringAttr(entry["name"]).value
        accesses = [a for a in reasoning.accesses if a.view.tensor == tensor]
        stores = [a for a in accesses if a.writes]
        found.append(
            Coverage(
                tensor,
                is_written=bool(stores),
                writes_all=bool(stores) and _covers(reasoning, stores),
                reads_first=any(
                    not a.writes and not _is_stored_before(reasoning, a, accesses[:number])
                    for number, a in enumerate(accesses)
                ),
            )
        )
    return found


def _is_stored_before(reasoning: Reasoning, load: Access, before: Sequence[Access]) -> bool:
    """Whether a program has stored to all that a load touches; `before` are in program order."""
    element = _element_of(reasoning, load)
    touched = _formulas(reasoning, load, element)
    known = [*reasoning.dims.values(), *reasoning.scalars.values(), *element]
    known += reasoning.ids.values()
    try:
        with one_question():
            for store in (access for access in before if access.writes):
                stored = _formulas(reasoning, store, element)
                if store.starts is None or not _is_exact(stored):
                    continue
                kept = [*known, *_turns_of_both(store, load, [*stored, *touched])]
                rest = _without(projected(touched, kept), projected(stored, kept))
                if limited(rest.is_empty):
                    return True
    except Undecided:
        pass
    return False


def _turns_of_both(store: Access, load: Access, formulas: Sequence[Formula]) -> list[Unknown]:
    """The turns of the loops around both, as far as something depends on them."""
    around = {*_around(store)} & {*_around(load)}
    unknowns = sorted({u for f in formulas for u in f.unknowns})
    return [u for u in unknowns if isinstance(u.about, ir.OpView) and u.about.operation in around]


def _around(access: Access) -> Iterator[ir.Operation]:
    operation = access.op.operation.parent
    while operation is not None:
        yield operation
        operation = operation.parent


def _element_of(reasoning: Reasoning, access: Access) -> list[Unknown]:
    """Unknowns for the coordinates of an element of a tensor."""
    return [
        reasoning.knowledge.unknown(f"element {axis}", (0, 2**40), uniform=True)
        for axis in range(access.rank)
    ]


def _covers(reasoning: Reasoning, stores: Sequence[Access]) -> bool:
    extents = stores[0].view.extents
    element = _element_of(reasoning, stores[0])
    known = [*reasoning.dims.values(), *reasoning.scalars.values(), *element]
    stated = [f.formula for f in reasoning.knowledge.facts if f.why == "requires"]
    inside = [less(variable(e), extent) for e, extent in zip(element, extents, strict=True)]
    whole = reasoning.knowledge.context([*stated, *inside], (), wide=False, only=True)
    if not _is_exact(whole):
        return False
    try:
        with one_question():
            rest = projected(whole, known)
            for store in stores:
                touched = _touched(reasoning, store, element, known)
                if touched is not None:
                    rest = _without(rest, touched)
            return bool(limited(rest.is_empty))
    except Undecided:
        return False


def _touched(
    reasoning: Reasoning, store: Access, element: Sequence[Unknown], known: Sequence[Unknown]
) -> isl.Set | None:
    """The elements that a store touches, with the arguments; None if that is not exact."""
    # Where nobody knows which programs run, nothing is certain to be touched.
    if store.starts is None or not reasoning.is_grid_followed:
        return None
    formulas = taken_apart(reasoning, _formulas(reasoning, store, element))
    return projected(formulas, known) if _is_exact(formulas) else None


def _formulas(
    reasoning: Reasoning, access: Access, element: Sequence[Unknown]
) -> Sequence[Formula]:
    return reasoning.knowledge.context(
        access.touches([variable(e) for e in element]),
        access.path,
        wide=True,
        about=reasoning.ids.values(),
    )


def _is_exact(formulas: Sequence[Formula]) -> bool:
    unknowns = {u for f in formulas for u in f.unknowns}
    return not any(u.opaque for u in unknowns) and not Dimensions(formulas, ()).products


def _without(whole: isl.Set, part: isl.Set) -> isl.Set:
    return limited(lambda: whole.subtract(part))
