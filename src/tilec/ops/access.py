"""What loads and stores share: the tensor's kind, the ranks, where a tile starts."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.diagnostics.diagnostic import Label
from tilec.ops import uses
from tilec.ops.call import Call, Emission
from tilec.ops.formats import Array
from tilec.types import Own, TensorType


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
