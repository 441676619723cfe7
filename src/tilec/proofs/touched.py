"""How much of each axis of a tensor the programs of a launch touch together.

Along an axis where all programs and turns begin at one place, a layer or a head that a scalar
names, that is the accesses' own size. Elsewhere it is the elements from the first one up to the
last, where these follow each other without a gap; where that is not known, it is the whole axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from tilec.artifact.expression import Expression
from tilec.integers.budget import Phase
from tilec.integers.conditions import projected
from tilec.integers.formula import Formula, at_least, less
from tilec.integers.isl_sets import Undecided, limited, one_question
from tilec.integers.polynomial import Polynomial, Unknown, number, variable
from tilec.proofs.access import Access
from tilec.proofs.certain import certainly_touched
from tilec.proofs.coverage import inside, known_of_launch, shared_by
from tilec.proofs.reasoning import Reasoning
from tilec.proofs.stores import Launch, Store, Touching

_PIECES = 3  # sums of which the least is the number: more are not readable
_SET, _PARAM, _DIV = isl.dim_type.set, isl.dim_type.param, isl.dim_type.div


@dataclass(frozen=True)
class Extents:
    """How many elements of each axis are touched, over extents alone.

    `is_exact`: not fewer, where nothing is empty; `is_part`: of some axis not all.
    """

    counts: tuple[Expression, ...]
    is_exact: bool
    is_part: bool


def touched_extents(touching: Touching) -> Extents | None:
    """What some accesses of one tensor touch together; None where data say it."""
    with touching.launch.reasoning.budget.phase(Phase.COVERAGE):
        return _touched_extents(touching)


def _touched_extents(touching: Touching) -> Extents | None:
    launch, element, accesses = touching.launch, touching.element, touching.accesses
    if any(access.starts is None for access in accesses):
        return None
    reasoning = launch.reasoning
    stores = [one for one in touching.stores if not one.data]
    is_exact = len(stores) == len(accesses)
    counts: list[Expression] = []
    for axis, extent in enumerate(accesses[0].view.extents):
        count = _at_one_place(accesses, axis)
        if count is not None:
            counts.append(_least(reasoning, count, extent))
            continue
        reached = _reached(launch, stores, element, axis, accesses[0]) if is_exact else None
        is_exact &= reached is not None
        reached = _expression(reasoning, extent) if reached is None else reached
        if reached is None:
            return None
        counts.append(reached)
    whole = [_expression(reasoning, extent) for extent in accesses[0].view.extents]
    return Extents(tuple(counts), is_exact, counts != whole)


def _least(reasoning: Reasoning, count: int, extent: Polynomial) -> Expression:
    """The less of a number and an extent, by what launchers ask for."""
    whole = _expression(reasoning, extent)
    possible = reasoning.knowledge.possible
    if whole is None or count == 1 or not possible([less(extent, count)], ()):
        return count
    return ("min", count, whole) if possible([less(number(count), extent)], ()) else whole


def _at_one_place(accesses: Sequence[Access], axis: int) -> int | None:
    """How many elements are touched along an axis where they begin at places that do not differ.

    Of several places of unknown order the largest counts: they may be one.
    """
    spans = []
    for access in accesses:
        assert access.starts is not None, "asked before"
        start = access.starts[axis]
        if access.sizes[axis] == 0 or not all(u.uniform for u in start.unknowns):
            return None
        spans.append((start, access.sizes[axis]))
    if all(start.is_constant for start, _ in spans):
        return len({start.constant + i for start, size in spans for i in range(size)})
    groups: dict[Polynomial, set[int]] = {}
    for start, size in spans:
        base = start - start.constant
        groups.setdefault(base, set()).update(start.constant + i for i in range(size))
    return max(len(group) for group in groups.values())


def _reached(
    launch: Launch, stores: Sequence[Store], element: Sequence[Unknown], axis: int, one: Access
) -> Expression | None:
    """The elements of an axis that are touched, from 0 on; None if they are not known as such."""
    coordinate = element[axis]
    arguments = [u for u in shared_by(launch, stores) if u not in element]
    known = [*arguments, coordinate]
    wanted = [*inside(one, element), *_somewhere(launch.reasoning, one, element)]
    whole = known_of_launch(launch, stores, wanted, {})
    try:
        with one_question():
            space = projected(whole, known)
            touched = isl.Set.empty(space.get_space())
            for part in certainly_touched(stores, known):
                touched = touched.union(part)
            touched = limited(lambda: touched.intersect(space).coalesce())
            if limited(lambda: space.subtract(touched).is_empty()):
                return _expression(launch.reasoning, one.view.extents[axis])
            ends = _ends(touched, arguments)
            below = [less(variable(coordinate), end) for end in ends]
            if not ends or not _is_same(projected([*whole, *below], known), touched):
                return None
    except Undecided:
        return None
    found: Expression | None = None
    for end in ends:
        count = _expression(launch.reasoning, end)
        if count is None:
            return None
        found = count if found is None else ("min", found, count)
    return found


def _somewhere(
    reasoning: Reasoning, access: Access, element: Sequence[Unknown]
) -> Iterator[Formula]:
    """That a launch has something to do: no extent is 0, and what scalars name is there."""
    yield from (at_least(variable(dim), 1) for dim in reasoning.dims.values())
    assert access.starts is not None, "asked before"
    for coordinate, start, size in zip(element, access.starts, access.sizes, strict=True):
        if all(u.uniform for u in start.unknowns):
            yield at_least(variable(coordinate), start)
            yield less(variable(coordinate), start + size)


def _is_same(left: isl.Set, right: isl.Set) -> bool:
    return bool(limited(lambda: left.is_equal(right)))


def _ends(touched: isl.Set, arguments: Sequence[Unknown]) -> list[Polynomial]:
    """Sums of the arguments of which the least may be where a set ends along its last axis."""
    along = limited(lambda: touched.move_dims(_PARAM, 0, _SET, 0, len(arguments)))
    last = limited(lambda: along.dim_max(0).coalesce())
    sums = [sum_ for _, sum_ in last.get_pieces()]
    if not 0 < len(sums) <= _PIECES or any(sum_.dim(_DIV) for sum_ in sums):
        return []
    return [_polynomial(sum_, arguments) + 1 for sum_ in sums]


def _polynomial(value: isl.Aff, arguments: Sequence[Unknown]) -> Polynomial:
    total = number(int(value.get_constant_val().to_python()))
    for place, unknown in enumerate(arguments):
        factor = int(value.get_coefficient_val(_PARAM, place).to_python())
        total = total + variable(unknown).scaled(factor)
    return total


def _expression(reasoning: Reasoning, value: Polynomial) -> Expression | None:
    """A sum of products of extents and quotients of them; None if it is of anything else."""
    found: Expression | None = None
    for monomial, coefficient in value.terms:
        term: Expression = abs(coefficient)
        for unknown in monomial:
            factor = _factor(reasoning, unknown)
            if factor is None:
                return None
            term = factor if term == 1 else ("mul", term, factor)
        if found is None:
            found = term if coefficient > 0 else ("neg", term)
        else:
            found = ("add" if coefficient > 0 else "sub", found, term)
    return 0 if found is None else found


def _factor(reasoning: Reasoning, unknown: Unknown) -> Expression | None:
    for name, dim in reasoning.dims.items():
        if dim is unknown:
            return name
    for (rounding, dividend, divisor), quotient in reasoning.quotients.items():
        if quotient == variable(unknown) and dividend.interval[0] >= 0:
            over, under = _expression(reasoning, dividend), _expression(reasoning, divisor)
            name = "ceildiv" if rounding == "ceiling" else "div"
            return None if over is None or under is None else (name, over, under)
    return None
