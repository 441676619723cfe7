"""`linalg.reduce`: one or several tiles reduced together along axes, by the block that combines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from tilec.layout import Layout, dropped
from tilec.layout.costs import reduction_cost
from tilec.layout.reduction import reduction_plan
from tilec.ops.build import constant, make, shape_of
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import pack, unpack
from tilec.ops.lower_reduce import Row, lower_reduce
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.reduce import reduced
from tilec.ops.rules import Data, DataOf, Datum, Machine, OpRules, Places, Placing, conjunction
from tilec.ops.whole_arrays import works_on_arrays
from tilec.types import BOOL


class _LinalgReduce(OpRules):
    """Neighbours are combined in pairs, whole slices at once, until one slice is left."""

    name = "linalg.reduce"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        count = len(operands) // 2
        axes = tuple(op.attributes["dimensions"])
        tiles = [_reduced_axes_first(tile, axes) for tile in operands[:count]]
        starts = [np.asarray(start) for start in operands[count:]]
        block = op.regions[0].blocks[0]

        def combine(sofar: list[Datum], item: list[Datum]) -> list[Datum]:
            return machine.run(block, [*item, *sofar])

        if not works_on_arrays(block):
            return _element_by_element(tiles, starts, combine)
        while len(tiles[0]) > 1:
            tiles = _halved(tiles, combine)
        results = combine(starts, [tile[0] for tile in tiles])
        return [np.broadcast_to(r, s.shape) for r, s in zip(results, starts, strict=True)]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        """A slice is data if an element of it is."""
        found = [data_of(tile) for tile in list(op.operands)[: len(op.operands) // 2]]
        masks = [mask for mask in found if not isinstance(mask, Data)]
        if not masks or Data.UNKNOWN in found:
            return Data.UNKNOWN
        [either] = reduced(
            [conjunction(masks)],
            [constant(BOOL, False)],
            list(op.attributes["dimensions"]),
            lambda sofar, item: [make("arith.ori", sofar[0].type, sofar[0], item[0])],
        )
        return either

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        count = len(known) // 2
        shape = shape_of(op.operands[0])
        source = next((k for k in known[:count] if k is not None), None) or placing.default(shape)
        result = dropped(source, *op.attributes["dimensions"]).layout
        return Places((*[source] * count, *[result] * count), (result,) * count)

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        source, [result, *_] = places.operands[0], places.results
        assert source is not None and result is not None
        axes = tuple(op.attributes["dimensions"])
        return len(places.results) * reduction_cost(source, result, axes)

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        count = len(operands) // 2
        axes = tuple(op.attributes["dimensions"])
        block = op.regions[0].blocks[0]

        def combine(sofar: Row, item: Row) -> Row:
            return tuple(lowering.emit(block, [*item, *sofar]))

        plan = reduction_plan(layout_of(op.operands[0].type), *axes)
        columns = lower_reduce(plan, [unpack(v) for v in operands[:count]], combine, lowering)
        view = dropped(plan.result, *axes)
        assert view.layout == layout_of(op.results[0].type), "`place` chose the plan's layout"
        starts = list(zip(*map(unpack, operands[count:]), strict=True))
        rows = [tuple(column[r] for column in columns) for r in view.to_old]
        done = [combine(start, row) for start, row in zip(starts, rows, strict=True)]
        return [pack(column) for column in zip(*done, strict=True)]


def _reduced_axes_first(tile: Datum, axes: tuple[int, ...]) -> Datum:
    """Shapes: (…) -> (product of the reduced extents, kept extents…), in row-major order."""
    kept = [a for a in range(tile.ndim) if a not in axes]
    moved = np.transpose(tile, (*axes, *kept))
    return moved.reshape(-1, *(tile.shape[a] for a in kept))


def _halved(
    tiles: list[Datum], combine: Callable[[list[Datum], list[Datum]], list[Datum]]
) -> list[Datum]:
    length = len(tiles[0])
    even = length - length % 2
    pairs = combine([t[0:even:2] for t in tiles], [t[1:even:2] for t in tiles])
    if even == length:
        return pairs
    return [np.concatenate([p, t[even:]]) for p, t in zip(pairs, tiles, strict=True)]


def _element_by_element(
    tiles: list[Datum],
    starts: list[Datum],
    combine: Callable[[list[Datum], list[Datum]], list[Datum]],
) -> list[Datum]:
    results = [np.array(start) for start in starts]
    for place in np.ndindex(results[0].shape):
        sofar = [np.asarray(result[place]) for result in results]
        for step in range(len(tiles[0])):
            sofar = combine(sofar, [np.asarray(tile[step][place]) for tile in tiles])
        for result, value in zip(results, sofar, strict=True):
            result[place] = value
    return results


RULES: tuple[OpRules, ...] = (_LinalgReduce(),)
