"""Which tensors a kernel writes in full, whatever the arguments, and which it may read before.

Written in full: every element of the tensor is touched by some store of some program. The stores
are projected to the elements they touch, and the tensor minus these must be empty, for all extents
at once. A store counts only where its relation is exact: nothing opaque, and no product of
unknowns (whose sets are too large, which is right for races and wrong here).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from tilec.integers.conditions import projected
from tilec.integers.formula import Formula, less
from tilec.integers.isl_sets import Dimensions, Undecided, limited, one_question
from tilec.integers.polynomial import Unknown, variable
from tilec.proofs.access import Access
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
                reads_first=len(stores) < len(accesses),
            )
        )
    return found


def _covers(reasoning: Reasoning, stores: Sequence[Access]) -> bool:
    extents = stores[0].view.extents
    element = [
        reasoning.knowledge.unknown(f"element {axis}", (0, 2**40), uniform=True)
        for axis in range(len(extents))
    ]
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
    if store.starts is None:
        return None
    formulas = reasoning.knowledge.context(
        store.touches([variable(e) for e in element]),
        store.path,
        wide=True,
        about=reasoning.ids.values(),
    )
    return projected(formulas, known) if _is_exact(formulas) else None


def _is_exact(formulas: Sequence[Formula]) -> bool:
    unknowns = {u for f in formulas for u in f.unknowns}
    return not any(u.opaque for u in unknowns) and not Dimensions(formulas, ()).products


def _without(whole: isl.Set, part: isl.Set) -> isl.Set:
    return limited(lambda: whole.subtract(part))
