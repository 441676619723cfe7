"""What operations ask of a use: counts, elements, shapes, axes. Each raises what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod

from tilec.diagnostics.diagnostic import CompileError, Diagnostic, Label
from tilec.ops import conversions
from tilec.ops.call import Argument, Call
from tilec.source import Span
from tilec.types import (
    BOOL,
    STORAGE_ONLY,
    ArrayType,
    Element,
    ElementLike,
    PartType,
    TensorType,
    TileType,
    TupleType,
    Type,
    is_legal_extent,
)

MAX_RANK = 5

# No target holds more in a program: past it, and past every number that MLIR counts with, nothing
# need be emitted to know.
MAX_ELEMENTS = 1 << 24


class Domain(Enum):
    """The elements that an operation works on; the value is how a message names them."""

    NUMBER = "integers and floats"
    FLOAT = "floats"
    INTEGER = "integers"
    SIGNED = "signed integers and floats"
    BITS = "integers and `bool`"
    BOOL = "`bool`"
    COMPARABLE = "integers, floats and `bool`"


def refuse(code: str, message: str, *labels: Label, help: str | None = None) -> CompileError:
    """The error to raise; the first label is the primary place."""
    return CompileError(Diagnostic(code, message, labels, help=help))


def expect_counts(
    call: Call, arguments: int, generics: int | None = 0, *, closure: bool = False
) -> None:
    """E0203 unless the use has this many arguments (a receiver counts) and turbofish arguments.

    `generics` None: any number, none written included.
    """
    receiver = _has_receiver(call)
    expected = arguments - receiver + closure
    got = len(call.arguments) - receiver + (call.closure is not None)
    if got != expected:
        message = f"`{call.name}` takes {_count(expected, 'argument')}, got {got}"
        raise refuse("E0203", message, Label(call.span), help=_signature(call))
    if closure and call.closure is None:
        message = f"`{call.name}` takes a combiner, such as `|a, b| a + b`, as its last argument"
        raise refuse("E0203", message, Label(call.arguments[-1].span))
    if not closure and call.closure is not None:
        raise refuse("E0203", f"`{call.name}` takes no closure", Label(call.span))
    if generics is None:
        return
    written = 0 if call.generics is None else len(call.generics)
    if written != generics:
        message = f"`{call.name}` takes {_count(generics, 'generic argument')}, got {written}"
        raise refuse("E0203", message, Label(call.name_span), help=_signature(call))


def _signature(call: Call) -> str | None:
    numbers = [argument.constant for argument in call.arguments[1:]]
    axes = [number for number in map(constant_axis, numbers) if number is not None]
    is_in_turbofish = "::<" in call.signature and call.signature.endswith("()")
    if is_in_turbofish and call.generics is None and axes and len(axes) == len(numbers):
        written = ", ".join(str(axis) if axis >= 0 else f"{{{axis}}}" for axis in axes)
        return f"write `.{call.name}::<{written}>()`"
    return f"it is written `{call.signature}`" if call.signature else None


def _has_receiver(call: Call) -> bool:
    """Whether `arguments[0]` stands before the name: a method's receiver, not counted aloud."""
    return bool(call.arguments) and call.arguments[0].span.start < call.name_span.start


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def expect_tile(call: Call, index: int) -> TileType:
    """The type of an argument that must be a tile or a scalar, its element as known by now."""
    argument = call.arguments[index]
    help: str | None = None
    match argument.type:
        case TileType(element, shape):
            return TileType(call.inference.resolve(element), shape)
        case TensorType(extents=()):
            help = "read its element: `.load([])`"
        case TensorType():
            help = "read a tile of it: `.load::<…>([…])`"
        case PartType():
            help = "read its tile: `.load()`"
    message = f"`{call.name}` takes tiles and scalars, got `{argument.type}`"
    raise refuse("E0203", message, Label(argument.span), help=help)


def expect_scalar(call: Call, index: int) -> TileType:
    """The type of an argument that must be a scalar."""
    tile = expect_tile(call, index)
    if not tile.is_scalar:
        message = f"`{call.name}` takes a scalar here, got `{tile}`"
        raise refuse("E0203", message, Label(call.arguments[index].span))
    return tile


def expect_domain(call: Call, index: int, domain: Domain) -> TileType:
    """The tile of an argument, whose elements must be in the domain (E0203)."""
    tile = expect_tile(call, index)
    if in_domain(tile.element, domain):
        return tile
    message = f"`{call.name}` works on {domain.value}, got `{tile.element}`"
    raise refuse(
        "E0203", message, Label(call.arguments[index].span), help=_way_in(tile.element, domain)
    )


def in_domain(element: ElementLike, domain: Domain) -> bool:
    """Whether an element type (or a literal's, whatever it becomes) is in a domain."""
    if element in STORAGE_ONLY:
        return False
    if element == BOOL:
        return domain in (Domain.BITS, Domain.BOOL, Domain.COMPARABLE)
    match domain:
        case Domain.FLOAT:
            return element.is_float
        case Domain.INTEGER | Domain.BITS:
            return element.is_integer
        case Domain.SIGNED:
            return not isinstance(element, Element) or element.is_float or element.is_signed
        case Domain.BOOL:
            return False
    return True


def _way_in(element: ElementLike, domain: Domain) -> str | None:
    if element in STORAGE_ONLY:
        return f"`{element}` is for storage and `dot`: convert it first, `.to::<f32>()`"
    if element == BOOL and domain is not Domain.FLOAT:
        return "combine masks with `&` and `|`, choose by `select`, or count with `.to::<i32>()`"
    if domain is Domain.FLOAT:
        return "convert it first: `.to::<f32>()`"
    if domain is Domain.BOOL:
        return f"compare it first: {conversions.not_zero(element)}"
    return None


def unify(call: Call, indices: Sequence[int]) -> ElementLike:
    """The one element type of these arguments (E0202); fixes those of literals among them."""
    first = indices[0]
    for other in indices[1:]:
        _unify_pair(call, first, other)
    return expect_tile(call, first).element


def _unify_pair(call: Call, first: int, other: int) -> None:
    left, right = expect_tile(call, first), expect_tile(call, other)
    if call.inference.unify(left.element, right.element):
        return
    one, two = call.arguments[first], call.arguments[other]
    literals = one.constant, two.constant
    help = conversions.conversion_of_one(left.element, right.element, literals)
    raise differing_elements(left.element, right.element, one.span, two.span, help)


def unify_with(call: Call, index: int, element: Element, owner: Span) -> None:
    """E0202 unless an argument has the element type of what `owner` shows."""
    argument, got = call.arguments[index], expect_tile(call, index).element
    if not call.inference.unify(got, element):
        help = conversions.conversion(got, element, literal=argument.constant)
        raise differing_elements(element, got, owner, argument.span, help)


def differing_elements(
    expected: ElementLike,
    got: ElementLike,
    earlier: Span,
    later: Span,
    help: str | None = None,
) -> CompileError:
    """E0202 at the later of two places."""
    labels = Label(later, f"this is `{got}`"), Label(earlier, f"this is `{expected}`")
    help = help or conversions.conversion_of_one(expected, got)
    return refuse(
        "E0202", f"element types differ: expected `{expected}`, got `{got}`", *labels, help=help
    )


def broadcast(call: Call, indices: Sequence[int]) -> tuple[int, ...]:
    """The common shape of these arguments (E0301): scalars fit any, extents of 1 stretch."""
    shape: tuple[int, ...] = ()
    source: int | None = None
    for index in indices:
        tile = expect_tile(call, index)
        if tile.is_scalar:
            continue
        if source is None:
            shape, source = tile.shape, index
            continue
        if not fits(shape, tile.shape):
            raise _differing_shapes(call, source, index)
        shape = tuple(max(a, b) for a, b in zip(shape, tile.shape, strict=True))
    expect_size(shape, call.span)
    return shape


def fits(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether two shapes of equal rank broadcast."""
    return len(left) == len(right) and all(
        a == b or 1 in (a, b) for a, b in zip(left, right, strict=True)
    )


def _differing_shapes(call: Call, first: int, other: int) -> CompileError:
    return differing_shapes(
        expect_tile(call, first),
        expect_tile(call, other),
        call.arguments[first],
        call.arguments[other],
    )


def differing_shapes(
    left: TileType, right: TileType, earlier: Argument, later: Argument
) -> CompileError:
    """E0301 at the later of two arguments."""
    help = None
    if left.rank != right.rank:
        help = "ranks never broadcast: add an axis with `.expand::<AXIS>()`"
    return refuse(
        "E0301",
        f"tile shapes do not agree: {shape_text(left.shape)} and {shape_text(right.shape)}",
        Label(later.span, f"this is `{right}`"),
        Label(earlier.span, f"this is `{left}`"),
        help=help,
    )


def shape_text(shape: Sequence[object]) -> str:
    """A shape as messages show it: `(8, 8)`."""
    return f"({', '.join(map(str, shape))})"


def axis(call: Call, rank: int, index: int = 0) -> int:
    """A turbofish argument as an axis of a tile of this rank, counted from the start."""
    value = constant_axis((call.generics or ())[index])
    if value is not None and -rank <= value < rank:
        return value % rank
    raise bad_axis(call, rank, (call.generics or ())[index], call.generic_spans[index])


def constant_axis(value: object) -> int | None:
    """An axis as a number, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def bad_axis(call: Call, rank: int, value: object, span: Span) -> CompileError:
    """E0203 for what is no axis of a tile or tensor of this rank."""
    has = f"there {'is' if rank == 1 else 'are'} {_count(rank, 'axis').replace('axiss', 'axes')}"
    message = f"`{call.name}` expected an axis, got `{value}`; {has}"
    return refuse("E0203", message, Label(span))


def extents(call: Call, start: int = 0) -> tuple[int, ...]:
    """The turbofish arguments from `start` on as the extents of a tile (E0203, E0302)."""
    given = (call.generics or ())[start:]
    spans = call.generic_spans[start:]
    for value, span in zip(given, spans, strict=True):
        if constant_axis(value) is None:
            message = f"`{call.name}` expected an extent, got `{value}`"
            raise refuse("E0203", message, Label(span))
        assert isinstance(value, int)
        expect_legal(value, span)
    shape = tuple(int(value) for value in given if isinstance(value, int))
    expect_rank(len(shape), call.span)
    expect_size(shape, call.span)
    return shape


def expect_legal(extent: int, span: Span) -> None:
    """E0302 unless a tile may have this extent."""
    if is_legal_extent(extent):
        return
    message = f"a tile extent is a power of two or a multiple of 16, got {extent}"
    help = f"the next extent is {_next_legal(extent)}" if 0 < extent < 1 << 20 else None
    raise refuse("E0302", message, Label(span), help=help)


def _next_legal(extent: int) -> int:
    return next(e for e in range(extent, 2 * extent + 1) if is_legal_extent(e))


def expect_rank(rank: int, span: Span) -> None:
    """E0301 if a tile would have too many axes."""
    if rank > MAX_RANK:
        message = f"a tile has at most {MAX_RANK} axes, got {rank}"
        raise refuse("E0301", message, Label(span))


def expect_size(shape: Sequence[int], span: Span) -> None:
    """E0702 if a tile would have more elements than any program can hold."""
    if prod(shape) > MAX_ELEMENTS:
        message = f"a tile of shape {shape_text(shape)} does not fit in one program"
        raise refuse("E0702", message, Label(span))


def element(call: Call, index: int = 0) -> Element:
    """A turbofish argument as an element type (E0203)."""
    value = (call.generics or ())[index]
    if isinstance(value, Element):
        return value
    message = f"`{call.name}` expected an element type, got `{value}`"
    raise refuse("E0203", message, Label(call.generic_spans[index]))


def index_types(call: Call, index: int, help: str | None = None) -> tuple[TileType, ...]:
    """The components of an index list `[i, j]`, each a scalar integer (E0203).

    `help` is for those that write tiles of integers.
    """
    components = index_tile_types(call, index)
    for component in components:
        if not component.is_scalar:
            raise _bad_index(call, call.arguments[index], component, help)
    return components


def index_tile_types(call: Call, index: int) -> tuple[TileType, ...]:
    """The components of an index list `[i, rows]`, each a scalar or tile of integers (E0203)."""
    argument = call.arguments[index]
    components = components_of(argument.type)
    if components is None:
        message = f"`{call.name}` expected a list of indices, got `{argument.type}`"
        raise refuse("E0203", message, Label(argument.span), help="write `[i, j]`")
    for component in components:
        if not isinstance(component, TileType):
            raise _bad_index(call, argument, component)
        if not call.inference.resolve(component.element).is_integer:
            raise _bad_index(call, argument, component)
    return tuple(c for c in components if isinstance(c, TileType))


def components_of(given: Type) -> tuple[Type, ...] | None:
    """The types of the items of an index list, or None if it is none."""
    match given:
        case TupleType(items):
            return items
        case ArrayType(item, length):
            return (item,) * length
    return None


def _bad_index(
    call: Call, argument: Argument, component: Type, help: str | None = None
) -> CompileError:
    message = f"`{call.name}` expected integer indices, got `{component}`"
    return refuse("E0203", message, Label(argument.span), help=help)
