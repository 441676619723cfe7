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
from tilec.ir.walk import argument_names, operations
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


@dataclass(frozen=True)
class Unfit:
    """A product that is computed otherwise, and why."""

    op: ir.OpView
    why: str


class _UnfitError(Exception):
    """Why a product is computed otherwise."""


def find_products(function: ir.OpView) -> list[Product | Unfit]:
    """All of a function, in program order."""
    names = argument_names(function)
    found = (_product(op, names) for op in operations(function))
    return [product for product in found if product is not None]


def _product(op: ir.OpView, names: dict[ir.Value, str]) -> Product | Unfit | None:
    elements = rules()[op.operation.name].multiplied(op)
    if elements is None:
        return None
    try:
        return _fitting(op, elements, names)
    except _UnfitError as error:
        return Unfit(op, str(error))


def _fitting(op: ir.OpView, elements: tuple[str, str, str], names: dict[ir.Value, str]) -> Product:
    if elements[0] not in _EXACT or elements[2] not in _TOTALS:
        raise _UnfitError(f"no other one sums {elements[0]} in {elements[2]} as exactly")
    a, b, sums = list(op.operands)[:3]
    instruction = wgmma_for(*elements)
    if instruction is None:
        raise _UnfitError(f"nothing multiplies {elements[0]} and {elements[1]} asynchronously")
    if len(shape_of(sums)) != 2:
        raise _UnfitError("it is a batch of products")
    if shape_of(a)[1] % instruction.k:
        raise _UnfitError(f"it sums {shape_of(a)[1]} products, no multiple of {instruction.k}")
    if _moves(op):
        # They would be copied while under way: ptxas runs products one by one then (C7518).
        raise _UnfitError("its sums take the place of others in the next turn")
    return Product(op, _factor(a, 1, names), _factor(b, 0, names), instruction)


def _moves(op: ir.OpView) -> bool:
    """Whether sums that a loop carries are carried as another of its variables after a product."""
    first = op.operands[2]
    while not isinstance(first.owner, ir.Block):
        maker = first.owner.opview
        if rules()[maker.operation.name].multiplied(maker) is None:
            return False
        first = maker.operands[2]
    if first.owner.owner.name != "scf.for":
        return False
    return any(
        use.owner.name == "scf.yield"
        and use.owner.operation.block == first.owner
        and use.operand_number != first.arg_number - 1
        for use in op.results[0].uses
    )


def _factor(value: ir.Value, k: int, names: dict[ir.Value, str]) -> Factor:
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
            break
        axes = [None if axis is None else moved[axis] for axis in axes]
        value = op.operands[0]
    raise _UnfitError("a factor is computed")


def _loaded(
    op: ir.OpView,
    access: AccessShape,
    axes: Sequence[int | None],
    k: int,
    names: dict[ir.Value, str],
) -> Factor:
    found, order = _copied(op, access, names)
    own = [None if axis is None else order[axis] for axis in axes]
    if None in own:
        raise _UnfitError("a factor is a row or column alone")
    others = (extent for axis, extent in enumerate(found.tile.shape) if axis not in own)
    factor = Factor(found, own[k] or 0)
    if any(extent != 1 for extent in others) or shared_operand(found.tile, factor.k_axis) is None:
        raise _UnfitError(f"tensor cores do not read such tiles of `{found.param}`")
    return factor


def _copied(
    op: ir.OpView, access: AccessShape, names: dict[ir.Value, str]
) -> tuple[Copied, tuple[int, ...]]:
    """The load as a copy, and which axis of its tensor each axis of its tile is."""
    is_load = access.tile in list(op.results)
    has_fill = len(op.operands) > 1 + len(access.indices)
    if not is_load or view_facts(access.view.type).own != "shared":
        raise _UnfitError("a factor is of a tensor that the kernel may write")
    if has_fill:
        raise _UnfitError("a factor has other elements than zero outside of its tensor")
    view, order = access.view, tuple(range(len(access.shape)))
    while not isinstance(view.owner, ir.Block):
        maker = view.owner.opview
        source = maker.operands[0]
        if source in names:
            break
        rule = rules()[maker.operation.name]
        if not rule.is_view_of_all:
            raise _UnfitError("a factor is a tile of a part of a tensor")
        order = tuple(rule.viewed_axis(maker, axis) for axis in order)
        view = source
    else:
        raise _UnfitError("a factor is of a tensor that a branch or loop chooses")
    element = ir.MemRefType(view.type).element_type
    tile = SwizzledTile.of(_in_order(access.shape, order), bit_width(element) // 8)
    if tile is None:
        raise _UnfitError(f"no copy brings such tiles of `{names[source]}`")
    indices = tuple(_in_order(access.indices, order))
    return Copied(op, view, names[source], indices, access.unit, tile, element), order


def _in_order(values: Sequence, order: Sequence[int]) -> tuple:  # type: ignore[type-arg]
    """By the tensor's own axes, given by those of the view."""
    return tuple(values[order.index(axis)] for axis in range(len(order)))
