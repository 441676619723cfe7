"""An element that a kernel leaves unwritten, and the arguments with which it does.

What stores may touch, whatever data are and whatever is not followed, is taken from the tensor. A
point of what is left is tried as it is: the preconditions must be able to hold there, and no store
touch the element. So a witness is always one; that there is none says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from itertools import product as cartesian

import islpy as isl

from tilec.integers.budget import Phase
from tilec.integers.conditions import projected
from tilec.integers.formula import Formula, IsZero, at_least, equal, mapped, polynomials
from tilec.integers.isl_sets import Dimensions, Undecided, limited, one_question
from tilec.integers.polynomial import Unknown, number, variable
from tilec.integers.solver import can_hold
from tilec.proofs.access import Access
from tilec.proofs.coverage import inside
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.stores import element_of
from tilec.proofs.witness import Witness

# Numbers that are tried for arguments which are multiplied, and for how many of these.
_SMALL = (1, 2, 0, 3)
_FACTORS = 2
# A larger tensor is no example.
_LARGEST = 2**30


def unwritten(
    reasoning: Reasoning, tensor: str, given: Mapping[str, int] | None = None
) -> Witness | None:
    """An element of a tensor that no program writes, if one is found; `given` as in coverage."""
    with reasoning.budget.phase(Phase.COVERAGE):
        return _unwritten(reasoning, tensor, given)


def _unwritten(
    reasoning: Reasoning, tensor: str, given: Mapping[str, int] | None
) -> Witness | None:
    stores = [a for a in reasoning.accesses if a.view.tensor == tensor and a.writes]
    if not stores:
        return None
    element = element_of(reasoning, stores[0])
    stated = [f.formula for f in reasoning.knowledge.facts if f.why == "requires"]
    stated += inside(stores[0], element)
    numbers = given or {}
    fixed = [(u, numbers[name]) for name, u in reasoning.scalars.items() if name in numbers]
    stated += [equal(variable(unknown), value) for unknown, value in fixed]
    whole = reasoning.knowledge.context(stated, (), wide=False, only=True)
    touched = [_touched(reasoning, store, element) for store in stores]
    unknowns = [*reasoning.dims.values(), *reasoning.scalars.values(), *element]
    try:
        for values in _left(reasoning, whole, touched, unknowns):
            if max(values.values(), default=0) > _LARGEST:
                continue
            at = [equal(variable(u), value) for u, value in values.items()]
            if can_hold([*whole, *at]) and not any(can_hold([*one, *at]) for one in touched):
                return Witness(
                    {name: values[u] for name, u in reasoning.dims.items()},
                    {name: values[u] for name, u in reasoning.scalars.items()},
                    (),
                    element=tuple(values[u] for u in element),
                )
    except Undecided:
        pass
    return None


def _touched(reasoning: Reasoning, store: Access, element: Sequence[Unknown]) -> list[Formula]:
    return reasoning.knowledge.context(
        store.touches([variable(e) for e in element]),
        store.path,
        wide=True,
        about=reasoning.ids.values(),
    )


def _left(
    reasoning: Reasoning,
    whole: Sequence[Formula],
    touched: Sequence[Sequence[Formula]],
    unknowns: Sequence[Unknown],
) -> Iterator[dict[Unknown, int]]:
    """The least values of what stores leave, scalars near 0 if they can be."""
    scalars = [variable(scalar) for scalar in reasoning.scalars.values()]
    near = [[equal(scalar, 0) for scalar in scalars], [at_least(scalar, 0) for scalar in scalars]]
    near = [*near, []] if scalars else [[]]
    for fixed in _fixed([*whole, *chain(*touched)], unknowns):
        at = [IsZero(variable(u) - value) for u, value in fixed.items()]
        known, stores = _with(whole, fixed), [_with(one, fixed) for one in touched]
        for attempt in near:
            with one_question():
                rest = projected([*known, *at, *_with(attempt, fixed)], unknowns)
                for one in stores:
                    rest = _without(rest, projected(one, unknowns))
                if limited(rest.is_empty):
                    continue
                point = Dimensions((), unknowns, all_first=True).values(_least(rest))
            yield {monomial[0]: value for monomial, value in point.items()}


def _fixed(
    formulas: Sequence[Formula], unknowns: Sequence[Unknown]
) -> Iterator[dict[Unknown, int]]:
    """Small numbers for arguments that are multiplied, so that their products are none."""
    products = {m for f in formulas for p in polynomials(f) for m in p.monomials if len(m) > 1}
    factors = sorted({u for product in products for u in product}.intersection(unknowns))
    yield {}
    if 0 < len(factors) <= _FACTORS:
        for values in cartesian(_SMALL, repeat=len(factors)):
            yield dict(zip(factors, values, strict=True))


def _with(formulas: Sequence[Formula], fixed: Mapping[Unknown, int]) -> list[Formula]:
    values = {unknown: number(value) for unknown, value in fixed.items()}
    return [mapped(formula, lambda value: value.replaced(values)) for formula in formulas]


def _least(points: isl.Set) -> isl.Point:
    return limited(lambda: points.lexmin().sample_point())


def _without(whole: isl.Set, part: isl.Set) -> isl.Set:
    return limited(lambda: whole.subtract(part))
