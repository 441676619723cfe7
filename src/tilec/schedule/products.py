"""Which products of a kernel have factors that hardware could copy to shared memory and read there.

A factor is followed back through what only moves axes (transposes, axes of extent 1), to a load of
a whole tensor, and through views to that tensor's own axes. Nothing else of the kernel matters:
what a product is part of, and what else is done beside it, may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mlir import ir

from tilec.ir.types import view_facts
from tilec.ir.walk import operations
from tilec.layout.swizzled import SwizzledTile
from tilec.layout.wgmma import SharedOperand, Wgmma, shared_operand, wgmma_for
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape, shape_of

# Tensor cores sum f8 in fewer bits than f32 has, and cut f32 to tf32 instead of rounding it.
_EXACT = ("f16", "bf16", "i8", "u8")
# Sums of 16 bits are two in a register while they are under way.
_TOTALS = ("f32", "i32")


@dataclass(frozen=True)
class Copied:
    """A load that hardware can do: a tile of a whole parameter.

    Shapes:   `indices` and `tile` are in the order of the tensor's own axes
    """

    load: ir.OpView
    tensor: ir.Value  # the view of all of it
    param: str
    indices: tuple[ir.Value, ...]
    unit: str
    tile: SwizzledTile
    element: ir.Type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Copied) and self.load == other.load

    def __hash__(self) -> int:
        return hash(self.load.operation)

    @property
    def block(self) -> ir.Block:
        return self.load.operation.block


@dataclass(frozen=True)
class Factor:
    """A factor of a product; `k_axis` is the axis of its tensor along which products are summed."""

    copied: Copied
    k_axis: int

    @property
    def operand(self) -> SharedOperand:
        """As the instruction reads it."""
        found = shared_operand(self.copied.tile, self.k_axis)
        assert found is not None, "a factor is readable"
        return found


@dataclass(frozen=True)
class Product:
    """A product that `instruction` computes from shared memory: (m, k) times (k, n)."""

    op: ir.OpView
    a: Factor
    b: Factor
    instruction: Wgmma

    @cached_property
    def shape(self) -> tuple[int, int]:
        rows, columns = shape_of(self.op.results[0])
        return rows, columns


def find_products(function: ir.OpView) -> list[Product]:
    """Those of a function, in program order."""
    names = _parameters(function)
    found = (_product(op, names) for op in operations(function))
    return [product for product in found if product is not None]


def _parameters(function: ir.OpView) -> dict[ir.Value, str]:
    """Names in the source of the pointers that a kernel gets."""
    [block] = function.regions[0].blocks
    attributes = (ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"]))
    slots = [ir.DictAttr(a["tile.slot"]) for a in attributes]
    return {
        argument: ir.StringAttr(slot["name"]).value
        for argument, slot in zip(block.arguments, slots, strict=True)
    }


def _product(op: ir.OpView, names: dict[ir.Value, str]) -> Product | None:
    elements = rules()[op.operation.name].multiplied(op)
    if elements is None or elements[0] not in _EXACT or elements[2] not in _TOTALS:
        return None
    a, b, sums = list(op.operands)[:3]
    instruction = wgmma_for(*elements)
    if instruction is None or len(shape_of(sums)) != 2 or shape_of(a)[1] % instruction.k:
        return None
    left, right = _factor(a, 1, names), _factor(b, 0, names)
    if left is None or right is None:
        return None
    return Product(op, left, right, instruction)


def _factor(value: ir.Value, k: int, names: dict[ir.Value, str]) -> Factor | None:
    """Axis `k` of the value is that along which products are summed."""
    axes: list[int | None] = list(range(len(shape_of(value))))
    while not isinstance(value.owner, ir.Block):
        op = value.owner.opview
        rule = rules()[op.operation.name]
        access = rule.access(op)
        if access is not None:
            return _loaded(op, access, axes, k, names)
        moved = rule.moved_axes(op)
        if moved is None:
            return None
        axes = [None if axis is None else moved[axis] for axis in axes]
        value = op.operands[0]
    return None


def _loaded(
    op: ir.OpView,
    access: AccessShape,
    axes: Sequence[int | None],
    k: int,
    names: dict[ir.Value, str],
) -> Factor | None:
    copied = _copied(op, access, names)
    if copied is None:
        return None
    found, order = copied
    own = [None if axis is None else order[axis] for axis in axes]
    # A row or column alone is no factor that the hardware reads.
    if None in own:
        return None
    others = (extent for axis, extent in enumerate(found.tile.shape) if axis not in own)
    factor = Factor(found, own[k] or 0)
    if any(extent != 1 for extent in others) or shared_operand(found.tile, factor.k_axis) is None:
        return None
    return factor


def _copied(
    op: ir.OpView, access: AccessShape, names: dict[ir.Value, str]
) -> tuple[Copied, tuple[int, ...]] | None:
    """The load as a copy, and which axis of its tensor each axis of its tile is."""
    is_load = access.tile in list(op.results)
    has_fill = len(op.operands) > 1 + len(access.indices)
    if not is_load or has_fill or view_facts(access.view.type).own != "shared":
        return None
    view, order = access.view, tuple(range(len(access.shape)))
    while not isinstance(view.owner, ir.Block):
        maker = view.owner.opview
        source = maker.operands[0]
        if source in names:
            break
        rule = rules()[maker.operation.name]
        if not rule.is_view_of_all:
            return None
        order = tuple(rule.viewed_axis(maker, axis) for axis in order)
        view = source
    else:
        return None
    element = ir.MemRefType(view.type).element_type
    tile = SwizzledTile.of(_in_order(access.shape, order), bit_width(element) // 8)
    if tile is None:
        return None
    indices = tuple(_in_order(access.indices, order))
    return Copied(op, view, names[source], indices, access.unit, tile, element), order


def _in_order(values: Sequence, order: Sequence[int]) -> tuple:  # type: ignore[type-arg]
    """By the tensor's own axes, given by those of the view."""
    return tuple(values[order.index(axis)] for axis in range(len(order)))
