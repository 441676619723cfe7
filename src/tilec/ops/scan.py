"""Scans: each element combined with all before it along an axis, or with all after it (`_rev`).

f16 and bf16 sums and products are computed in f32 and rounded once an element. The order of the
axis is kept, so that combiners need not be commutative; how they are grouped is not stated.
`cummax` and `cummin` ignore NaN as `max` and `min` do: where all so far is NaN, they are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.layout import Layout, dropped
from tilec.layout.costs import scan_cost
from tilec.layout.scan import can_scan, scan_plan
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import constant, integer, make, make_with_body, segments, shape_of
from tilec.ops.call import Call, Emission, Form, Operation, Receiver, Value
from tilec.ops.combiner import combination, expect_combination
from tilec.ops.convert import converted
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import pack, unpack
from tilec.ops.lower_reduce import Row
from tilec.ops.lower_scan import lower_scan
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.reduce import combining
from tilec.ops.rules import (
    Data,
    DataOf,
    Datum,
    Machine,
    OpRules,
    Places,
    Placing,
    conjunction,
)
from tilec.ops.uses import Domain
from tilec.ops.whole_arrays import works_on_arrays
from tilec.types import BF16, F16, F32, TupleType, Type

Combine = Callable[[Sequence[ir.Value], Sequence[ir.Value]], Sequence[ir.Value]]


def scanned(
    tiles: Sequence[ir.Value],
    starts: Sequence[ir.Value],
    axis: int,
    combine: Combine,
    *,
    reverse: bool,
) -> list[ir.Value]:
    """`tile.scan` of tiles of one shape at once.

    Shapes:   `starts`, one a tile, lack the axis; `combine(so far, next)` works on scalars
    """
    elements = [ir.RankedTensorType(tile.type).element_type for tile in tiles]
    count = len(tiles)

    def body(block: ir.Block) -> Sequence[ir.Value]:
        arguments = list(block.arguments)
        return combine(arguments[:count], arguments[count:])

    op = make_with_body(
        "tile.scan",
        [tile.type for tile in tiles],
        [*tiles, *starts],
        body,
        [*elements, *elements],
        terminator="gpu.yield",
        axis=integer(axis),
        reverse=integer(reverse, 1),
        operandSegmentSizes=segments(*_present(count), *_present(count)),
        resultSegmentSizes=segments(*_present(count)),
    )
    return list(op.results)


# What the declaration in `dialects/` has places for.
MOST_TILES = 4


def _present(count: int) -> list[int]:
    return [int(number < count) for number in range(MOST_TILES)]


class _Cumulative(Operation):
    """A scan with one of the combinations that reductions have."""

    form = Form.METHOD
    receiver = Receiver.TILE
    turbofish = True

    def __init__(self, word: str, like: str, summary: str, *, reverse: bool) -> None:
        self.like, self.reverse = like, reverse
        self.name = f"{word}_rev" if reverse else word
        self.signature = f"t.{self.name}::<AXIS>()"
        self.summary = f"{summary} {'from here on' if reverse else 'so far'} along an axis."

    def result_type(self, call: Call) -> Type:
        uses.expect_counts(call, 1, 1)
        tile = uses.expect_domain(call, 0, Domain.NUMBER)
        uses.axis(call, tile.rank)
        return tile

    def emit(self, emission: Emission) -> ir.Value:
        [tile] = emission.operands
        [number] = emission.generics or ()
        assert isinstance(tile, ir.Value) and isinstance(number, int)
        element = element_in(emission.types[0])
        wide = F32 if self.like in ("sum", "prod") and element in (F16, BF16) else element
        op, start = combining(self.like, wide)
        shape = shape_of(tile)
        axis = number % len(shape)
        kept = (*shape[:axis], *shape[axis + 1 :])
        first = constant(wide, start)
        laid = make("tensor.splat", ir.RankedTensorType.get(kept, first.type), first)
        [result] = scanned(
            [converted(tile, element, wide)],
            [laid],
            axis,
            lambda sofar, item: [make(op, sofar[0].type, sofar[0], item[0])],
            reverse=self.reverse,
        )
        return converted(result, wide, element)


class _Scan(Operation):
    form = Form.METHOD
    turbofish = True

    def __init__(self, receiver: Receiver, signature: str, summary: str, *, reverse: bool) -> None:
        self.receiver, self.summary, self.reverse = receiver, summary, reverse
        self.name = "scan_rev" if reverse else "scan"
        self.signature = signature.replace("scan", self.name)

    def result_type(self, call: Call) -> Type:
        combined = expect_combination(call)
        if len(combined.elements) > MOST_TILES:
            message = f"`{call.name}` takes up to {MOST_TILES} tiles, got {len(combined.elements)}"
            raise uses.refuse("E0203", message, Label(call.arguments[0].span))
        return combined.typed(combined.shape)

    def emit(self, emission: Emission) -> Value:
        made = combination(emission)
        results = scanned(made.tiles, made.starts, made.axis, made.combine, reverse=self.reverse)
        return tuple(results) if isinstance(emission.result, TupleType) else results[0]


_CUMULATIVE = (
    ("cumsum", "sum", "The sum"),
    ("cumprod", "prod", "The product"),
    ("cummax", "max", "The largest number (NaN if there is none)"),
    ("cummin", "min", "The smallest number (NaN if there is none)"),
)
_SCANS = (
    (
        Receiver.TILE,
        "t.scan::<AXIS>(init, |a, b| …)",
        "Any associative combination along an axis{}, from `init` on (a scalar, or a tile with"
        " extent 1 along the axis): `a` is what is so far, `b` the next element.",
    ),
    (
        Receiver.TUPLE,
        "(t, u).scan::<AXIS>((init, from), |(a, b), (c, d)| …)",
        "The same of tiles of one shape together: what is combined are tuples of elements.",
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    *(_Cumulative(*family, reverse=reverse) for reverse in (False, True) for family in _CUMULATIVE),
    *(
        _Scan(
            receiver,
            signature,
            summary.format(", from its end" if reverse else ""),
            reverse=reverse,
        )
        for reverse in (False, True)
        for receiver, signature, summary in _SCANS
    ),
)


class _TileScan(OpRules):
    """The odd elements by a scan of pairs, the even ones from the odd ones before them."""

    name = "tile.scan"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        count = len(operands) // 2
        axis, reverse = _axis(op), _reverse(op)
        tiles = [np.moveaxis(tile, axis, 0) for tile in operands[:count]]
        starts = [np.asarray(start)[None] for start in operands[count:]]
        block = op.regions[0].blocks[0]

        def combine(sofar: list[Datum], item: list[Datum]) -> list[Datum]:
            together = zip(sofar, item, strict=True)
            shapes = [np.broadcast_shapes(np.shape(s), np.shape(n)) for s, n in together]
            done = machine.run(block, [*sofar, *item])
            return [np.broadcast_to(d, shape) for d, shape in zip(done, shapes, strict=True)]

        if reverse:
            tiles = [tile[::-1] for tile in tiles]
        if works_on_arrays(block):
            results = combine(starts, _pairwise(tiles, combine))
        else:
            results = _element_by_element(tiles, starts, combine)
        if reverse:
            results = [result[::-1] for result in results]
        return [np.moveaxis(result, 0, axis) for result in results]

    def data(self, op: ir.OpView, data_of: DataOf) -> ir.Value | Data:
        """Those elements that are data themselves, whatever is before them."""
        found = [data_of(tile) for tile in list(op.operands)[: len(op.operands) // 2]]
        masks = [mask for mask in found if not isinstance(mask, Data)]
        if not masks or Data.UNKNOWN in found:
            return Data.UNKNOWN
        return conjunction(masks)

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        count = len(known) // 2
        axis = _axis(op)
        fitting = (layout for layout in known[:count] if layout and can_scan(layout, axis))
        layout = next(fitting, None) or placing.default(shape_of(op.operands[0]))
        start = dropped(layout, axis).layout
        return Places((*[layout] * count, *[start] * count), (layout,) * count)

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        layout = places.results[0]
        assert layout is not None, "`place` chooses a layout"
        return len(places.results) * scan_cost(layout, _axis(op))

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        count = len(operands) // 2
        layout, axis = layout_of(op.results[0].type), _axis(op)
        block = op.regions[0].blocks[0]

        def combine(sofar: Row, item: Row) -> Row:
            return tuple(lowering.emit(block, [*sofar, *item]))

        plan = scan_plan(layout, axis, reverse=_reverse(op))
        to_start = dropped(layout, axis).to_new
        fragments = list(map(unpack, operands[count:]))
        starts = [
            tuple(fragment[start] for fragment in fragments)
            for start in (to_start[register] for register in plan.tops)
            if start is not None
        ]
        rows = list(zip(*map(unpack, operands[:count]), strict=True))
        done = lower_scan(plan, rows, starts, combine, lowering)
        return [pack(column) for column in zip(*done, strict=True)]


def _axis(op: ir.OpView) -> int:
    axis: int = ir.IntegerAttr(op.attributes["axis"]).value
    return axis


def _reverse(op: ir.OpView) -> bool:
    return bool(ir.IntegerAttr(op.attributes["reverse"]).value)


def _pairwise(
    tiles: list[Datum], combine: Callable[[list[Datum], list[Datum]], list[Datum]]
) -> list[Datum]:
    """Scanned along the first axis, from the first element on."""
    length = len(tiles[0])
    if length == 1:
        return tiles
    even = length - length % 2
    pairs = combine([t[0:even:2] for t in tiles], [t[1:even:2] for t in tiles])
    odd = _pairwise(pairs, combine)
    results = [np.array(tile) for tile in tiles]
    later = len(tiles[0][2::2])
    if later:
        rest = combine([o[:later] for o in odd], [t[2::2] for t in tiles])
        for result, value in zip(results, rest, strict=True):
            result[2::2] = value
    for result, value in zip(results, odd, strict=True):
        result[1::2] = value
    return results


def _element_by_element(
    tiles: list[Datum],
    starts: list[Datum],
    combine: Callable[[list[Datum], list[Datum]], list[Datum]],
) -> list[Datum]:
    results = [np.array(tile) for tile in tiles]
    for place in np.ndindex(results[0].shape[1:]):
        sofar = [np.asarray(start[0][place]) for start in starts]
        for step in range(len(results[0])):
            here = step, *place
            sofar = combine(sofar, [np.asarray(tile[here]) for tile in tiles])
            for result, value in zip(results, sofar, strict=True):
                result[here] = value
    return results


RULES: tuple[OpRules, ...] = (_TileScan(),)
