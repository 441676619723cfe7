"""What loads and stores share: the tensor's kind, the ranks, where a tile starts."""

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
from tilec.types import USIZE, Own, TensorType


def expect_plain(call: Call) -> TensorType:
    """The receiver, a tensor that is not atomic (E0103: those are not in this version yet)."""
    argument = call.arguments[0]
    tensor = argument.type
    assert isinstance(tensor, TensorType), "tensor methods are looked up on tensors"
    if tensor.own is Own.ATOMIC:
        message = "`Atomic` tensors are not in this version of tilec yet"
        raise uses.refuse("E0103", message, Label(argument.span, f"this is `{tensor}`"))
    return tensor


def expect_ranks(call: Call, tensor: TensorType, *, extents: int | None) -> None:
    """E0303 unless the index list, and the tile's extents, are as many as the tensor's axes."""
    indices = uses.index_types(call, 1)
    receiver = Label(call.arguments[0].span, f"this is `{tensor}`")
    if len(indices) != tensor.rank:
        message = f"expected {_counted(tensor.rank, 'index', 'indices')}, got {len(indices)}"
        raise uses.refuse("E0303", message, Label(call.arguments[1].span), receiver)
    if extents is not None and extents != tensor.rank:
        message = f"expected a tile of rank {tensor.rank}, got {_counted(extents, 'extent')}"
        raise uses.refuse("E0303", message, Label(call.name_span), receiver)


def _counted(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def expect_unsafe(call: Call) -> None:
    """E0203 outside `unsafe`."""
    if not call.in_unsafe:
        message = f"`{call.name}` is for `unsafe` blocks"
        help = f"`{call.name.removesuffix('_unchecked')}` is safe, and as fast where it is proved"
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
