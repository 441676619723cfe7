"""Accesses of one thread to elements that values of indices choose.

Along some axes of the view the tile lies as one piece, as in `load_at`; along the others an index
says where each of its elements is. Rows of a table are chosen so, and each is moved in pieces as
wide as those of a load: the layout is one for loads, and the index of a row is held by every
thread that has some of it (`projected`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ir.types import is_tile
from tilec.layout import Layout, projected
from tilec.ops.bounds import Bounds, bounds_of
from tilec.ops.fragments import certain, element_offset, index, unpack
from tilec.ops.index_tiles import axes_of
from tilec.ops.lowering import Lowered, Lowering, View
from tilec.ops.memory_layout import contiguous_axis, held_layout
from tilec.ops.notes import AccessKind
from tilec.ops.rules import AccessShape, IndexedShape, shape_of
from tilec.ops.thread_access import Access, Direction, Group


@dataclass
class Chosen:
    """Elements of a view by their indices along some axes, one for each number of a register.

    Units:    indices count elements of the view, as `index` values; any number may be one
    """

    view: View
    indices: Mapping[int, Sequence[ir.Value]]  # by axis
    is_checked: bool
    _offsets: dict[int, ir.Value] = field(default_factory=dict)
    _masks: dict[int, ir.Value] = field(default_factory=dict)

    def offset(self, register: int) -> ir.Value:
        """How many elements (index) the indices of this register are from the view's start.

        It has a meaning where `mask` holds, and is some number elsewhere.
        """
        if register not in self._offsets:
            total = index(0)
            for axis, values in self.indices.items():
                step = values[register]
                if axis != self.view.contiguous:
                    step = arith.muli(step, self.view.strides[axis])
                total = arith.addi(total, step)
            self._offsets[register] = total
        return self._offsets[register]

    def mask(self, register: int) -> ir.Value | None:
        """Whether the indices of this register are inside (i1); None: nobody asks."""
        if not self.is_checked or not self.indices:
            return None
        if register not in self._masks:
            total: ir.Value | None = None
            for axis, values in self.indices.items():
                # As unsigned numbers, indices below zero are beyond any extent.
                below = arith.CmpIPredicate.ult
                inside = arith.cmpi(below, values[register], self.view.extents[axis])
                total = inside if total is None else arith.andi(total, inside)
            assert total is not None, "there is an index"
            self._masks[register] = total
        return self._masks[register]


class IndexedAccess(Access):
    """An access along some axes of which indices choose."""

    kinds: Mapping[Direction, AccessKind] = {"load": "gather", "store": "scatter"}

    def __init__(
        self,
        lowering: Lowering,
        view: View,
        layout: Layout,
        shape: IndexedShape,
        starts: Sequence[ir.Value | None],
        chosen: Chosen,
        bounds: Sequence[Bounds],
    ) -> None:
        """`starts` and the indices of `chosen` are those of `shape`, lowered."""
        lying = shape.lying
        placed = [index(0) if start is None else start for start in starts]
        super().__init__(lowering, view, layout, shape.shape, placed, "element", bounds, lying)
        self.chosen = chosen
        self.row_of = _rows(shape, layout)
        self._origins: dict[int, ir.Value] = {}

    @property
    def masked(self) -> bool:
        return super().masked or self.chosen.is_checked

    def _origin(self, group: Group) -> ir.Value:
        if not self.chosen.indices:
            return self._thread_pointer
        row = self.row_of[group.registers[0]]
        if row not in self._origins:
            offset = arith.index_cast(ir.IntegerType.get_signless(64), self.chosen.offset(row))
            self._origins[row] = element_offset(self._thread_pointer, offset, self.element)
        return self._origins[row]

    def _mask(self, group: Group, first: int, count: int) -> ir.Value | None:
        along = super()._mask(group, first, count)
        row = self.chosen.mask(self.row_of[group.registers[0]])
        if along is None or row is None:
            return along if row is None else row
        return arith.andi(along, row)


def indexed_access(
    op: ir.OpView,
    access: IndexedShape,
    view: Lowered,
    indices: Sequence[Lowered],
    lowering: Lowering,
) -> IndexedAccess:
    """The access of an operation; `indices` are its scalars, then its tiles, lowered."""
    assert isinstance(view, View)
    starts, chosen = axes_of(op, indices)
    places = Chosen(view, registers_of(access, chosen), "unchecked" not in op.attributes)
    layout = held_layout(access.tile, lowering.warps)
    bounds = effective_bounds(op, access)
    return IndexedAccess(lowering, view, layout, access, starts, places, bounds)


def as_block(access: IndexedShape) -> AccessShape:
    """The access as one that lies along every axis: what layouts of memory are chosen by."""
    return AccessShape(access.tile, access.view, (), access.shape, "element")


def effective_bounds(op: ir.OpView, access: IndexedShape) -> tuple[Bounds, ...]:
    """What is known of each axis, and along which neighbours in memory are neighbours in the tile.

    Where each element has an index of its own, those along the contiguous axis are not neighbours.
    """
    bounds = list(bounds_of(op))
    axis = contiguous_axis(access.view)
    if axis is not None and axis not in _same_rows(access):
        bounds[axis] = replace(bounds[axis], divisor=1)
    return tuple(bounds)


def index_layout(access: IndexedShape, layout: Layout) -> Layout:
    """The layout of the index tiles of an access in this layout."""
    return projected(layout, *_same_rows(access)).layout


def registers_of(
    access: IndexedShape, lowered: Sequence[Lowered | None], count: int | None = None
) -> dict[int, list[ir.Value]]:
    """The registers of the lowered indices, by axis; a scalar is that of all `count` of them."""
    found: dict[int, list[ir.Value]] = {}
    for axis, (source, value) in enumerate(zip(access.chosen, lowered, strict=True)):
        if source is None:
            continue
        assert isinstance(value, ir.Value), "an index was lowered"
        found[axis] = unpack(value) if is_tile(source) else [value] * (count or 1)
    return found


def _same_rows(access: IndexedShape) -> tuple[int, ...]:
    """The axes of the tile along which all elements have the same indices."""
    tiles = [t for t in access.chosen if t is not None and is_tile(t)]
    if not tiles:
        return tuple(range(len(access.shape)))
    return tuple(axis for axis, extent in enumerate(shape_of(tiles[0])) if extent == 1)


def _rows(access: IndexedShape, layout: Layout) -> list[int]:
    """For each register of the layout, that of the index tiles which has its indices."""
    if not any(t is not None and is_tile(t) for t in access.chosen):
        return [0] * layout.registers
    return certain(projected(layout, *_same_rows(access)).to_new)
