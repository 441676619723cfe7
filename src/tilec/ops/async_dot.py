"""`warp.dot`, `warp.drain`, `warp.wait`: products that go on while their threads do."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.layout import Layout
from tilec.layout.wgmma import WARPGROUP_WARPS, Wgmma, accumulator_layout, shared_operand
from tilec.ops.channel import SharedTile
from tilec.ops.encoding import layout_of
from tilec.ops.fragments import pack, unpack
from tilec.ops.lower_wgmma import WgmmaDot, finish, start, wait
from tilec.ops.lowering import Lowered, Lowering
from tilec.ops.rules import OpRules, Places, Placing, shape_of


class _Dot(OpRules):
    name = "warp.dot"

    def place(self, op: ir.OpView, known: Sequence[Layout | None], placing: Placing) -> Places:
        layout = accumulator_layout(shape_of(op.results[0]), placing.warps // WARPGROUP_WARPS)
        return Places((None, None, layout), (layout,))

    def layout_cost(self, op: ir.OpView, places: Places, placing: Placing) -> float:
        return 0.0  # there is one layout only

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        a, b, sums = operands
        assert isinstance(a, SharedTile) and isinstance(b, SharedTile)
        assert isinstance(sums, ir.Value)
        left, right = (
            shared_operand(factor.tile, int(ir.IntegerAttr(op.attributes[name]).value))
            for factor, name in ((a, "a_k"), (b, "b_k"))
        )
        assert left is not None and right is not None, "a schedule has factors that can be read"
        elements = (ir.StringAttr(name).value for name in ir.ArrayAttr(op.attributes["elements"]))
        dot = WgmmaDot(Wgmma(*elements), layout_of(op.results[0].type), left, right)
        group = lowering.warpgroup() if lowering.warps > WARPGROUP_WARPS else None
        return [pack(start(dot, unpack(sums), a.address, b.address, group))]


class _Drain(OpRules):
    name = "warp.drain"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        wait(int(ir.IntegerAttr(op.attributes["pending"]).value))
        return []


class _Wait(OpRules):
    name = "warp.wait"

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        [begun] = operands
        assert isinstance(begun, ir.Value)
        # Sums in f16 are words of two while they are under way: no schedule has them.
        return [pack(finish("f32", unpack(begun)))]


RULES: tuple[OpRules, ...] = (_Dot(), _Drain(), _Wait())
