"""Reductions: along an axis, which stays with extent 1, or of all elements to a scalar.

f16 and bf16 sums and products are computed in f32 and rounded once. The order is not stated:
combiners are associative and commutative. `min`/`max` start from NaN, which the first number
replaces, so that a tile of NaN alone gives NaN; `argmax` and `argmin` order floats with NaN as the
largest and take the first of equals, so the index is always inside the axis.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from math import inf, nan

from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ir.types import tile_type
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import (
    broadcast_along,
    chosen,
    compared,
    constant,
    integers,
    make,
    make_with_body,
    regroup,
    shape_of,
)
from tilec.ops.call import Call, Emission, Form, Operation, Receiver, Value
from tilec.ops.combiner import combination, expect_combination
from tilec.ops.convert import converted
from tilec.ops.extremes import extreme_op
from tilec.ops.make import counted
from tilec.ops.uses import Domain
from tilec.types import (
    BF16,
    F16,
    F32,
    I32,
    Element,
    ElementLike,
    Kind,
    TileType,
    TupleType,
    Type,
    scalar,
)


def reduced(
    tiles: Sequence[ir.Value],
    starts: Sequence[ir.Value],
    axes: Sequence[int],
    combine: Callable[[Sequence[ir.Value], Sequence[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """`linalg.reduce` of tiles of one shape at once; the results lack the axes.

    Shapes:   `starts`, one a tile, are scalars, or tensors without the axes;
              `combine(so far, next)` works on scalars
    """
    kept = tuple(e for axis, e in enumerate(shape_of(tiles[0])) if axis not in axes)
    elements = [ir.RankedTensorType(tile.type).element_type for tile in tiles]
    results = [ir.RankedTensorType.get(kept, element) for element in elements]
    outs = [
        start if start.type == result else make("tensor.splat", result, start)
        for result, start in zip(results, starts, strict=True)
    ]
    count = len(tiles)

    def body(block: ir.Block) -> Sequence[ir.Value]:
        arguments = list(block.arguments)
        return combine(arguments[count:], arguments[:count])

    op = make_with_body(
        "linalg.reduce",
        results,
        [*tiles, *outs],
        body,
        [*elements, *elements],
        dimensions=integers(sorted(axes)),
    )
    return list(op.results)


class _Reduction(Operation):
    """One reduction in one of its forms: `x.sum::<1>()` or `x.sum_all()`."""

    form = Form.METHOD
    receiver = Receiver.TILE

    def __init__(self, word: str, summary: str, domain: Domain, *, name: str | None = None) -> None:
        self.word, self.domain = word, domain
        self.whole = name is not None
        self.name = name or word
        self.turbofish = not self.whole
        self.signature = f"t.{name}()" if name else f"t.{word}::<AXIS>()"
        self.summary = f"{summary} {'of all elements, a scalar' if name else 'along an axis'}."

    def result_type(self, call: Call) -> Type:
        if call.generics is None and not self.whole:
            message = f"`{self.name}` needs an axis"
            given = call.arguments[1].constant if len(call.arguments) == 2 else None
            axis = uses.constant_axis(given)
            written = 0 if axis is None else axis if axis >= 0 else f"{{{axis}}}"
            help = f"`.{self.name}::<{written}>()`, or `.{self.name}_all()` of all elements"
            raise uses.refuse("E0203", message, Label(call.name_span), help=help)
        uses.expect_counts(call, 1, 0 if self.whole else 1)
        tile = uses.expect_domain(call, 0, self.domain)
        element = self.result_element(tile)
        if self.whole:
            return scalar(element)
        axis = uses.axis(call, tile.rank)
        return TileType(element, _flattened(tile.shape, axis))

    def emit(self, emission: Emission) -> ir.Value:
        [tile] = emission.operands
        element = element_in(emission.types[0])
        rank = len(shape_of(tile))
        axes = list(range(rank)) if self.whole else [_axis(emission, rank)]
        assert isinstance(emission.result, TileType)
        result, own = self.reduced(element, tile, axes)
        whole = _finished(result, TileType(own, emission.result.shape))
        return converted(whole, own, element_in(emission.result))

    def result_element(self, tile: TileType) -> ElementLike:
        return tile.element

    @abstractmethod
    def reduced(
        self, element: Element, tile: ir.Value, axes: list[int]
    ) -> tuple[ir.Value, Element]:
        """The tile without the axes, and its element type until it is rounded."""


def _flattened(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _axis(emission: Emission, rank: int) -> int:
    [axis] = emission.generics or ()
    assert isinstance(axis, int)
    return axis % rank


def _finished(value: ir.Value, result: Type) -> ir.Value:
    """A tensor without the reduced axes as the tile with them, or as the scalar."""
    assert isinstance(result, TileType)
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    if result.is_scalar:
        return make("tensor.extract", ir.RankedTensorType(value.type).element_type, value)
    return regroup(value, element_in(result), result.shape)


class _Simple(_Reduction):
    """One combining operation and the number it starts from."""

    def reduced(
        self, element: Element, tile: ir.Value, axes: list[int]
    ) -> tuple[ir.Value, Element]:
        if not axes:
            return tile, element
        wide = F32 if self.word in ("sum", "prod") and element in (F16, BF16) else element
        tile = converted(tile, element, wide)
        op, start = combining(self.word, wide)
        [result] = reduced(
            [tile],
            [constant(wide, start)],
            axes,
            lambda sofar, item: [make(op, sofar[0].type, sofar[0], item[0])],
        )
        return result, wide


def combining(word: str, element: Element) -> tuple[str, int | float | bool]:
    """The operation that combines, and what it starts from."""
    match word:
        case "sum":
            return ("arith.addf", -0.0) if element.is_float else ("arith.addi", 0)
        case "prod":
            return ("arith.mulf", 1.0) if element.is_float else ("arith.muli", 1)
        case "any":
            return "arith.ori", False
        case "all":
            return "arith.andi", True
    return extreme_op(word, element), _worst(word, element)


def _worst(word: str, element: Element) -> int | float:
    """What every number beats."""
    if element.is_float:
        return {"min": nan, "max": nan, "minimum": inf, "maximum": -inf}[word]
    low, high = integer_range(element)
    return low if word == "max" else high


def integer_range(element: Element) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    if element.kind is Kind.SIGNED:
        return -(1 << element.bits - 1), (1 << element.bits - 1) - 1
    return 0, (1 << element.bits) - 1


class _Arg(_Reduction):
    """The index of the first extreme element, as `i32`."""

    def result_element(self, tile: TileType) -> ElementLike:
        return I32

    def reduced(
        self, element: Element, tile: ir.Value, axes: list[int]
    ) -> tuple[ir.Value, Element]:
        if not axes:
            return constant(I32, 0), I32
        if self.word == "argmax":
            worst = -inf if element.is_float else integer_range(element)[0]
        else:
            worst = nan if element.is_float else integer_range(element)[1]
        starts = [constant(element, worst), constant(I32, integer_range(I32)[1])]
        places = _places(shape_of(tile), axes)
        combine = _first_extreme(element, largest=self.word == "argmax")
        return reduced([tile, places], starts, axes, combine)[1], I32


def _places(shape: tuple[int, ...], axes: list[int]) -> ir.Value:
    """The index of each element along the one axis, or among all elements."""
    if len(axes) == len(shape):
        total = 1
        for extent in shape:
            total *= extent
        return regroup(counted(I32, total), I32, shape)
    [axis] = axes
    others = [a for a in range(len(shape)) if a != axis]
    return broadcast_along(counted(I32, shape[axis]), tile_type(TileType(I32, shape)), others)


def _first_extreme(
    element: Element, *, largest: bool
) -> Callable[[Sequence[ir.Value], Sequence[ir.Value]], Sequence[ir.Value]]:
    """The better of two (value, index) pairs: NaN counts as largest, then the smaller index."""

    def combine(sofar: Sequence[ir.Value], item: Sequence[ir.Value]) -> Sequence[ir.Value]:
        (best, place), (value, index) = sofar, item
        better, same = _order(element, value, best) if largest else _order(element, best, value)
        earlier = _and(same, compared("slt", index, place))
        take = _or(better, earlier)
        return [chosen(take, value, best), chosen(take, index, place)]

    return combine


def _order(element: Element, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether a is above b, and whether they are equal, with NaN as the largest."""
    if not element.is_float:
        return compared("sgt" if element.is_signed else "ugt", a, b), compared("eq", a, b)
    a_nan, b_nan = compared("uno", a, a), compared("uno", b, b)
    b_number = compared("oeq", b, b)
    above = _or(compared("ogt", a, b), _and(a_nan, b_number))
    return above, _or(compared("oeq", a, b), _and(a_nan, b_nan))


def _and(a: ir.Value, b: ir.Value) -> ir.Value:
    return make("arith.andi", a.type, a, b)


def _or(a: ir.Value, b: ir.Value) -> ir.Value:
    return make("arith.ori", a.type, a, b)


class _Reduce(Operation):
    name = "reduce"
    form = Form.METHOD
    turbofish = True

    def __init__(self, receiver: Receiver, signature: str, summary: str) -> None:
        self.receiver, self.signature, self.summary = receiver, signature, summary

    def result_type(self, call: Call) -> Type:
        combined = expect_combination(call)
        return combined.typed(combined.flattened)

    def emit(self, emission: Emission) -> Value:
        made = combination(emission)
        results = reduced(made.tiles, made.starts, [made.axis], made.combine)
        if isinstance(emission.result, TupleType):
            pairs = zip(results, emission.result.items, strict=True)
            return tuple(_finished(value, kind) for value, kind in pairs)
        return _finished(results[0], emission.result)


_FAMILIES: tuple[tuple[type[_Reduction], str, str, Domain], ...] = (
    (_Simple, "sum", "Sum", Domain.NUMBER),
    (_Simple, "prod", "Product", Domain.NUMBER),
    (_Simple, "min", "The smallest number (NaN if there is none)", Domain.NUMBER),
    (_Simple, "max", "The largest number (NaN if there is none)", Domain.NUMBER),
    (_Simple, "minimum", "The smallest float, NaN if one is NaN,", Domain.FLOAT),
    (_Simple, "maximum", "The largest float, NaN if one is NaN,", Domain.FLOAT),
    (_Simple, "any", "Whether one holds", Domain.BOOL),
    (_Simple, "all", "Whether each holds", Domain.BOOL),
    (
        _Arg,
        "argmax",
        "The `i32` index of the first largest element (NaN is largest)",
        Domain.NUMBER,
    ),
    (
        _Arg,
        "argmin",
        "The `i32` index of the first smallest element (NaN is largest)",
        Domain.NUMBER,
    ),
)

OPERATIONS: tuple[Operation, ...] = (
    *(kind(word, summary, domain) for kind, word, summary, domain in _FAMILIES),
    *(kind(word, summary, domain, name=f"{word}_all") for kind, word, summary, domain in _FAMILIES),
    # `mask.any()`, as everyone writes it.
    *(
        _Simple(word, summary, domain, name=word)
        for kind, word, summary, domain in _FAMILIES
        if word in ("any", "all")
    ),
    _Reduce(
        Receiver.TILE,
        "t.reduce::<AXIS>(init, |a, b| …)",
        "Any associative and commutative combination along an axis, from `init` on (a scalar, or a"
        " tile with extent 1 along the axis), computed in its own type.",
    ),
    _Reduce(
        Receiver.TUPLE,
        "(t, u).reduce::<AXIS>((init, from), |(a, b), (c, d)| …)",
        "The same of tiles of one shape together: what is combined are tuples of elements.",
    ),
)
