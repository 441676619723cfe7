"""What accesses to memory share: the tensor's kind, the ranks, the value, where a tile starts."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.artifact.abi import COUNT_LIMIT
from tilec.diagnostics.diagnostic import Label
from tilec.ops import uses
from tilec.ops.bounds import is_residual
from tilec.ops.build import broadcast_along, compared, constant, make
from tilec.ops.call import Call, Emission
from tilec.ops.formats import Array
from tilec.ops.rules import AccessShape, Claim, conjunction
from tilec.types import USIZE, Element, Own, TensorType


def expect_plain(call: Call, *, writes: bool = False) -> TensorType:
    """The receiver, a tensor that is not atomic (E0503)."""
    tensor = _receiver(call)
    if tensor.own is Own.ATOMIC:
        written = call.name if call.generics is None else f"{call.name}::<…>"
        message = f"`{written}` is not atomic"
        help = _WRITE_ATOMICALLY if writes else _READ_ATOMICALLY
        receiver = Label(call.arguments[0].span, f"this is `{tensor}`")
        raise uses.refuse("E0503", message, Label(call.name_span), receiver, help=help)
    return tensor


_READ_ATOMICALLY = "read elements by `.load([…])`, whose indices may be tiles"
_WRITE_ATOMICALLY = "write elements by `.swap([…], value)`, whose indices may be tiles"


def expect_atomic(call: Call) -> TensorType:
    """The receiver, an atomic tensor (E0203)."""
    tensor = _receiver(call)
    if tensor.own is not Own.ATOMIC:
        message = f"`{call.name}` is for atomic tensors, got `{tensor}`"
        help = "take it as `&Atomic<Tensor<…>>`"
        raise uses.refuse("E0203", message, Label(call.arguments[0].span), help=help)
    return tensor


def _receiver(call: Call) -> TensorType:
    tensor = call.arguments[0].type
    assert isinstance(tensor, TensorType), "tensor methods are looked up on tensors"
    return tensor


def expect_turbofish(call: Call, tensor: TensorType) -> None:
    """E0203 unless the extents of the tile are written."""
    if call.generics is None:
        message = f"`{call.name}` needs the extents of the tile"
        help = f"`.{call.name}::<{', '.join(['…'] * tensor.rank)}>([…])`"
        raise uses.refuse("E0203", message, Label(call.name_span), help=help)


def expect_ranks(call: Call, tensor: TensorType, *, extents: int | None) -> None:
    """E0303 unless the index list, and the tile's extents, are as many as the tensor's axes."""
    help = "tiles of indices are for `gather` and `scatter`"
    expect_rank_of_index(call, tensor, len(uses.index_types(call, 1, help)))
    if extents is not None:
        expect_rank_of_extents(call, tensor, extents)


def expect_rank_of_extents(call: Call, tensor: TensorType, extents: int) -> None:
    """E0303 unless the tile has an extent for each axis of the tensor."""
    if extents != tensor.rank:
        receiver = Label(call.arguments[0].span, f"this is `{tensor}`")
        message = f"expected a tile of rank {tensor.rank}, got {_counted(extents, 'extent')}"
        raise uses.refuse("E0303", message, Label(call.name_span), receiver)


def expect_rank_of_index(call: Call, tensor: TensorType, indices: int) -> None:
    """E0303 unless there is an index for each axis of the tensor."""
    if indices != tensor.rank:
        receiver = Label(call.arguments[0].span, f"this is `{tensor}`")
        message = f"expected {_counted(tensor.rank, 'index', 'indices')}, got {indices}"
        raise uses.refuse("E0303", message, Label(call.arguments[1].span), receiver)


def _counted(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def expect_value(
    call: Call, index: int, element: Element, shape: tuple[int, ...], owner: Label
) -> None:
    """E0202, E0301 unless an argument is a tile of this shape, or a scalar, of the element type."""
    tile = uses.expect_tile(call, index)
    uses.unify_with(call, index, element, call.arguments[0].span)
    if not tile.is_scalar and tile.shape != shape:
        raise uses.refuse(
            "E0301",
            f"expected a tile of shape {uses.shape_text(shape)}, got {uses.shape_text(tile.shape)}",
            Label(call.arguments[index].span, f"this is `{tile}`"),
            owner,
            help=_stretched(tile.shape, shape),
        )


def _stretched(actual: tuple[int, ...], expected: tuple[int, ...]) -> str | None:
    """The help where extents of 1 would have to be stretched, which no store does."""
    if len(actual) != len(expected) or any(
        a not in (1, b) for a, b in zip(actual, expected, strict=True)
    ):
        return None
    return f"repeat it along the axis: `.broadcast::<{', '.join(map(str, expected))}>()`"


def expect_unsafe(call: Call, help: str | None = None) -> None:
    """E0203 outside `unsafe`."""
    if not call.in_unsafe:
        message = f"`{call.name}` is for `unsafe` blocks"
        checked = call.name.removesuffix("_unchecked")
        help = help or f"`{checked}` is safe, and as fast where it is proved"
        raise uses.refuse("E0203", message, Label(call.name_span), help=help)


def marks(emission: Emission, *, unchecked: bool = False) -> dict[str, ir.Attribute]:
    """The unit attributes of an access: `unsafe` where it stands in `unsafe`, `unchecked`."""
    found = {"unsafe": emission.in_unsafe, "unchecked": unchecked}
    return {name: ir.UnitAttr.get() for name, holds in found.items() if holds}


def first_element(
    op: ir.OpView, shape: tuple[int, ...], indices: Sequence[Array]
) -> tuple[int, ...]:
    """The first element of an access along each axis: exact, whatever the index."""
    counts_tiles = ir.StringAttr(op.attributes["unit"]).value == "tile"
    return tuple(
        int(index) * (extent if counts_tiles else 1)
        for index, extent in zip(indices, shape, strict=True)
    )


# ---- as operations of the IR: what checked builds ask of an access -------------------------------


def claims_of_access(op: ir.OpView, access: AccessShape, *, has_fill: bool) -> list[Claim]:
    """What is to hold of the place of an access, in checked builds (docs/language.md).

    An access that the program vouches for is inside. What else the proofs leave open, or `unsafe`
    keeps from them, may be cut by the tensor's end, as the language has it, but not miss it: unless
    it says by a `fill` that it may.
    """
    if not access.shape:
        return []
    if "unchecked" in op.attributes:
        inside = [_axis_inside(access, axis) for axis in range(len(access.shape))]
        return [Claim(conjunction(inside), "every element is inside of the tensor")]
    if has_fill or not ("unsafe" in op.attributes or is_residual(op)):
        return []
    meets = [_axis_meets(access, axis) for axis in range(len(access.shape))]
    return [Claim(conjunction(meets), "an element is inside of the tensor")]


def data_of_access(access: AccessShape) -> ir.Value:
    """Which elements are inside, as a tile of bool of the access's shape."""
    boolean = ir.IntegerType.get_signless(1)
    whole = ir.RankedTensorType.get(access.shape, boolean)
    masks = []
    for axis, size in enumerate(access.shape):
        line = ir.RankedTensorType.get([size], ir.IndexType.get())
        first = make("tensor.splat", line, _start(access, axis))
        place = make("arith.addi", line, make("tile.iota", line), first)
        end = make("tensor.splat", line, _extent(access, axis))
        # As unsigned numbers, places below zero are beyond any extent.
        inside = compared("ult", place, end)
        others = [other for other in range(len(access.shape)) if other != axis]
        masks.append(broadcast_along(inside, whole, others) if others else inside)
    return conjunction(masks)


def _axis_inside(access: AccessShape, axis: int) -> ir.Value:
    """0 <= start and start + size <= extent."""
    start = _start(access, axis)
    end = make("arith.addi", start.type, start, constant(USIZE, access.shape[axis]))
    below = compared("sle", end, _extent(access, axis))
    return conjunction([compared("sge", start, constant(USIZE, 0)), below])


def _axis_meets(access: AccessShape, axis: int) -> ir.Value:
    """start + size > 0 and start < extent; in an empty tensor nothing misses at 0."""
    start = _start(access, axis)
    end = make("arith.addi", start.type, start, constant(USIZE, access.shape[axis]))
    extent = make("arith.maxsi", start.type, _extent(access, axis), constant(USIZE, 1))
    return conjunction([compared("sgt", end, constant(USIZE, 0)), compared("slt", start, extent)])


def _start(access: AccessShape, axis: int) -> ir.Value:
    """The first element (index); where it is far outside, some number that is outside as well."""
    far = 2 * COUNT_LIMIT
    index = access.indices[axis]
    index = make("arith.minsi", index.type, index, constant(USIZE, far))
    index = make("arith.maxsi", index.type, index, constant(USIZE, -far))
    if access.unit == "element":
        return index
    return make("arith.muli", index.type, index, constant(USIZE, access.shape[axis]))


def _extent(access: AccessShape, axis: int) -> ir.Value:
    return make("memref.dim", ir.IndexType.get(), access.view, constant(USIZE, axis))
