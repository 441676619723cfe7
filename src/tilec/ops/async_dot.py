"""`warp.dot`, `warp.drain`, `warp.wait`: products that go on while their threads do."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.types import is_tile
from tilec.layout import Layout
from tilec.layout.wgmma import (
    WARPGROUP_WARPS,
    SharedOperand,
    Wgmma,
    a_register_layout,
    accumulator_layout,
    shared_operand,
)
from tilec.ops.build import number_of
from tilec.ops.channel import SharedTile
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import pack, unpack
from tilec.ops.lower_wgmma import WgmmaDot, finish, start, wait
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import OpRules, Places, Placing, shape_of

# Where along k of the second factor a shorter first one begins, if not at its start.
K_FROM = "k_from"


class _Dot(OpRules):
    name = "warp.dot"

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        groups = placing.warps // WARPGROUP_WARPS
        layout = accumulator_layout(shape_of(op.results[0]), groups)
        a = op.operands[0]
        held = a_register_layout(shape_of(a), groups, _bytes(op)) if is_tile(a) else None
        return Places((held, None, layout), (layout,))

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        return 0.0  # there is one layout only

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        a, b, before = operands
        assert isinstance(b, SharedTile) and isinstance(before, ir.Value)
        sums = None if _is_zero(op.operands[2]) else unpack(before)
        layout, right = layout_of(op.results[0].type), _operand(op, b, "b_k")
        if isinstance(a, ir.Value):
            first = number_of(op, K_FROM) if K_FROM in op.attributes else 0
            dot = WgmmaDot(_wgmma(op), layout, layout_of(op.operands[0].type), right, first)
            return [pack(start(dot, sums, a, b.address))]
        assert isinstance(a, SharedTile)
        dot = WgmmaDot(_wgmma(op), layout, _operand(op, a, "a_k"), right)
        group = lowering.warpgroup() if lowering.warps > WARPGROUP_WARPS else None
        return [pack(start(dot, sums, a.address, b.address, group))]


def _is_zero(tile: ir.Value) -> bool:
    """Whether a product begins there: instructions need no zeros to add to."""
    if isinstance(tile.owner, ir.Block) or tile.owner.name != "arith.constant":
        return False
    value = ir.DenseElementsAttr(tile.owner.attributes["value"])
    if not value.is_splat:
        return False
    return bool(value.get_splat_value().value == 0)


def _wgmma(op: ir.OpView) -> Wgmma:
    return Wgmma(*(ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes["elements"])))


def _bytes(op: ir.OpView) -> int:
    return _wgmma(op).element_bytes


def _operand(op: ir.OpView, factor: SharedTile, k_axis: str) -> SharedOperand:
    found = shared_operand(factor.tile, number_of(op, k_axis))
    assert found is not None, "a schedule has factors that can be read"
    return found


class _Drain(OpRules):
    name = "warp.drain"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        wait(number_of(op, "pending"))
        return []


class _Wait(OpRules):
    name = "warp.wait"
    is_wait = True

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [begun] = operands
        assert isinstance(begun, ir.Value)
        # Sums in f16 are words of two while they are under way: no schedule has them.
        return [pack(finish("f32", unpack(begun), number_of(op, "pending")))]


RULES: tuple[OpRules, ...] = (_Dot(), _Drain(), _Wait())
