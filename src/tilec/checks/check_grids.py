"""E0404: the parts of one kernel have the same grid.

A part of extents E cut in blocks B has ceil(E/B) tiles along each axis; grids are compared axis by
axis, padded with 1 at the end, as functions of the extents, under `requires!`. Where they differ,
the least extents at which they do are in the message, rather such that nothing is empty.

    refused                                       accepted
    Part<…N…, 256>, Part<…N…, 512>                Part<…M, N…, 1, 64>, Part<…M…, 1>, 0 < N <= 64
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest

from mlir import ir

from tilec.checks.places import Sources, name_of, place_of
from tilec.diagnostics import Diagnostic, Label
from tilec.integers.formula import Formula, at_least, equal, negated, polynomials
from tilec.integers.polynomial import ONE, Polynomial, Unknown, variable
from tilec.integers.solver import Undecided, can_hold
from tilec.ir.walk import functions
from tilec.proofs.reasoning import Cut, Reasoning
from tilec.proofs.witness import least_values

PASS = "tile-verify-grids"
INLINED = True


def check_grids(module: ir.Module, sources: Sources) -> Iterator[Diagnostic]:
    """Yields E0404 for each part whose grid is not that of the kernel's first part."""
    for function in functions(module):
        yield from grids_of(Reasoning.of(function), sources)


def grids_of(reasoning: Reasoning, sources: Sources) -> Iterator[Diagnostic]:
    """The findings for one kernel, in program order."""
    for other in reasoning.cuts[1:]:
        first = reasoning.cuts[0]
        found = next(_differences(reasoning, first, other), None)
        if found is not None:
            yield _finding(first, other, found, sources)


@dataclass(frozen=True)
class _Difference:
    """Where two grids differ; `point` is the extents of a witness and `counts` what is there."""

    axis: int
    point: tuple[tuple[str, int], ...]
    counts: tuple[int, int]


def _differences(reasoning: Reasoning, first: Cut, other: Cut) -> Iterator[_Difference]:
    sides = _counts(reasoning, first), _counts(reasoning, other)
    for axis, (left, right) in enumerate(zip_longest(*sides, fillvalue=ONE)):
        values = _values(reasoning, negated(equal(left, right)))
        if values is None:
            continue
        along = [cut.extents[axis] for cut in (first, other) if axis < len(cut.extents)]
        named = frozenset[Unknown]().union(*(extent.unknowns for extent in along))
        point = tuple((name, values[u]) for name, u in reasoning.dims.items() if u in named)
        counts = (left.at(values.__getitem__), right.at(values.__getitem__))
        yield _Difference(axis, point, counts)


def _counts(reasoning: Reasoning, cut: Cut) -> list[Polynomial]:
    """The number of tiles along each axis."""
    pairs = zip(cut.extents, cut.block, strict=True)
    return [reasoning.tiles(extent, size, cut.op) for extent, size in pairs]


def _values(reasoning: Reasoning, differ: Formula) -> dict[Unknown, int] | None:
    """Least values with which preconditions hold and counts differ; None if there are none."""
    stated = [fact.formula for fact in reasoning.knowledge.facts if fact.why == "requires"]
    try:
        return _least(reasoning, [differ, *stated])
    except Undecided:
        # Without the preconditions that multiply unknowns there is always an answer.
        sums = [f for f in stated if all(len(m) == 1 for p in polynomials(f) for m in p.monomials)]
        return _least(reasoning, [differ, *sums])


def _least(reasoning: Reasoning, formulas: list[Formula]) -> dict[Unknown, int] | None:
    meant = reasoning.knowledge.context(formulas, (), wide=False, only=True)
    if not can_hold(meant):
        return None
    filled = [at_least(variable(u), 1) for u in reasoning.dims.values()]
    for formulas in ([*meant, *filled], meant):
        with suppress(Undecided):
            values = least_values(reasoning, formulas, ())
            if values is not None:
                return values
    raise Undecided("they may differ, and nobody knows where")


def _finding(first: Cut, other: Cut, found: _Difference, sources: Sources) -> Diagnostic:
    here, there = place_of(other.op, sources), place_of(first.op, sources)
    names = name_of(first.op.results[0], sources), name_of(other.op.results[0], sources)
    at = ", ".join(f"{name} = {value}" for name, value in found.point)
    axis = f"along axis {found.axis}"
    text = f"{axis}{f', at {at}' if at else ''}: {found.counts[0]} and {found.counts[1]} tiles"
    return Diagnostic(
        "E0404",
        f"{names[0]} and {names[1]} have different grids",
        (
            Label(here, f"cut in {_shown(other.block)}"),
            Label(there, f"cut in {_shown(first.block)}"),
        ),
        notes=(text,),
        help="cut them in as many parts, or state in `requires!` what makes the grids agree",
    )


def _shown(block: tuple[int, ...]) -> str:
    return " × ".join(map(str, block)) if block else "one"
