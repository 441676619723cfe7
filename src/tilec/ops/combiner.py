"""What `reduce` and `scan` take: a tile or a tuple of tiles, what they start from, a closure.

`t.reduce::<1>(0.0, |a, b| …)` combines elements; `(t, u).reduce::<1>((0.0, 0), |(a, b), (c, d)| …)`
combines pairs of them, for tiles of one shape. They start from scalars, or from tiles whose extent
along the axis is 1: each row from its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.diagnostics.diagnostic import CompileError, Label
from tilec.ir.types import tile_type
from tilec.ops import uses
from tilec.ops.broadcasting import element_in
from tilec.ops.build import make, regroup, shape_of
from tilec.ops.call import Argument, Call, Emission, Value
from tilec.types import ElementLike, TileType, TupleType, Type


@dataclass(frozen=True)
class Combined:
    """What a checked use combines: the elements of each tile, their one shape, the axis."""

    elements: tuple[ElementLike, ...]
    shape: tuple[int, ...]
    axis: int
    is_tuple: bool

    @property
    def flattened(self) -> tuple[int, ...]:
        """The shape with extent 1 along the axis."""
        return (*self.shape[: self.axis], 1, *self.shape[self.axis + 1 :])

    def typed(self, shape: tuple[int, ...]) -> Type:
        """A tile, or the tuple of tiles, of these elements."""
        tiles = tuple(TileType(element, shape) for element in self.elements)
        return TupleType(tiles) if self.is_tuple else tiles[0]


def expect_combination(call: Call) -> Combined:
    """A use of the form `tiles.name::<AXIS>(starts, closure)`. Raises E0202, E0203, E0301."""
    uses.expect_counts(call, 2, 1, closure=True)
    tiles = _items(call, 0)
    for tile in tiles[1:]:
        if tile.shape != tiles[0].shape:
            labelled = Label(call.arguments[0].span, f"this is `{call.arguments[0].type}`")
            raise uses.refuse(
                "E0301", f"`{call.name}` of a tuple takes tiles of one shape", labelled
            )
    shape = tiles[0].shape
    axis = uses.axis(call, len(shape))
    is_tuple = isinstance(call.arguments[0].type, TupleType)
    combined = Combined(tuple(tile.element for tile in tiles), shape, axis, is_tuple)
    elements = _expect_starts(call, combined)
    combined = Combined(elements, shape, axis, is_tuple)
    _expect_combiner(call, combined)
    return combined


def _items(call: Call, index: int) -> tuple[TileType, ...]:
    """The tiles of an argument: itself, or its items."""
    argument = call.arguments[index]
    if not isinstance(argument.type, TupleType):
        return (uses.expect_tile(call, index),)
    items = argument.type.items
    tiles = tuple(item for item in items if isinstance(item, TileType))
    if not items or len(tiles) < len(items):
        message = f"`{call.name}` combines tiles or tuples of tiles, got `{argument.type}`"
        raise uses.refuse("E0203", message, Label(argument.span))
    return tuple(TileType(call.inference.resolve(t.element), t.shape) for t in tiles)


def _expect_starts(call: Call, combined: Combined) -> tuple[ElementLike, ...]:
    """The element types, when those of the starts are known too."""
    argument = call.arguments[1]
    count = len(combined.elements)
    if isinstance(argument.type, TupleType) != combined.is_tuple:
        raise _wrong_start(call, combined, argument)
    starts = _items(call, 1)
    if len(starts) != count:
        raise _wrong_start(call, combined, argument)
    found = []
    for element, start in zip(combined.elements, starts, strict=True):
        if not start.is_scalar and start.shape != combined.flattened:
            labels = (
                Label(argument.span, f"this is `{start}`"),
                Label(call.arguments[0].span, f"this is `{call.arguments[0].type}`"),
            )
            shape = uses.shape_text(combined.flattened)
            message = f"`{call.name}` starts from scalars, or from tiles of shape {shape}"
            raise uses.refuse("E0301", message, *labels)
        if not call.inference.unify(element, start.element):
            raise uses.differing_elements(
                element, start.element, call.arguments[0].span, argument.span
            )
        found.append(call.inference.resolve(element))
    return tuple(found)


def _wrong_start(call: Call, combined: Combined, argument: Argument) -> CompileError:
    message = f"`{call.name}` starts from `{combined.typed(())}` here, got `{argument.type}`"
    return uses.refuse("E0203", message, Label(argument.span))


def _expect_combiner(call: Call, combined: Combined) -> None:
    assert call.closure is not None
    item = combined.typed(())
    got = call.closure((item, item))
    given = got.items if isinstance(got, TupleType) and combined.is_tuple else (got,)
    scalars = [part for part in given if isinstance(part, TileType) and part.is_scalar]
    if len(given) != len(combined.elements) or len(scalars) < len(given):
        raise _wrong_combiner(call, "E0203", item, got)
    for element, part in zip(combined.elements, scalars, strict=True):
        if not call.inference.unify(element, part.element):
            raise _wrong_combiner(call, "E0202", item, got)


def _wrong_combiner(call: Call, code: str, expected: Type, got: Type) -> CompileError:
    message = f"the combiner of `{call.name}` gives `{got}`, expected `{expected}`"
    return uses.refuse(code, message, Label(call.span))


# ---- emission ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Combination:
    """A use to be emitted. `starts` are tensors without the axis."""

    tiles: tuple[ir.Value, ...]
    starts: tuple[ir.Value, ...]
    axis: int
    combine: Callable[[Sequence[ir.Value], Sequence[ir.Value]], Sequence[ir.Value]]


def combination(emission: Emission) -> Combination:
    """What `expect_combination` accepted."""
    operands = [_values(value) for value in emission.operands]
    tiles, starts = operands
    types = [_types(kind) for kind in emission.types]
    shape = shape_of(tiles[0])
    [number] = emission.generics or ()
    assert isinstance(number, int) and emission.closure is not None
    closure, axis = emission.closure, number % len(shape)
    is_tuple = isinstance(emission.types[0], TupleType)

    def combine(sofar: Sequence[ir.Value], item: Sequence[ir.Value]) -> Sequence[ir.Value]:
        pair = (tuple(sofar), tuple(item)) if is_tuple else (sofar[0], item[0])
        return _values(closure(pair))

    kept = (*shape[:axis], *shape[axis + 1 :])
    laid = [_laid(start, kind, kept) for start, kind in zip(starts, types[0], strict=True)]
    return Combination(tiles, tuple(laid), axis, combine)


def _values(value: Value) -> tuple[ir.Value, ...]:
    if not isinstance(value, tuple):
        return (value,)
    return tuple(item for item in value if not isinstance(item, tuple))


def _types(kind: Type) -> tuple[Type, ...]:
    return kind.items if isinstance(kind, TupleType) else (kind,)


def _laid(start: ir.Value, kind: Type, shape: tuple[int, ...]) -> ir.Value:
    """What a tile starts from, one for each of its rows."""
    element = element_in(kind)
    if isinstance(start.type, ir.RankedTensorType):
        return regroup(start, element, shape)
    if not shape:
        return make("tensor.splat", ir.RankedTensorType.get((), start.type), start)
    return make("tensor.splat", tile_type(TileType(element, shape)), start)
