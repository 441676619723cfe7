"""Types as written → types: names looked up, extents evaluated, legality checked."""

from __future__ import annotations

from tilec.artifact.abi import COUNT_LIMIT
from tilec.diagnostics import CompileError
from tilec.frontend import ast
from tilec.frontend.bindings import Constant, Environment
from tilec.frontend.constants import (
    as_integer,
    binding_of,
    evaluate,
    extent,
    unknown_name,
    with_way,
)
from tilec.frontend.refusal import refusal
from tilec.ops import uses
from tilec.source import Span
from tilec.types import (
    ELEMENTS,
    TF32,
    USIZE,
    ArrayType,
    Dim,
    Element,
    Extent,
    Own,
    PartType,
    TensorType,
    TileType,
    TupleType,
    Type,
    scalar,
)

MAX_ARRAY = 1024  # each item is a value of its own in the program
_BUILT_IN = ("Tile", "Tensor", "Part", "Atomic")
# What other languages call our types.
_ELSEWHERE = {
    **dict.fromkeys(("float", "single", "float32"), "f32"),
    **dict.fromkeys(("double", "float64"), "f64"),
    **dict.fromkeys(("half", "float16"), "f16"),
    **dict.fromkeys(("bfloat16", "bfloat"), "bf16"),
    **dict.fromkeys(("int", "int32"), "i32"),
    **dict.fromkeys(("uint", "uint32", "unsigned"), "u32"),
    **dict.fromkeys(("byte", "uint8"), "u8"),
    **dict.fromkeys(("size_t", "isize"), "usize"),
    "boolean": "bool",
    **dict.fromkeys(("int64", "longlong", "int64_t"), "i64"),
    **dict.fromkeys(("int8", "int8_t"), "i8"),
    **dict.fromkeys(("int16", "short", "int16_t"), "i16"),
    **dict.fromkeys(("uint16", "uint16_t"), "u16"),
    **dict.fromkeys(("uint64", "uint64_t"), "u64"),
    **dict.fromkeys(("int32_t",), "i32"),
    **dict.fromkeys(("uint32_t", "uint_t"), "u32"),
    **dict.fromkeys(("uint8_t", "uchar"), "u8"),
    **dict.fromkeys(("fp16", "float16_t"), "f16"),
    **dict.fromkeys(("fp32", "float32_t"), "f32"),
    **dict.fromkeys(("fp64",), "f64"),
    **dict.fromkeys(("bf16_t", "__nv_bfloat16"), "bf16"),
    **dict.fromkeys(("float8_e4m3fn", "fp8e4nv", "e4m3"), "f8e4m3"),
    **dict.fromkeys(("float8_e5m2", "fp8e5", "e5m2"), "f8e5m2"),
}


# Generic types of Rust and C++ that there are not.
_CONTAINERS = {
    **dict.fromkeys(("Vec", "vector", "array", "Array"), "an array of scalars is `[f32; 4]`"),
    **dict.fromkeys(("Option", "Result", "Box", "Rc"), "there are none: name the type itself"),
    **dict.fromkeys(("NDArray", "Ptr", "pointer"), "a tensor is `&Tensor<f32, N>`"),
}


def check_array_length(length: int, span: Span) -> None:
    """Raises:   CompileError: E0203 for an array of too many items, or none"""
    if not 0 < length <= MAX_ARRAY:
        text = f"this has {length}"
        raise refusal("E0203", f"an array has 1 to {MAX_ARRAY} items", span, text)


def resolve_type(node: ast.TypeNode, environment: Environment) -> Type:
    """The type that a type expression stands for.

    Raises:   CompileError: E0201, E0203, E0302 (extent), E0303 (rank), E0102, E0103
    """
    match node:
        case ast.TupleTypeNode():
            return TupleType(tuple(_tuple_item(item, environment) for item in node.items))
        case ast.ArrayTypeNode():
            item = resolve_type(node.item, environment)
            if not isinstance(item, TileType) or not item.is_scalar:
                raise refusal(
                    "E0203", "an array holds scalars", node.item.span, f"this is `{item}`"
                )
            length = as_integer(evaluate(node.length, environment, USIZE), node.length.span)
            check_array_length(length, node.length.span)
            return ArrayType(item, length)
        case ast.ReferenceType():
            return _reference(node, environment)
        case ast.PathType():
            return _path(node, environment)


def resolve_element(node: ast.GenericArgument, environment: Environment) -> Element:
    """An element type. Raises CompileError E0201, E0203."""
    if not isinstance(node, ast.PathType) or node.arguments:
        help = _CONTAINERS.get(node.name.text) if isinstance(node, ast.PathType) else None
        raise refusal("E0203", "expected an element type", node.span, help=help)
    found = binding_of(node.name, environment)
    if isinstance(found, Element):
        return found
    if found is None and node.name.text not in _BUILT_IN:
        raise _unknown_type(node.name, environment)
    raise refusal("E0203", "expected an element type", node.span, f"`{node.name.text}` is none")


def resolve_extent(node: ast.GenericArgument, environment: Environment) -> Extent:
    """An extent of a tensor: a `Dim` or an integer. Raises CompileError E0201, E0203."""
    match node:
        case ast.ConstArgument():
            return extent(node.value, environment)
        case ast.PathType(name=name, arguments=()):
            found = binding_of(name, environment)
            match found:
                case Dim():
                    return found
                case Constant():
                    return as_integer(found, node.span)
                case Element():
                    raise refusal("E0203", "expected an extent", node.span, "this is a type")
            path = ast.Path(node.span, (ast.Segment(node.span, name),))
            return extent(path, environment)
    raise refusal("E0203", "expected an extent", node.span, "this is a type")


def tile_of(
    arguments: tuple[ast.GenericArgument, ...], environment: Environment, span: Span
) -> TileType:
    """`Tile<T, D0, …>` from its generic arguments. Raises CompileError E02xx, E0302, E0303."""
    if not arguments:
        raise refusal("E0203", "a tile has an element type", span, "expected `Tile<T, …>`")
    element = resolve_element(arguments[0], environment)
    return TileType(element, tile_extents(arguments[1:], environment))


def tile_extents(
    nodes: tuple[ast.GenericArgument, ...], environment: Environment
) -> tuple[int, ...]:
    """The extents of a tile or block. Raises CompileError E0203, E0301, E0302, E0702."""
    extents: list[int] = []
    for node in nodes:
        value = resolve_extent(node, environment)
        if isinstance(value, Dim):
            raise refusal(
                "E0203",
                "expected a compile-time constant",
                node.span,
                f"`{value}` is known only at launch",
            )
        uses.expect_legal(value, node.span)
        extents.append(value)
    if nodes:
        span = nodes[0].span.to(nodes[-1].span)
        uses.expect_rank(len(nodes), span)
        uses.expect_size(extents, span)
    return tuple(extents)


def _path(node: ast.PathType, environment: Environment) -> Type:
    name = node.name.text
    if environment.module.find(name) is None and name in _BUILT_IN:
        return _built_in(node, environment)
    element = resolve_element(node, environment)
    return scalar(element)


def _built_in(node: ast.PathType, environment: Environment) -> Type:
    match node.name.text:
        case "Tile":
            return tile_of(node.arguments, environment, node.span)
        case "Part":
            return _part(node, environment)
        case name:
            raise refusal(
                "E0203",
                f"`{name}` is used through a reference",
                node.span,
                help=f"write `&{name}<…>`",
            )


def _reference(node: ast.ReferenceType, environment: Environment) -> Type:
    own = Own.MUT if node.mutable else Own.SHARED
    match node.target:
        case ast.PathType(name=ast.Name(text="Tensor")) as target:
            return _tensor(target, environment, own)
        case ast.PathType(name=ast.Name(text="Part")) as target:
            part = _part(target, environment)
            return PartType(part.tensor, part.block, own)
        case ast.PathType(name=ast.Name(text="Atomic")) as target:
            return _atomic(node, target, environment)
    raise refusal(
        "E0102", "only tensors and parts are passed by reference", node.span, help="pass the value"
    )


def _atomic(node: ast.ReferenceType, target: ast.PathType, environment: Environment) -> TensorType:
    if node.mutable:
        raise refusal(
            "E0203", "an atomic tensor is shared", node.span, help="write `&Atomic<Tensor<…>>`"
        )
    match target.arguments:
        case (ast.PathType(name=ast.Name(text="Tensor")) as tensor,):
            return _tensor(tensor, environment, Own.ATOMIC)
    raise refusal("E0203", "atomic is a tensor", target.span, "expected `Atomic<Tensor<…>>`")


def _tensor(node: ast.PathType, environment: Environment, own: Own) -> TensorType:
    if not node.arguments:
        raise refusal("E0203", "a tensor has an element type", node.span, "expected `Tensor<T, …>`")
    element = resolve_element(node.arguments[0], environment)
    if element == TF32:
        raise refusal("E0203", "`tf32` is never in memory", node.arguments[0].span)
    if len(node.arguments) > uses.MAX_RANK + 1:
        span = node.arguments[uses.MAX_RANK + 1].span
        raise refusal("E0301", f"a tensor has at most {uses.MAX_RANK} axes", span, "one too many")
    extents = []
    for argument in node.arguments[1:]:
        try:
            value = resolve_extent(argument, environment)
        except CompileError as error:
            help = "name a `Dim` for it, and say what it is: `requires!(L == N * 2)`"
            raise with_way(error, help) from None
        if isinstance(value, int) and not 0 <= value <= COUNT_LIMIT:
            raise refusal(
                "E0203",
                f"an extent of a tensor is between 0 and {COUNT_LIMIT}",
                argument.span,
                f"this is {value}",
            )
        extents.append(value)
    return TensorType(element, tuple(extents), own)


def _part(node: ast.PathType, environment: Environment) -> PartType:
    match node.arguments:
        case (ast.ReferenceType(mutable=True, target=ast.PathType() as target), *_) if (
            target.name.text == "Tensor"
        ):
            tensor = _tensor(target, environment, Own.MUT)
        case _:
            raise refusal(
                "E0203",
                "a part is of a `&mut Tensor`",
                node.span,
                "expected `Part<&mut Tensor<…>, …>`",
            )
    block = tile_extents(node.arguments[1:], environment)
    if len(block) != tensor.rank:
        raise refusal(
            "E0303",
            "a part has one extent for each axis of its tensor",
            node.span,
            f"expected {tensor.rank} extents, got {len(block)}",
        )
    return PartType(tensor, block)


def _tuple_item(node: ast.TypeNode, environment: Environment) -> Type:
    item = resolve_type(node, environment)
    if isinstance(item, (TensorType, PartType)):
        raise refusal("E0102", "a tuple holds scalars and tiles", node.span, f"this is `{item}`")
    return item


def _unknown_type(name: ast.Name, environment: Environment) -> CompileError:
    types = {n for n, b in environment.generics.items() if isinstance(b, Element)}
    meant = _ELSEWHERE.get(name.text.lower())
    otherwise = f"it is called `{meant}` here" if meant else None
    known = set() if meant else types | set(ELEMENTS) | set(_BUILT_IN)
    return unknown_name(name, known, otherwise)
