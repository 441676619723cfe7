"""Who owns what of a tensor: index expressions by which no two programs meet.

A plan gives each axis of the grid to an axis of the tensor (to two, or to a guard), so that
programs which differ there touch different elements. What a random kernel stores by its plan is
free of races; what it stores otherwise mostly is not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.proofs.random_expressions import Expressions, enclosed


@dataclass(frozen=True)
class GridAxis:
    """One axis of the grid: the program's id along it, how many there are.

    `inner` divides the id in two, where the extent is a multiple of it: `p / inner`, `p % inner`.
    """

    id: str
    extent: str
    count: str
    inner: str | None = None


@dataclass
class Cell:
    """An axis of a tensor in cells of `width` elements; this program's are at `index`.

    With a `stride`, its cells are `index + k * stride` for every k; `aliases` are variables that
    walk over them.
    """

    index: str
    width: int
    stride: str | None = None
    aliases: list[str] = field(default_factory=list)


@dataclass
class Plan:
    """The cells by the tensor's axis (an axis without is free), and conditions around accesses."""

    cells: dict[int, Cell]
    guards: list[str]


@dataclass
class Tensor:
    name: str
    extents: tuple[str, ...]
    plan: Plan | None = None  # None for what is only read

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def type(self) -> str:
        return f"Tensor<i32, {', '.join(self.extents)}>"


def width(source: random.Random) -> int:
    """How many elements a program owns along an axis."""
    return source.choices((1, 2, 4, 8, 3), (5, 4, 3, 1, 1))[0]


def ceiling(extent: str, divisor: int | str) -> str:
    """How many cells an extent has."""
    if divisor == 1:
        return extent
    if extent.isdigit() and isinstance(divisor, int):
        return str(-(-int(extent) // divisor))
    return f"{enclosed(extent)}.div_ceil({divisor})"


def natural(said: Expressions, tensor: Tensor) -> tuple[list[GridAxis], Plan]:
    """A grid that is made for a tensor, and the plan that goes with it."""
    source = said.random
    free = list(range(tensor.rank))
    source.shuffle(free)
    grid: list[GridAxis] = []
    cells: dict[int, Cell] = {}
    for name in ("p", "q", "r")[: source.choices((1, 2, 3), (4, 4, 2))[0]]:
        if not free:
            break
        axis = free.pop()
        size = width(source)
        count = ceiling(tensor.extents[axis], size)
        if free and said.chance(0.3):
            inner_axis, inner_size = free.pop(), width(source)
            inner = enclosed(ceiling(tensor.extents[inner_axis], inner_size))
            grid.append(GridAxis(name, f"{enclosed(count)} * {inner}", f"g{name}", inner))
            cells[axis] = Cell(f"({name} / {inner})", size)
            cells[inner_axis] = Cell(f"({name} % {inner})", inner_size)
            continue
        axis_of_grid, cells[axis] = _single(said, name, tensor.extents[axis], size)
        grid.append(axis_of_grid)
    return grid, Plan(cells, [])


def _single(said: Expressions, name: str, extent: str, size: int) -> tuple[GridAxis, Cell]:
    """One axis of the grid over one of the tensor."""
    count = ceiling(extent, size)
    kind = said.random.choices(("plain", "strided", "several", "disguised"), (5, 3, 2, 4))[0]
    match kind:
        case "strided":
            count = said.random.choice(("2", "3", said.dim(), ceiling(said.dim(), 2), count))
            stride = said.random.choice((f"g{name}", count))
            return GridAxis(name, count, f"g{name}"), Cell(name, size, enclosed(stride))
        case "several":
            # Two or three neighbouring cells: one, in elements.
            times = said.random.choice((2, 2, 3))
            return GridAxis(name, ceiling(extent, size * times), f"g{name}"), Cell(
                name, size * times
            )
        case "disguised":
            return GridAxis(name, count, f"g{name}"), Cell(disguised(said, name, count), size)
    return GridAxis(name, count, f"g{name}"), Cell(name, size)


def disguised(said: Expressions, name: str, count: str) -> str:
    """An expression that is different for different ids below `count`."""
    count = enclosed(count)
    return said.random.choice(
        (
            f"({name} + {said.random.randint(1, 3)})",
            f"({name} - {said.random.randint(1, 3)})",
            f"({count} - 1 - {name})",
            f"({name} % {count})",
            f"{name}.min({count})",
            f"{name}.max(0)",
            f"({name} as i32)",
            f"({name} * 2)",
            f"({name} * 2 / 2)",
            f"(({name} + {said.dim()}) - {said.dim()})",
            f"(if {name} < 2 {{ 1 - {name} }} else {{ {name} }})",
        )
    )


def fitted(said: Expressions, tensor: Tensor, grid: list[GridAxis]) -> Plan:
    """A plan of a tensor for a grid that was made for another one."""
    free = list(range(tensor.rank))
    said.random.shuffle(free)
    cells: dict[int, Cell] = {}
    guards: list[str] = []
    for axis_of_grid in said.random.sample(grid, len(grid)):
        name, inner = axis_of_grid.id, axis_of_grid.inner
        if inner is not None and len(free) > 1 and said.chance(0.6):
            cells[free.pop()] = Cell(f"({name} / {inner})", width(said.random))
            cells[free.pop()] = Cell(f"({name} % {inner})", width(said.random))
        elif free and said.chance(0.9):
            index = name
            if said.chance(0.3):
                index = disguised(said, name, axis_of_grid.extent)
            cells[free.pop()] = Cell(index, width(said.random))
        elif cells and said.chance(0.6):
            # Two ids in one number, the second below the extent that multiplies the first.
            axis = said.random.choice(list(cells))
            first = cells[axis].index
            cells[axis].index = f"(({first} as usize) * {enclosed(axis_of_grid.extent)} + {name})"
        else:
            guards.append(f"{name} == {said.random.choice(('0', '0', '1'))}")
    return Plan(cells, guards)
