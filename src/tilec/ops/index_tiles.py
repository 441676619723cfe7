"""Index lists with tiles in them: what their shapes must be, and how they stand in the IR.

Two meanings. In a *block* (`gather`, `scatter`) the tensor's axes are those of a tile: a scalar is
where the tile starts along its axis, a tile of rank 1 chooses along its axis, and one of the tile's
own rank chooses for each element. In *pairs* (atomics) index tiles broadcast with each other, and
there is one access for each of their elements; a scalar is the same for all.

In the IR both are scalars for some axes, and tiles of one shape for the others, which `tiled`
lists. That shape stretches to the whole: an index for each row is no larger than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import is_tile
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import (
    compared,
    constant,
    integer_list,
    make,
    regroup,
    shape_of,
    spread,
)
from tilec.ops.call import Call, Emission
from tilec.ops.convert import converted
from tilec.ops.formats import Array
from tilec.ops.rules import Claim, Data, DataOf, Datum, IndexedShape, conjunction
from tilec.types import BOOL, USIZE, TileType

Item = TypeVar("Item")

# ---- types -------------------------------------------------------------------------------------


def expect_block(call: Call, position: int, shape: tuple[int, ...]) -> None:
    """E0301 unless the tiles of an index list choose elements of a tile of this shape."""
    for axis, index in enumerate(uses.index_tile_types(call, position)):
        along, whole = shape[axis : axis + 1], shape
        if index.is_scalar or any(_stretches(index.shape, wanted) for wanted in (along, whole)):
            continue
        wanted = dict.fromkeys(f"`{TileType(index.element, s)}`" for s in (along, whole))
        *others, last = ("a scalar", *wanted)
        choice = f"{', '.join(others)} or {last}"
        message = f"expected {choice} as the index along axis {axis}, got `{index}`"
        raise uses.refuse("E0301", message, Label(call.arguments[position].span))


def _stretches(own: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a tile broadcasts to a shape."""
    return len(own) == len(wanted) and all(a in (1, b) for a, b in zip(own, wanted, strict=True))


def paired_shape(call: Call, position: int) -> tuple[int, ...]:
    """The common shape of the tiles of an index list (E0301); none if all are scalars."""
    shape: tuple[int, ...] = ()
    for index in uses.index_tile_types(call, position):
        if index.is_scalar:
            continue
        if shape and not uses.fits(shape, index.shape):
            found = f"{uses.shape_text(shape)} and {uses.shape_text(index.shape)}"
            help = "add an axis with `.expand::<AXIS>()`" if len(shape) != index.rank else None
            message = f"the shapes of index tiles do not agree: {found}"
            raise uses.refuse("E0301", message, Label(call.arguments[position].span), help=help)
        shape = tuple(map(max, shape, index.shape)) if shape else index.shape
    uses.expect_size(shape, call.span)
    return shape


# ---- emission ----------------------------------------------------------------------------------


def index_operands(
    emission: Emission, position: int, shape: tuple[int, ...]
) -> tuple[list[ir.Value], list[ir.Value], ir.Attribute]:
    """The scalars and the tiles of an index list, and `tiled`.

    Shapes:   `shape` is that of the accesses; the tiles have one that stretches to it
    """
    types = uses.components_of(emission.types[position])
    values = emission.operands[position]
    assert types is not None and isinstance(values, tuple), "an index list is a tuple of values"
    scalars: list[ir.Value] = []
    tiles: list[ir.Value] = []
    tiled: list[int] = []
    for axis, (value, kind) in enumerate(zip(values, types, strict=True)):
        index = converted(value, element_in(kind), USIZE)
        if not shape_of(index):
            scalars.append(index)
            continue
        tiles.append(_along(index, axis, len(shape)))
        tiled.append(axis)
    common = [max(extents) for extents in zip(*map(shape_of, tiles), strict=True)]
    return scalars, [spread(tile, USIZE, common) for tile in tiles], integer_list(tiled)


def _along(index: ir.Value, axis: int, rank: int) -> ir.Value:
    """A tile of rank 1 as one that lies along an axis; another as it is."""
    own = shape_of(index)
    if len(own) == rank:
        return index
    return regroup(index, USIZE, tuple(own[0] if a == axis else 1 for a in range(rank)))


# ---- meaning -----------------------------------------------------------------------------------


def places_of(
    op: ir.OpView, scalars: Sequence[Datum], tiles: Sequence[Datum], shape: tuple[int, ...]
) -> list[Array]:
    """The index along each axis of every access, of `shape`; a scalar is the same for all."""
    found: list[Datum] = list(axes_of(op, (*scalars, *tiles))[0])
    for axis, index in enumerate(axes_of(op, (*scalars, *tiles))[1]):
        found[axis] = found[axis] if index is None else index
    return [np.broadcast_to(index, shape) for index in found]


def block_of(
    op: ir.OpView, scalars: Sequence[Datum], tiles: Sequence[Datum], shape: tuple[int, ...]
) -> list[Array]:
    """The same of a block: a scalar is where it starts along its axis."""
    starts, _ = axes_of(op, (*scalars, *tiles))
    steps = np.indices(shape, np.int64, sparse=True)
    return [
        index if starts[axis] is None else index + steps[axis]
        for axis, index in enumerate(places_of(op, scalars, tiles, shape))
    ]


# ---- as accesses -------------------------------------------------------------------------------


def axes_of(
    op: ir.OpView, indices: Sequence[Item]
) -> tuple[tuple[Item | None, ...], tuple[Item | None, ...]]:
    """For each axis its scalar, or None, and its tile, or None.

    `indices` are what stands for the operation's scalars, then for its tiles.
    """
    tiled = [ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(op.attributes["tiled"])]
    untiled = [axis for axis in range(len(indices)) if axis not in tiled]
    of = dict(zip((*untiled, *tiled), indices, strict=True))
    axes = range(len(indices))
    return (
        tuple(None if axis in tiled else of[axis] for axis in axes),
        tuple(of[axis] if axis in tiled else None for axis in axes),
    )


def claims_of_indexed(op: ir.OpView, access: IndexedShape) -> list[Claim]:
    """What is to hold of the place of an access, in checked builds: what a program vouches for.

    Elsewhere an index that is outside has a meaning in the language.
    """
    if "unchecked" not in op.attributes:
        return []
    masks = [_axis_inside(access, axis) for axis in range(len(access.starts))]
    groups = ([m for m in masks if is_tile(m)], [m for m in masks if not is_tile(m)])
    text = "every element is inside of the tensor"
    return [Claim(conjunction(group), text) for group in groups if group]


def data_of_indexed(access: IndexedShape, data_of: DataOf) -> ir.Value | Data:
    """Which elements are inside, by indices that are data themselves."""
    if not access.shape:
        return Data.UNKNOWN
    masks = []
    for axis, (start, index) in enumerate(zip(access.starts, access.chosen, strict=True)):
        if start is not None:
            masks.append(_line_inside(access, axis))
        elif index is not None:
            found = data_of(index) if is_tile(index) else Data.ALL
            if found is Data.UNKNOWN:
                return Data.UNKNOWN
            masks.append(_axis_inside(access, axis))
            masks += [found] if isinstance(found, ir.Value) else []
    return conjunction([spread(mask, BOOL, access.shape) for mask in masks])


def _axis_inside(access: IndexedShape, axis: int) -> ir.Value:
    """Whether an access is inside along an axis: one truth value, or one for each index."""
    start, index = access.starts[axis], access.chosen[axis]
    extent = make("memref.dim", ir.IndexType.get(), access.view, constant(USIZE, axis))
    if index is not None:
        # As unsigned numbers, indices below zero are beyond any extent.
        return compared("ult", index, spread(extent, USIZE, shape_of(index)))
    assert start is not None, "an axis has a start or an index"
    size = constant(USIZE, access.shape[axis])
    last = make("arith.subi", extent.type, extent, size)
    return conjunction([compared("sge", start, constant(USIZE, 0)), compared("sle", start, last)])


def _line_inside(access: IndexedShape, axis: int) -> ir.Value:
    """The same of each position along an axis, as a tile that stretches to the access."""
    start = access.starts[axis]
    assert start is not None, "the access lies along this axis"
    line = ir.RankedTensorType.get([access.shape[axis]], ir.IndexType.get())
    extent = make("memref.dim", ir.IndexType.get(), access.view, constant(USIZE, axis))
    place = make("arith.addi", line, make("tile.iota", line), make("tensor.splat", line, start))
    inside = compared("ult", place, make("tensor.splat", line, extent))
    shape = tuple(n if a == axis else 1 for a, n in enumerate(access.shape))
    return regroup(inside, BOOL, shape)
