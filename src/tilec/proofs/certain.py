"""Elements that stores touch for certain, whatever arguments and data are.

The stores of a kernel as sets of isl over arguments, the element, programs, turns of loops and what
depends on data. That there is some program and some turn of a loop is all that is asked for, and so
these are projected out; what depends on data is asked for in every case: a store in each branch of
an `if` on data touches its element whatever the branch. Both by the loops, from the inside out: of
what is computed in a loop there is a value for each turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl
from mlir import ir

from tilec.integers.conditions import projected
from tilec.integers.isl_sets import limited
from tilec.integers.polynomial import Unknown
from tilec.ops.registry import rules
from tilec.proofs.access import Access
from tilec.proofs.stores import Store

_SET = isl.dim_type.set


def certainly_touched(stores: Sequence[Store], shared: Sequence[Unknown]) -> list[isl.Set]:
    """The elements that stores touch for certain, over `shared` alone: the union of the sets.

    Raises:   Undecided
    """
    found = [projected(store.formulas, shared) for store in stores if not _asks_data(store, shared)]
    groups: dict[frozenset[Unknown], list[Store]] = {}
    for store in stores:
        if _asks_data(store, shared):
            # Data are those of one program, and so the numbers of programs must be the same.
            groups.setdefault(store.programs, []).append(store)
    return found + [_Whatever(group, shared).found() for group in groups.values()]


def _asks_data(store: Store, shared: Sequence[Unknown]) -> bool:
    return not set(shared).issuperset(store.data)


class _Whatever:
    """What stores touch whatever the data are, of any arguments: `shared` first, then the rest."""

    def __init__(self, stores: Sequence[Store], shared: Sequence[Unknown]) -> None:
        self._stores = stores
        self._shared = tuple(shared)
        rest = {u for store in stores for u in (*store.chosen, *store.data)}.difference(shared)
        self._space = (*shared, *sorted(rest))
        self._data = {u for store in stores for u in store.data}.difference(shared)

    def found(self) -> isl.Set:
        whole = self._whatever(self._from_inside(self._stores, 0), sorted(self._data))
        count = len(self._shared)
        return limited(lambda: whole.project_out(_SET, count, len(self._space) - count))

    def _from_inside(self, stores: Sequence[Store], depth: int) -> isl.Set:
        """What the stores of one loop touch in one turn of it, loops inside of it done."""
        found = isl.Set.empty(self._ranges().get_space())
        inner: dict[ir.Operation, list[Store]] = {}
        for store in stores:
            loops = loops_around(store.access)
            if len(loops) == depth:
                found = found.union(projected(store.formulas, self._space))
            else:
                inner.setdefault(loops[depth], []).append(store)
        for loop, group in inner.items():
            found = found.union(self._of_loop(loop, self._from_inside(group, depth + 1)))
        return found

    def _of_loop(self, loop: ir.Operation, found: isl.Set) -> isl.Set:
        """In some turn of a loop, whatever is computed in it."""
        own = [u for u in self._space if isinstance(u.about, ir.OpView) and _is_of(u.about, loop)]
        found = self._whatever(found, [u for u in own if u in self._data])
        turns = [u for u in own if u not in self._data and u not in self._shared]
        return self._some(found, [u for u in turns if _is_about(u, loop)])

    def _whatever(self, found: isl.Set, data: Sequence[Unknown]) -> isl.Set:
        """Where the set holds of every value of some data; they are free then."""
        if not data:
            return found
        some = self._some(found, data)
        within = limited(lambda: some.intersect(self._ranges()))
        missed = self._some(limited(lambda: within.subtract(found)), data)
        return limited(lambda: some.subtract(missed))

    def _some(self, found: isl.Set, unknowns: Sequence[Unknown]) -> isl.Set:
        """Where the set holds of some value; they are free then."""
        places = [self._space.index(unknown) for unknown in unknowns]
        return limited(lambda: _freed(found, places))

    def _ranges(self) -> isl.Set:
        """Every value that each of the numbers can have."""
        return projected((), self._space)


def _freed(found: isl.Set, places: Sequence[int]) -> isl.Set:
    for place in places:
        found = found.project_out(_SET, place, 1).insert_dims(_SET, place, 1)
    return found


def loops_around(access: Access) -> list[ir.Operation]:
    """The loops that an access is in, from the outside in."""
    found = []
    operation = access.op.operation.parent
    while operation is not None and operation.name != "builtin.module":
        if operation.name in rules() and rules()[operation.name].loop:
            found.append(operation)
        operation = operation.parent
    return found[::-1]


def _is_about(unknown: Unknown, loop: ir.Operation) -> bool:
    return isinstance(unknown.about, ir.OpView) and unknown.about.operation == loop


def _is_of(op: ir.OpView, loop: ir.Operation) -> bool:
    operation: ir.Operation | None = op.operation
    while operation is not None:
        if operation == loop:
            return True
        operation = operation.parent
    return False
