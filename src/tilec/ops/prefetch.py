"""`warp.prefetch`: a tile on its way to L2, which nobody waits for.

Each thread names pieces of rows, as whole lines of the cache. What the tensor's end cuts is left:
it comes when it is loaded.

Source:   PTX ISA, "cp.async.bulk.prefetch"
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import arith, llvm
from tilec.layout import blocked
from tilec.ops.bounds import bounds_of
from tilec.ops.fragments import bit_width, i32
from tilec.ops.lowering import Lowered, Lowering, View
from tilec.ops.rules import Datum, Machine, OpRules
from tilec.ops.thread_access import Access

# Units: bytes. Of a line of L2; of what copies by hardware are multiples of.
_LINE, _PIECE = 128, 16
PREFETCH = "cp.async.bulk.prefetch.L2.global [$0], $1;"


class _Prefetch(OpRules):
    name = "warp.prefetch"

    def interpret(self, op: ir.OpView, operands: Sequence[Datum], machine: Machine) -> list[Datum]:
        return []

    def lower(
        self, op: ir.OpView, operands: Sequence[Lowered], lowering: Lowering
    ) -> Sequence[Lowered]:
        view, *indices = operands
        assert isinstance(view, View)
        axis = view.contiguous
        shape = tuple(ir.IntegerAttr(n).value for n in ir.ArrayAttr(op.attributes["shape"]))
        size = bit_width(view.element) // 8
        if axis is None or lowering.vector_bytes < _PIECE:
            return []  # nothing is known of where rows begin
        run = min(shape[axis] & -shape[axis], _LINE // size)
        order = [axis, *(a for a in reversed(range(len(shape))) if a != axis)]
        layout = blocked(shape, lowering.warps, order, run)
        unit = ir.StringAttr(op.attributes["unit"]).value
        here = Access(lowering, view, layout, shape, indices, unit, bounds_of(op))
        if here.width * size != _PIECE:
            return []
        unique = lowering.holds_unique(layout)
        for group in here.groups:
            if group.coordinate[axis] % run == 0:
                masks = [m for m in (here.mask_of_run(group, run), unique) if m is not None]
                _fetch(here.address(group), run * size, masks)
        return []


def _fetch(address: ir.Value, size: int, masks: Sequence[ir.Value]) -> None:
    text, operands, constraints = PREFETCH, [address, i32(size)], "l,r"
    if masks:
        mask = masks[0] if len(masks) == 1 else arith.andi(*masks)
        text, operands, constraints = f"@$2 {text}", [*operands, mask], f"{constraints},b"
    llvm.inline_asm(None, operands, text, constraints, has_side_effects=True)


RULES: tuple[OpRules, ...] = (_Prefetch(),)
