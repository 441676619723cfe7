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

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.layout import Layout
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import integer_list, regroup, shape_of, spread
from tilec.ops.call import Call, Emission
from tilec.ops.convert import converted
from tilec.ops.formats import Array
from tilec.ops.rules import Datum, Places, Placing, is_tile
from tilec.types import USIZE, TileType

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
    tiled = {ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(op.attributes["tiled"])}
    scalar, tile = iter(scalars), iter(tiles)
    found = [next(tile if axis in tiled else scalar) for axis in range(len(scalars) + len(tiles))]
    return [np.broadcast_to(index, shape) for index in found]


def block_of(
    op: ir.OpView, scalars: Sequence[Datum], tiles: Sequence[Datum], shape: tuple[int, ...]
) -> list[Array]:
    """The same of a block: a scalar is where it starts along its axis."""
    tiled = {ir.IntegerAttr(axis).value for axis in ir.ArrayAttr(op.attributes["tiled"])}
    steps = np.indices(shape, np.int64, sparse=True)
    return [
        index if axis in tiled else index + steps[axis]
        for axis, index in enumerate(places_of(op, scalars, tiles, shape))
    ]


def placed_by_default(op: ir.OpView, placing: Placing) -> Places:
    """Every tile as if nothing asked anything of it."""

    def layouts(values: Sequence[ir.Value]) -> tuple[Layout | None, ...]:
        return tuple(placing.default(shape_of(v)) if is_tile(v) else None for v in values)

    return Places(layouts(list(op.operands)), layouts(list(op.results)))
