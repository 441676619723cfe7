"""The addresses and masks of one access to global memory: a tile of a layout at a place in a view.

Registers that hold neighbouring elements along the contiguous axis form a *group*, moved by one
instruction of up to 16 bytes. Per axis, an element is inside when `low <= coordinate < high`, in
tile coordinates (i32): the 64-bit arithmetic is done once for the program, not once for an element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from mlir import ir

from tilec.ir.dialects import arith
from tilec.layout import Layout, contiguous_elements
from tilec.ops.bounds import Bounds
from tilec.ops.fragments import bit_width, element_offset, i32, in_memory, index
from tilec.ops.lowering import Lowering, View, assert_disjoint, register_coordinates, within_reach
from tilec.ops.notes import Accessed, AccessKind

Direction: TypeAlias = Literal["load", "store"]


@dataclass(frozen=True)
class Group:
    """Registers of one instruction in memory order, and the first one's coordinate in thread 0."""

    registers: tuple[int, ...]
    coordinate: tuple[int, ...]


class Access:
    """One access being lowered; each method emits at the insertion point that is current."""

    kinds: Mapping[Direction, AccessKind] = {"load": "load", "store": "store"}

    def __init__(
        self,
        lowering: Lowering,
        view: View,
        layout: Layout,
        shape: tuple[int, ...],
        indices: Sequence[ir.Value],
        unit: str,
        bounds: Sequence[Bounds],
        lying: Sequence[int] | None = None,
    ) -> None:
        """`lying` are the axes of the view along which the tile lies as one piece: all, if None."""
        assert_disjoint(layout)
        self.lowering = lowering
        self.view = view
        self.layout = layout
        self.shape = shape
        self.bounds = tuple(bounds)
        self.element = in_memory(view.element)
        self.element_bytes = bit_width(view.element) // 8
        self.width = vector_width(
            layout, view.contiguous, self.element_bytes, self.bounds, lowering.vector_bytes
        )
        if self.width > 1:
            lowering.takes_aligned(view.parameter, self.width * self.element_bytes)
        self.lying = frozenset(range(view.rank) if lying is None else lying)
        self.starts = tuple(self._start(value, axis, unit) for axis, value in enumerate(indices))
        self._masks: dict[tuple[int, int, int], ir.Value] = {}

    def _start(self, value: ir.Value, axis: int, unit: str) -> ir.Value:
        """The coordinate in the view (index) of the tile's first element along an axis."""
        # What begins in its tensor is within reach.
        if not (self.bounds[axis].inside or self.bounds[axis].begins):
            value = within_reach(value)
        if unit == "tile" and self.shape[axis] != 1:
            value = arith.muli(value, index(self.shape[axis]))
        return value

    def note(self, direction: Direction) -> None:
        """Keep what this access is like, once its code is wanted."""
        near = self.view.contiguous if self.view.contiguous in self.lying else None
        self.lowering.note(
            Accessed(
                self.kinds[direction], self.view.parameter, self.layout, self.element_bytes,
                self.width, len(self.groups), self.masked, near,
            )
        )  # fmt: skip

    # ---- groups --------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Every element this thread holds, once, in groups of `width`."""
        register_of: dict[tuple[int, ...], int] = {}
        for register, coordinate in enumerate(register_coordinates(self.layout)):
            register_of.setdefault(coordinate, register)
        found = []
        axis = self.view.contiguous
        for coordinate in register_of:
            if self.width > 1 and axis is not None and coordinate[axis] % self.width:
                continue
            members = [coordinate]
            if self.width > 1 and axis is not None:
                members = [_shifted(coordinate, axis, j) for j in range(self.width)]
            found.append(Group(tuple(register_of[m] for m in members), coordinate))
        return tuple(found)

    @cached_property
    def rows(self) -> tuple[tuple[Group, ...], ...]:
        """The groups, by all but their coordinate along the contiguous axis."""
        found: dict[tuple[int, ...], list[Group]] = {}
        for group in self.groups:
            across = (c for axis, c in enumerate(group.coordinate) if axis != self.view.contiguous)
            found.setdefault(tuple(across), []).append(group)
        return tuple(map(tuple, found.values()))

    def along(self, group: Group) -> int:
        """The coordinate of a group along the contiguous axis."""
        assert self.view.contiguous is not None, "wide accesses are along an axis"
        return group.coordinate[self.view.contiguous]

    @cached_property
    def duplicates(self) -> tuple[int, ...]:
        """For each register, the first one with the same element."""
        first: dict[tuple[int, ...], int] = {}
        coordinates = register_coordinates(self.layout)
        return tuple(first.setdefault(c, register) for register, c in enumerate(coordinates))

    # ---- addresses -----------------------------------------------------------------------------

    @cached_property
    def _thread_pointer(self) -> ir.Value:
        total: ir.Value | None = None
        for axis in range(self.view.rank):
            position = arith.addi(self.view.starts[axis], self.starts[axis])
            if self.shape[axis] > 1 and axis in self.lying:
                coordinate = self.lowering.thread_coordinate(self.layout, axis)
                position = arith.addi(position, arith.index_cast(ir.IndexType.get(), coordinate))
            if axis != self.view.contiguous:
                position = arith.muli(position, self.view.strides[axis])
            total = position if total is None else arith.addi(total, position)
        if total is None:
            return self.view.base
        return element_offset(self.view.base, _as_i64(total), self.element)

    def address(self, group: Group, element: int = 0) -> ir.Value:
        """The address (ptr<1>) of one element of a group."""
        pointer = self._origin(group)
        rest: ir.Value | None = None
        near = element
        for axis, coordinate in enumerate(group.coordinate):
            if axis not in self.lying:
                continue
            if axis == self.view.contiguous:
                near += coordinate
            elif coordinate:
                term = arith.muli(self.view.strides[axis], index(coordinate))
                rest = term if rest is None else arith.addi(rest, term)
        if rest is not None:
            pointer = element_offset(pointer, _as_i64(rest), self.element)
        return element_offset(pointer, i32(near), self.element) if near else pointer

    def address_along(self, group: Group) -> ir.Value:
        """The address (ptr<1>) from which `along` is counted in the row of a group."""
        row = (0 if a == self.view.contiguous else c for a, c in enumerate(group.coordinate))
        return self.address(Group(group.registers, tuple(row)))

    def _origin(self, group: Group) -> ir.Value:
        """The address that coordinates of the group's registers are counted from."""
        return self._thread_pointer

    # ---- masks ---------------------------------------------------------------------------------

    @cached_property
    def _limits(self) -> tuple[tuple[ir.Value | None, ir.Value] | None, ...]:
        """Per axis `low` (None: zero) and `high` in tile coordinates (i32); None: all is inside."""
        found: list[tuple[ir.Value | None, ir.Value] | None] = []
        for axis, bounds in enumerate(self.bounds):
            if bounds.inside or axis not in self.lying:
                found.append(None)
                continue
            size = index(self.shape[axis])
            zero = index(0)
            left = arith.subi(self.view.extents[axis], self.starts[axis])
            high = arith.minsi(left, size)
            high = _as_i32(high if bounds.begins else arith.maxsi(high, zero))
            low = None
            if not bounds.nonnegative:
                before = arith.subi(zero, self.starts[axis])
                low = _as_i32(arith.maxsi(arith.minsi(before, size), zero))
            found.append((low, high))
        return tuple(found)

    @property
    def masked(self) -> bool:
        """Whether any element can be outside."""
        return not all(b.inside for b in self.bounds)

    def mask(self, group: Group) -> ir.Value | None:
        """Whether the whole group is inside (i1); None if it always is."""
        return self._mask(group, 0, self.width)

    def element_mask(self, group: Group, element: int) -> ir.Value | None:
        """Whether one element of the group is inside (i1); None if it always is."""
        return self._mask(group, element, 1)

    def _mask(self, group: Group, first: int, count: int) -> ir.Value | None:
        total: ir.Value | None = None
        for axis, limit in enumerate(self._limits):
            if limit is None:
                continue
            along = axis == self.view.contiguous
            position = group.coordinate[axis] + (first if along else 0)
            term = self._axis_mask(axis, position, count if along else 1)
            total = term if total is None else arith.andi(total, term)
        return total

    def _axis_mask(self, axis: int, position: int, count: int) -> ir.Value:
        key = (axis, position, count)
        if key in self._masks:
            return self._masks[key]
        limit = self._limits[axis]
        assert limit is not None, "only axes that can be partial are masked"
        low, high = limit
        coordinate = self.lowering.thread_coordinate(self.layout, axis)
        # coordinate + position + count <= high, with the constants on the program's side.
        last = arith.subi(high, i32(position + count - 1))
        inside = arith.cmpi(arith.CmpIPredicate.slt, coordinate, last)
        if low is not None:
            first = arith.subi(low, i32(position))
            above = arith.cmpi(arith.CmpIPredicate.sge, coordinate, first)
            inside = arith.andi(inside, above)
        self._masks[key] = inside
        return inside

    @property
    def may_be_ragged(self) -> bool:
        """Whether the view's end can lie inside a group."""
        axis = self.view.contiguous
        if self.width == 1 or axis is None or axis not in self.lying:
            return False
        bounds = self.bounds[axis]
        return not bounds.inside and bounds.extent_divisor % self.width != 0

    @cached_property
    def ragged(self) -> ir.Value | None:
        """Whether the view's end lies inside a group (i1, one for the program); None: never."""
        if not self.may_be_ragged:
            return None
        return arith.cmpi(arith.CmpIPredicate.ne, self.elements_of_cut_group, i32(0))

    def elements_left(self, group: Group) -> ir.Value:
        """How many elements (i32) there are to the view's end from the first of a group on."""
        axis = self.view.contiguous
        assert axis is not None, "wide accesses are along an axis"
        limit = self._limits[axis]
        assert limit is not None, "what is inside as a whole is not cut"
        coordinate = self.lowering.thread_coordinate(self.layout, axis)
        return arith.subi(arith.subi(limit[1], i32(group.coordinate[axis])), coordinate)

    @cached_property
    def elements_of_cut_group(self) -> ir.Value:
        """How many elements (i32) of a group that the view's end lies in are inside."""
        axis = self.view.contiguous
        assert axis is not None, "wide accesses are along an axis"
        limit = self._limits[axis]
        assert limit is not None, "what is inside as a whole is not cut"
        return arith.andi(limit[1], i32(self.width - 1))


def vector_width(
    layout: Layout,
    contiguous: int | None,
    element_bytes: int,
    bounds: Sequence[Bounds],
    vector_bytes: int,
) -> int:
    """How many elements one instruction may move, by the layout and by alignment.

    Units:    `vector_bytes`: what pointers and outer strides are multiples of
    """
    if contiguous is None:
        return 1
    width = max(1, vector_bytes // element_bytes)
    width = min(width, contiguous_elements(layout, contiguous))
    while bounds[contiguous].divisor % width:
        width //= 2
    return width


def _shifted(coordinate: tuple[int, ...], axis: int, by: int) -> tuple[int, ...]:
    return (*coordinate[:axis], coordinate[axis] + by, *coordinate[axis + 1 :])


def _as_i64(value: ir.Value) -> ir.Value:
    return arith.index_cast(ir.IntegerType.get_signless(64), value)


def _as_i32(value: ir.Value) -> ir.Value:
    return arith.index_cast(ir.IntegerType.get_signless(32), value)
