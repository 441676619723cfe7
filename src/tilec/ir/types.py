"""The language's types as MLIR types and back: the one codec.

Elements are signless integers and floats (`usize` is `index`); whether a number is signed stands
in the operations. Tiles are builtin tensors, scalars bare elements, views strided memrefs whose
memory space says who owns them (`dialects/tile.irdl.mlir`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from tilec.types import ELEMENTS, Element, Kind, PartType, TensorType, TileType


def element_type(element: Element) -> ir.Type:
    """The MLIR type of one value of an element type."""
    match element.name:
        case "bool":
            return ir.IntegerType.get_signless(1)
        case "usize":
            return ir.IndexType.get()
        case "f16":
            return ir.F16Type.get()
        case "bf16":
            return ir.BF16Type.get()
        case "f32":
            return ir.F32Type.get()
        case "f64":
            return ir.F64Type.get()
        case "tf32":
            return ir.FloatTF32Type.get()
        case "f8e4m3":
            return ir.Float8E4M3FNType.get()
        case "f8e5m2":
            return ir.Float8E5M2Type.get()
    assert element.kind in (Kind.SIGNED, Kind.UNSIGNED), f"no MLIR type for {element}"
    return ir.IntegerType.get_signless(element.bits)


_FLOATS = {
    "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "tf32": "tf32",
    "f8E4M3FN": "f8e4m3", "f8E5M2": "f8e5m2",
}  # fmt: skip


def element_of(mlir_type: ir.Type, *, signed: bool = True) -> Element:
    """The element type behind an MLIR scalar type; the caller says what sign integers have."""
    text = str(mlir_type)
    if text == "i1":
        return ELEMENTS["bool"]
    if text == "index":
        return ELEMENTS["usize"]
    if text in _FLOATS:
        return ELEMENTS[_FLOATS[text]]
    return ELEMENTS[text if signed else text.replace("i", "u")]


def tile_type(tile: TileType) -> ir.Type:
    """A builtin tensor, or the element itself for a scalar. The element type must be known."""
    assert isinstance(tile.element, Element), f"{tile} was not resolved"
    element = element_type(tile.element)
    return element if tile.is_scalar else ir.RankedTensorType.get(tile.shape, element)


DYNAMIC = ir.ShapedType.get_dynamic_size()
_DYNAMIC_STRIDE = ir.ShapedType.get_dynamic_stride_or_offset()
_SHARED_SPACE = 3


def tensor_type(tensor: TensorType) -> ir.MemRefType:
    """The strided memref of a tensor: integers are static extents, one axis has stride 1."""
    extents = [e if isinstance(e, int) else DYNAMIC for e in tensor.extents]
    strides = [_DYNAMIC_STRIDE] * tensor.rank
    if tensor.rank:
        strides[tensor.contiguous] = 1
    return _memref(
        extents, tensor.element, 0, strides, {"own": ir.StringAttr.get(tensor.own.value)}
    )


def part_type(part: PartType) -> ir.MemRefType:
    """The memref of one part: clipped, so every extent is dynamic, and so is the offset."""
    strides = [_DYNAMIC_STRIDE] * part.rank
    if part.rank:
        strides[part.tensor.contiguous] = 1
    index = ir.IntegerType.get_signless(64)
    block = ir.ArrayAttr.get([ir.IntegerAttr.get(index, b) for b in part.block])
    space = {"own": ir.StringAttr.get("part"), "block": block}
    return _memref([DYNAMIC] * part.rank, part.element, _DYNAMIC_STRIDE, strides, space)


def base_type(tensor: TensorType) -> ir.MemRefType:
    """The rank-0 memref that stands for the pointer of a kernel's parameter."""
    space = ir.DictAttr.get({"own": ir.StringAttr.get(tensor.own.value)})
    return ir.MemRefType.get([], element_type(tensor.element), memory_space=space)


def shared_memory_type(shape: Sequence[int], element: ir.Type) -> ir.MemRefType:
    """The memref of a tile in shared memory, as the hardware's address space (NVVM, 3)."""
    space = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), _SHARED_SPACE)
    return ir.MemRefType.get(list(shape), element, memory_space=space)


def _memref(
    extents: Sequence[int],
    element: Element,
    offset: int,
    strides: Sequence[int],
    space: dict[str, ir.Attribute],
) -> ir.MemRefType:
    layout = ir.StridedLayoutAttr.get(offset, list(strides))
    return ir.MemRefType.get(
        list(extents), element_type(element), layout=layout, memory_space=ir.DictAttr.get(space)
    )


@dataclass(frozen=True)
class ViewFacts:
    """What a view's memref type says beside its extents: `block` is None unless it is a part."""

    own: str
    block: tuple[int, ...] | None


def view_facts(mlir_type: ir.Type) -> ViewFacts:
    """Ownership and block of a view, from its memory space."""
    space = ir.DictAttr(ir.MemRefType(mlir_type).memory_space)
    block = None
    if "block" in space:
        block = tuple(ir.IntegerAttr(b).value for b in ir.ArrayAttr(space["block"]))
    return ViewFacts(ir.StringAttr(space["own"]).value, block)


def is_tile(value: ir.Value) -> bool:
    """Whether a value is held by threads together, so that it has a layout."""
    return bool(isinstance(value.type, ir.RankedTensorType))
