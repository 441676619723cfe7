"""Whether a value's type is the type that its place expects."""

from __future__ import annotations

from tilec.diagnostics import Label
from tilec.frontend.inference import ElementInference
from tilec.frontend.refusal import refusal
from tilec.ops.conversions import conversion
from tilec.source import Span
from tilec.types import (
    ArrayType,
    Own,
    PartType,
    TensorType,
    TileType,
    TupleType,
    Type,
)


def expect(
    actual: Type,
    expected: Type,
    inference: ElementInference,
    span: Span,
    *others: Label,
    what: str = "",
) -> None:
    """Make two types one, fixing literals on the way.

    Raises:   CompileError: E0202 (elements), E0301 (shapes, extents), E0303 (ranks), E0203 (else)
    """
    found = _disagreement(actual, expected, inference)
    if found is None:
        return
    code, message, help = found
    if what:
        message = f"{what}: {message}"
    shown = inference.resolve_type(actual)
    text = f"expected `{inference.resolve_type(expected)}`, got `{shown}`"
    raise refusal(code, message, span, text, *others, help=help)


_Found = tuple[str, str, "str | None"]


def _disagreement(actual: Type, expected: Type, inference: ElementInference) -> _Found | None:
    match actual, expected:
        case TileType(), TileType():
            return _tiles(actual, expected, inference)
        case TupleType(items=left), TupleType(items=right) if len(left) == len(right):
            found = (_disagreement(a, b, inference) for a, b in zip(left, right, strict=True))
            return next((one for one in found if one), None)
        case ArrayType(), ArrayType() if actual.length == expected.length:
            return _tiles(actual.item, expected.item, inference)
        case TensorType(), TensorType():
            return _tensors(actual, expected)
        case PartType(), PartType():
            return _parts(actual, expected)
    return "E0203", "mismatched types", _way(actual, expected)


def _tiles(actual: TileType, expected: TileType, inference: ElementInference) -> _Found | None:
    if actual.rank != expected.rank and 0 in (actual.rank, expected.rank):
        way = (
            "take one element: `.item()`, `.at([…])`"
            if expected.is_scalar
            else f"make a tile of it: `{_full(expected, inference)}`"
        )
        return "E0301", "expected a " + ("scalar" if expected.is_scalar else "tile"), way
    if actual.shape != expected.shape:
        return "E0301", "tile shapes do not agree", None
    if inference.unify(actual.element, expected.element):
        return None
    left, right = inference.resolve(actual.element), inference.resolve(expected.element)
    return "E0202", "element types differ", conversion(left, right, is_scalar=expected.is_scalar)


def _full(tile: TileType, inference: ElementInference) -> str:
    shape = ", ".join(map(str, (inference.known(tile.element), *tile.shape)))
    return f"Tile::<{shape}>::full(…)"


def _tensors(actual: TensorType, expected: TensorType) -> _Found | None:
    if actual.rank != expected.rank:
        return "E0303", "ranks of tensors differ", None
    if actual.element != expected.element:
        return "E0202", "element types differ", None
    if actual.extents != expected.extents:
        return "E0301", "extents of tensors differ", None
    if actual.own is Own.ATOMIC and expected.own is not Own.ATOMIC:
        help = "take it as `&Atomic<Tensor<…>>`, and read and write it by atomic operations"
        return "E0503", "an atomic tensor is used as a plain one", help
    if actual.own != expected.own and (actual.own, expected.own) != (Own.MUT, Own.SHARED):
        is_to_be_written = expected.own is Own.MUT
        way = "a `&` tensor is only read: take and lend it as `&mut`" if is_to_be_written else None
        return "E0203", f"expected {_OWNED[expected.own]} tensor", way
    return None


_OWNED = {Own.SHARED: "a `&`", Own.MUT: "a `&mut`", Own.ATOMIC: "an atomic"}


def _parts(actual: PartType, expected: PartType) -> _Found | None:
    found = _tensors(actual.tensor, expected.tensor)
    if found:
        return found
    if actual.block != expected.block:
        return "E0301", "blocks of parts differ", None
    if actual.borrowed != expected.borrowed:
        return "E0203", "a part is given or lent", _lending(actual, expected)
    return None


def _lending(actual: PartType, expected: PartType) -> str | None:
    if actual.borrowed is not None:
        if expected.borrowed is None:
            return "what is lent cannot be given away: take it there as `&mut Part<…>`"
        return "what is lent to be read is only read: take and lend it as `&mut`"
    return {Own.MUT: "lend it: `&mut …`", Own.SHARED: "lend it: `&…`"}.get(
        expected.borrowed or Own.ATOMIC
    )


def _way(actual: Type, expected: Type) -> str | None:
    if isinstance(expected, TileType):
        if isinstance(actual, TensorType):
            return "read a tile of it: `.load::<…>([…])`"
        if isinstance(actual, PartType):
            return "read its tile: `.load()`"
    return None
