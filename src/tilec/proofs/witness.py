"""Concrete numbers at which something happens: sizes, programs, and what they touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.integers.formula import TRUE, Formula, at_least, both, equal
from tilec.integers.polynomial import Polynomial, Unknown, variable
from tilec.integers.solver import smallest
from tilec.proofs.access import Access
from tilec.proofs.reasoning import Reasoning

Box = tuple[tuple[int, int], ...]  # of each axis, the first element and the one after the last


@dataclass(frozen=True)
class Witness:
    """Arguments of a launch, and programs of it.

    Shapes:   `boxes` has what each program touches of the tensor, `element` one element in all
    """

    sizes: Mapping[str, int]
    scalars: Mapping[str, int]
    programs: tuple[tuple[int, ...], ...]
    boxes: tuple[Box, ...] = ()
    element: tuple[int, ...] = ()

    @property
    def arguments(self) -> str:
        """The sizes and scalars, for messages."""
        named = {**self.sizes, **self.scalars}
        return ", ".join(f"{name} = {value}" for name, value in named.items())


def least_values(
    reasoning: Reasoning, formulas: Sequence[Formula], ids: Sequence[Unknown]
) -> dict[Unknown, int] | None:
    """Values with which formulas hold: sizes first, then scalars near 0, then programs.

    None if there are none.

    Raises:   Undecided
    """
    scalars = [*reasoning.scalars.values()]
    first = [*reasoning.dims.values(), *scalars, *ids]
    near = both(*(equal(variable(s), 0) for s in scalars))
    above = both(*(at_least(variable(s), 0) for s in scalars))
    for attempt in dict.fromkeys((near, above, TRUE)):
        found = smallest([*formulas, attempt], first)
        if found is not None:
            return found
    return None


def box_of(access: Access, values: Mapping[Unknown, int]) -> Box:
    """The elements that an access touches, where unknowns have values."""
    found = []
    for axis in range(access.rank):
        lows = [0, *(_at(low, values) for low in access.view.lows[axis])]
        highs = [_at(h, values) for h in (access.view.extents[axis], *access.view.highs[axis])]
        if access.starts is not None:
            start = _at(access.starts[axis], values)
            lows.append(start)
            highs.append(start + access.sizes[axis])
        found.append((max(lows), min(highs)))
    return tuple(found)


def box_text(tensor: str, box: Box) -> str:
    """A box as an index: `x[0, 0..128]`."""
    ranges = (str(low) if high == low + 1 else f"{low}..{high}" for low, high in box)
    return f"{tensor}[{', '.join(ranges)}]"


def program_text(program: Sequence[int]) -> str:
    return f"program ({', '.join(map(str, program))})" if program else "the program"


def _at(value: Polynomial, values: Mapping[Unknown, int]) -> int:
    # What a question did not depend on may be anything it can be: 0, or what is nearest.
    return value.at(lambda u: values.get(u, min(max(0, u.low), u.high)))
