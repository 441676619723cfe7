"""Atomic updates as instructions of one thread.

Each update is done once: of the threads that hold the same element, one does it, and what it found
goes to the others where the program asks for that. LLVM makes one instruction of an update where
the machine has one, and a loop around a compare-and-swap elsewhere; ptxas makes a reduction (`red`)
of an update whose result nobody uses.

Orders are fences: LLVM's NVPTX drops the order of an `atomicrmw` in silence. The program around it
is ordered by barriers (`insert_barriers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from mlir import ir

from tilec.ir.dialects import arith, llvm, scf
from tilec.ir.effects import only_computes
from tilec.ir.types import is_tile
from tilec.layout import LANE_BITS, LANES, Layout, unique_holders
from tilec.ops.between_threads import from_memory, shuffle_from, to_memory
from tilec.ops.fragments import bit_width, element_offset, i32, in_memory, pack, unpack, zero
from tilec.ops.index_tiles import axes_of
from tilec.ops.lower_indexed import Chosen, registers_of
from tilec.ops.lower_layout import through_rows
from tilec.ops.lowering import Lowered, Lowering, View, is_disjoint, register_coordinates
from tilec.ops.memory_layout import contiguous_axis, held_layout
from tilec.ops.notes import Accessed
from tilec.ops.rules import IndexedShape, Placing

_SCOPE = "device"

# The kinds of `llvm.atomicrmw`: on integers, and on floats.
_KINDS = {
    "swap": ("xchg", "xchg"),
    "add": ("add", "fadd"),
    "min": ("min", "fmin"),
    "max": ("max", "fmax"),
    "umin": ("umin", ""),
    "umax": ("umax", ""),
    "and": ("_and", ""),
    "or": ("_or", ""),
    "xor": ("_xor", ""),
}


# ---- layouts -------------------------------------------------------------------------------------


def update_layout(
    op: ir.OpView, access: IndexedShape, known: Sequence[Layout | None], placing: Placing
) -> Layout:
    """The layout in which threads do updates.

    Where the indices of neighbours are computed they may well be neighbours in memory: then lanes
    side by side do them, one element each at a time. Where indices are data, any layout serves.
    """
    axis = contiguous_axis(access.view)
    along = None if axis is None else access.chosen[axis]
    if along is None or not is_tile(along) or _is_data(along):
        for layout in known:
            if layout is not None and is_disjoint(layout):
                return layout
    return placing.default(access.shape)


def _is_data(value: ir.Value) -> bool:
    """Whether a tile comes from memory, or from where nobody knows."""
    waiting, seen = [value], set[ir.Value]()
    while waiting:
        one = waiting.pop()
        if one in seen or not is_tile(one):
            continue
        seen.add(one)
        if isinstance(one.owner, ir.Block) or len(one.owner.regions) > 1:
            return True
        if not only_computes(one.owner.opview):
            return True
        waiting += one.owner.operands
    return False


# ---- code ----------------------------------------------------------------------------------------


def lower_update(
    op: ir.OpView, access: IndexedShape, operands: Sequence[Lowered], lowering: Lowering
) -> ir.Value:
    """What was there before each update: a fragment, or a scalar."""
    view, *rest = operands
    assert isinstance(view, View)
    _, *counts, _ = op.attributes["operandSegmentSizes"]
    layout = held_layout(access.tile, lowering.warps)
    values = [
        [to_memory(v) for v in unpack(value)] if is_tile(source) else [to_memory(value)]
        for source, value in zip(
            list(op.operands)[1 + sum(counts) :], rest[sum(counts) :], strict=True
        )
    ]
    places = _places(op, access, view, rest[: sum(counts)], layout.registers)
    element_bytes = bit_width(view.element) // 8
    is_masked = places.is_checked or lowering.holds_unique(layout) is not None
    count = len(set(register_coordinates(layout)))
    lowering.note(
        Accessed("atomic", view.parameter, layout, element_bytes, 1, count, is_masked, None)
    )
    is_used = any(True for _ in op.results[0].uses)
    ordered = ir.StringAttr(op.attributes["ordering"]).value == "acq_rel"
    if ordered:
        _fence()
    unique = lowering.holds_unique(layout)
    found: dict[tuple[int, ...], ir.Value] = {}
    coordinates = register_coordinates(layout)
    for register in range(layout.registers):
        if coordinates[register] not in found:
            mask = _all([m for m in (places.mask(register), unique) if m is not None])
            pointer = _pointer(view, places, register)
            given = [value[register] for value in values]
            found[coordinates[register]] = _update(op, view, pointer, given, mask, is_used=is_used)
    if ordered:
        _fence()
    before: Sequence[ir.Value] = [from_memory(found[c], view.element) for c in coordinates]
    if is_used:
        before = _for_all(layout, before, lowering)
    return pack(before) if is_tile(op.results[0]) else before[0]


def _places(
    op: ir.OpView, access: IndexedShape, view: View, indices: Sequence[Lowered], registers: int
) -> Chosen:
    starts, chosen = axes_of(op, indices)
    lowered = [t if s is None else s for s, t in zip(starts, chosen, strict=True)]
    found = registers_of(access, lowered, registers)
    return Chosen(view, found, "unchecked" not in op.attributes)


def _pointer(view: View, places: Chosen, register: int) -> ir.Value:
    total = places.offset(register)
    for axis, start in enumerate(view.starts):
        total = arith.addi(total, arith.muli(start, view.strides[axis]))
    offset = arith.index_cast(ir.IntegerType.get_signless(64), total)
    return element_offset(view.base, offset, in_memory(view.element))


def _update(
    op: ir.OpView,
    view: View,
    pointer: ir.Value,
    values: Sequence[ir.Value],
    mask: ir.Value | None,
    *,
    is_used: bool,
) -> ir.Value:
    """What was there, as in memory; zero where the mask is not set."""
    element = in_memory(view.element)
    if mask is None:
        return _instruction(op, element, pointer, values)
    branch = scf.IfOp(mask, [element] if is_used else [], has_else=is_used)
    with ir.InsertionPoint(branch.then_block):
        old = _instruction(op, element, pointer, values)
        scf.yield_([old] if is_used else [])
    if not is_used:
        return zero(element)
    with ir.InsertionPoint(branch.else_block):
        scf.yield_([zero(element)])
    return branch.results[0]


def _instruction(
    op: ir.OpView, element: ir.Type, pointer: ir.Value, values: Sequence[ir.Value]
) -> ir.Value:
    update = ir.StringAttr(op.attributes["update"]).value
    relaxed = llvm.AtomicOrdering.monotonic
    alignment = bit_width(element) // 8
    if update == "load":
        return llvm.load(element, pointer, alignment=alignment, ordering=relaxed, syncscope=_SCOPE)
    if update == "compare_exchange":
        expected, new = values
        both = ir.Type.parse(f"!llvm.struct<({element}, i1)>")
        found = llvm.cmpxchg(
            pointer, expected, new, relaxed, relaxed, syncscope=_SCOPE, alignment=alignment
        )
        assert found.type == both
        return llvm.extractvalue(element, found, ir.DenseI64ArrayAttr.get([0]))
    kind = getattr(llvm.AtomicBinOp, _KINDS[update][isinstance(element, ir.FloatType)])
    return llvm.atomicrmw(kind, pointer, values[0], relaxed, syncscope=_SCOPE, alignment=alignment)


def _fence() -> None:
    llvm.fence(llvm.AtomicOrdering.acq_rel, syncscope=_SCOPE)


def _all(masks: Sequence[ir.Value]) -> ir.Value | None:
    return reduce(arith.andi, masks) if masks else None


def _for_all(
    layout: Layout, registers: Sequence[ir.Value], lowering: Lowering
) -> Sequence[ir.Value]:
    """What the one thread that did an update found, for all that hold its element."""
    holders = unique_holders(layout)
    if holders.lane == holders.warp == 0:
        return registers
    repeated = [basis for bit, basis in enumerate(layout.lane) if holders.lane >> bit & 1]
    if holders.warp or any(map(any, repeated)):
        return through_rows(layout, layout, registers, lowering)
    # The lane of the same number without the bits that repeat.
    assert len(layout.lane) == LANE_BITS
    lane = arith.andi(lowering.thread, i32((LANES - 1) & ~holders.lane))
    return [shuffle_from(value, lane) for value in registers]
