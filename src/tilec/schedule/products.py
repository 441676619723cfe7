"""Which products of a kernel have factors that hardware could copy to shared memory and read there.

A factor is followed back through what only moves axes (transposes, axes of extent 1), to a load of
a whole tensor, and through views to that tensor's own axes. Nothing else of the kernel matters:
what a product is part of, and what else is done beside it, may be anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from mlir import ir

from tilec.ir.types import is_tile, view_facts
from tilec.ir.walk import argument_names, operations
from tilec.layout.swizzled import PATTERN_ROWS, SwizzledTile
from tilec.layout.wgmma import WORD_BYTES, SharedOperand, Wgmma, shared_operand, wgmma_for
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape, shape_of

_EXACT = ("f16", "bf16", "i8", "u8", "tf32")
# They sum products of these in fewer bits than f32 has.
_SHORT = ("f8e4m3", "f8e5m2")
# Sums of 16 bits are two in a register while they are under way.
_TOTALS = ("f32", "i32")


# The unit attribute of a product whose rows are columns of what is computed of it.
TURNED = "warp.turned"


@dataclass(frozen=True)
class Copied:
    """A load that hardware can do: a tile of a whole parameter; of f32, rounded on the way,
    if `element` is tf32.

    Shapes:   `indices` and `tile` are in the order of the tensor's own axes
    """

    load: ir.OpView
    tensor: ir.Value  # the view of all of it
    param: str
    indices: tuple[ir.Value, ...]
    unit: str
    tile: SwizzledTile
    element: ir.Type
    order: tuple[int, ...]  # which axis of the tensor each axis of the load is

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
class Computed:
    """A first factor that threads compute, and hold in registers.

    `sources` are tiles in shared memory that it is computed of; `k` products are summed.
    """

    value: ir.Value
    sources: tuple[Copied, ...]
    k: int


@dataclass(frozen=True)
class Staged:
    """A second factor that threads compute, and write to shared memory for products to read.

    Axis i of the value is axis `axes[i]` of `tile`, of which `k_axis` is the one that is summed.
    """

    value: ir.Value
    sources: tuple[Copied, ...]
    tile: SwizzledTile
    axes: tuple[int, ...]
    k_axis: int

    @property
    def operand(self) -> SharedOperand:
        """As the instruction reads it."""
        found = shared_operand(self.tile, self.k_axis)
        assert found is not None, "a factor is readable"
        return found


@dataclass(frozen=True)
class Product:
    """A product that `instruction` computes, from shared memory or with `a` in registers.

    `is_promoted`: it is summed from zero, and then added to its sums, which have more bits.

    Shapes:   (m, k) times (k, n), axes before them of extent 1
    """

    op: ir.OpView
    a: Factor | Computed
    b: Factor | Staged
    instruction: Wgmma
    is_promoted: bool = False

    @cached_property
    def shape(self) -> tuple[int, int]:
        rows, columns = shape_of(self.op.results[0])[-2:]
        return rows, columns

    @property
    def k(self) -> int:
        return self.b.operand.k

    @property
    def held_words(self) -> int:
        """What all its threads together hold: sums, twice if promoted, and a computed factor.

        Units:    32-bit registers
        """
        rows, columns = self.shape
        sums = rows * columns * (2 if self.is_promoted else 1)
        if not isinstance(self.a, Computed):
            return sums
        return sums + rows * self.k * self.instruction.element_bytes // WORD_BYTES

    @property
    def copied(self) -> tuple[Copied, ...]:
        """What it reads or is computed of that comes by copies."""
        first = self.a.sources if isinstance(self.a, Computed) else (self.a.copied,)
        second = self.b.sources if isinstance(self.b, Staged) else (self.b.copied,)
        return (*first, *second)


@dataclass(frozen=True)
class Unfit:
    """A product that is computed otherwise, and why; `may_turn`: it may fit turned round."""

    op: ir.OpView
    why: str
    may_turn: bool = False


class _UnfitError(Exception):
    """Why a product is computed otherwise."""


class _ComputedError(_UnfitError):
    """A factor is computed, which the first one may be."""


def find_products(
    function: ir.OpView, *, is_fast: bool = False, stages: bool = False
) -> list[Product | Unfit]:
    """All of a function, in program order; if `is_fast`, sums may have as few bits as they get.

    `stages`: a second factor that is computed goes through shared memory, though the first one is
    not computed.
    """
    names = argument_names(function)
    found = (_product(op, names, is_fast, stages) for op in operations(function))
    return [product for product in found if product is not None]


def _product(
    op: ir.OpView, names: dict[ir.Value, str], is_fast: bool, stages: bool
) -> Product | Unfit | None:
    elements = rules()[op.operation.name].multiplied(op)
    if elements is None:
        return None
    try:
        return _fitting(op, elements, names, is_fast, stages)
    except _UnfitError as error:
        return Unfit(op, str(error), isinstance(error, _ComputedError))


def _fitting(
    op: ir.OpView,
    elements: tuple[str, str, str],
    names: dict[ir.Value, str],
    is_fast: bool,
    stages: bool,
) -> Product:
    if elements[0] not in (*_EXACT, *_SHORT) or elements[2] not in _TOTALS:
        raise _UnfitError(f"no other one sums {elements[0]} in {elements[2]} as exactly")
    a, b = list(op.operands)[:2]
    instruction = wgmma_for(*elements)
    if instruction is None:
        raise _UnfitError(f"nothing multiplies {elements[0]} and {elements[1]} asynchronously")
    *batch, _, depth = shape_of(a)
    if any(extent != 1 for extent in batch):
        raise _UnfitError(f"it is a batch of {prod(batch)} products")
    if depth % instruction.k:
        raise _UnfitError(f"it sums {depth} products, no multiple of {instruction.k}")
    if _moves(op):
        # They would be copied while under way: ptxas runs products one by one then (C7518).
        raise _UnfitError("its sums take the place of others in the next turn")
    first = _first_factor(op, a, names)
    second: Factor | Staged
    try:
        second = _factor(b, len(batch), names)
    except _ComputedError:
        # In registers it would cost less: it may be, turned round.
        if not isinstance(first, Computed) and not stages:
            raise _ComputedError("the second factor is computed") from None
        second = _staged(b, instruction.element_bytes, op.operation.block, names)
    is_promoted = elements[0] in _SHORT and not is_fast
    return Product(op, first, second, instruction, is_promoted)


def _first_factor(op: ir.OpView, a: ir.Value, names: dict[ir.Value, str]) -> Factor | Computed:
    *_, depth = shape_of(a)
    try:
        return _factor(a, len(shape_of(a)) - 1, names)
    except _ComputedError:
        return Computed(a, _sources(a, op.operation.block, names), depth)


def _staged(b: ir.Value, element_bytes: int, block: ir.Block, names: dict[ir.Value, str]) -> Staged:
    """The second factor as threads write it: along k, or where instructions take it otherwise, as
    what it is computed of lies, so that nothing is turned round."""
    found = _sources(b, block, names)
    *batch, depth, columns = shape_of(b)
    rank = len(batch) + 2
    straight = tuple(range(rank))
    turned = (*straight[:-2], rank - 1, rank - 2)
    for axes in (straight, turned) if _lies_across(b, found) else (turned, straight):
        extents = (*batch, depth, columns) if axes == straight else (*batch, columns, depth)
        tile = SwizzledTile.of(extents, element_bytes)
        if tile is not None and shared_operand(tile, axes[-2]) is not None:
            return Staged(b, found, tile, axes, axes[-2])
    raise _UnfitError(f"tensor cores do not read {depth}x{columns} that are computed")


def _lies_across(value: ir.Value, found: Sequence[Copied]) -> bool:
    """Whether the first tile that a factor is computed of, and that has its axes, is not contiguous
    along k, the last axis but one of the factor."""
    loads = {one.load.operation: one for one in found}
    axes: list[int | None] = list(range(len(shape_of(value))))
    while not isinstance(value.owner, ir.Block):
        op = value.owner.opview
        if op.operation in loads:
            order = loads[op.operation].order
            last = axes[-2]
            return last is None or order[last] != len(order) - 1
        moved = rules()[op.operation.name].moved_axes(op)
        if moved is not None:
            axes = [None if axis is None else moved[axis] for axis in axes]
        same = [v for v in op.operands if is_tile(v) and (moved or shape_of(v) == shape_of(value))]
        if not same:
            return True
        value = same[0]
    return True


def _sources(value: ir.Value, block: ir.Block, names: dict[ir.Value, str]) -> tuple[Copied, ...]:
    found = (_source(load, names) for load in sources(value, block))
    return tuple(one for one in found if one is not None)


def sources(value: ir.Value, block: ir.Block) -> list[ir.OpView]:
    """The loads in a block that a tile is computed of, in program order.

    What a product reads is none of them: what comes of it are sums.
    """
    left, seen = [value], set()
    while left:
        value = left.pop()
        if isinstance(value.owner, ir.Block):
            continue
        maker = value.owner.operation
        is_here = maker.block == block and maker not in seen
        if is_here and rules()[maker.name].multiplied(maker.opview) is None:
            seen.add(maker)
            left += (one for one in maker.operands if is_tile(one))
    ops = (op for op in block.operations if op.operation in seen)
    return [op for op in ops if rules()[op.operation.name].access(op) is not None]


def _source(op: ir.OpView, names: dict[ir.Value, str]) -> Copied | None:
    """A load as a copy; None where threads load it themselves."""
    access = rules()[op.operation.name].access(op)
    assert access is not None, "it loads"
    try:
        found = _copied(op, access, names)
    except _UnfitError:
        return None
    # One row, or patterns of eight that follow each other: threads find elements by adding.
    rows = (1, *found.tile.shape)[-2]
    is_whole = found.tile.rows == 1 or rows % PATTERN_ROWS == 0
    return found if is_whole else None


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
        if _rounds_load(op):
            value = op.operands[0]
            continue
        moved = rule.moved_axes(op)
        if moved is None:
            break
        axes = [None if axis is None else moved[axis] for axis in axes]
        value = op.operands[0]
    raise _ComputedError("a factor is computed")


def _loaded(
    op: ir.OpView,
    access: AccessShape,
    axes: Sequence[int | None],
    k: int,
    names: dict[ir.Value, str],
) -> Factor:
    found = _copied(op, access, names)
    own = [None if axis is None else found.order[axis] for axis in axes]
    if None in own[-2:]:
        raise _UnfitError("a factor is a row or column alone")
    others = (extent for axis, extent in enumerate(found.tile.shape) if axis not in own)
    factor = Factor(found, own[k] or 0)
    if any(extent != 1 for extent in others):
        raise _UnfitError(f"tensor cores do not read such tiles of `{found.param}`")
    if shared_operand(found.tile, factor.k_axis) is None:
        raise _ComputedError(f"tensor cores do not read such tiles of `{found.param}`")
    return factor


def _copied(op: ir.OpView, access: AccessShape, names: dict[ir.Value, str]) -> Copied:
    """The load as a copy."""
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
    rounding = rounding_of(op)
    if rounding is not None:
        element = ir.RankedTensorType(rounding.results[0].type).element_type
    tile = SwizzledTile.of(_in_order(access.shape, order), bit_width(element) // 8)
    if tile is None:
        raise _UnfitError(f"no copy brings such tiles of `{names[source]}`")
    indices = tuple(_in_order(access.indices, order))
    return Copied(op, view, names[source], indices, access.unit, tile, element, order)


def rounding_of(load: ir.OpView) -> ir.OpView | None:
    """What rounds a load as copies by hardware can, where nothing else uses it."""
    uses = [use.owner.opview for result in load.results for use in result.uses]
    if len(uses) != 1 or rules()[uses[0].operation.name].rounded(uses[0]) is None:
        return None
    return uses[0]


def _rounds_load(op: ir.OpView) -> bool:
    """Whether it is what rounds a load, as copies can."""
    if not len(op.operands) or isinstance(op.operands[0].owner, ir.Block):
        return False
    maker = op.operands[0].owner.opview
    if rules()[maker.operation.name].access(maker) is None:
        return False
    rounding = rounding_of(maker)
    return rounding is not None and rounding == op


def _in_order(values: Sequence, order: Sequence[int]) -> tuple:  # type: ignore[type-arg]
    """By the tensor's own axes, given by those of the view."""
    return tuple(values[order.index(axis)] for axis in range(len(order)))
