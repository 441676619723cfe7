"""Loops whose tiles are copied to shared memory some turns ahead, where nobody has that as a role.

What counts is a load in a loop that is a factor of a product, whatever else uses it. All threads
copy, and compute. `schedule/plan.py` comes first: this is for what it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2, prod
from pathlib import Path

from mlir import ir

from tilec.hints import Hints
from tilec.ir.effects import computes_numbers
from tilec.ir.types import view_facts
from tilec.ir.walk import argument_names, operations
from tilec.layout.staged import StagedTile
from tilec.layout.swizzled import Slot, SwizzledTile
from tilec.ops.bounds import bounds_of
from tilec.ops.fragments import bit_width
from tilec.ops.lower_dot import mma_for
from tilec.ops.memory_layout import contiguous_axis, memory_layout
from tilec.ops.notes import place_of
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape, Placing, shape_of
from tilec.ops.staged import ASYNC, COPY_BYTES, REGISTERS
from tilec.ops.thread_access import vector_width
from tilec.schedule.plan import Reason
from tilec.schedule.rings import is_in_loop
from tilec.target.description import Target

_LEAST_DEPTH = 2


@dataclass(frozen=True)
class StagedLoad:
    """A load that becomes a tile of a ring's slot.

    Shapes:   `axes[i]` is the axis of memory that axis i of the load's tile is
    """

    load: ir.OpView
    param: str
    element: ir.Type
    tile: SwizzledTile
    axes: tuple[int, ...]
    fill: str


@dataclass(frozen=True)
class StagedRing:
    """Loads of one loop's body, in program order, that are filled in the same way."""

    loop: ir.OpView
    loads: tuple[StagedLoad, ...]
    depth: int
    fill: str
    rotates: bool = False  # whether a turn reads the first words of the next one's tiles

    @property
    def slot_bytes(self) -> int:
        return _slot_bytes(self.loads)


@dataclass(frozen=True)
class Stages:
    """What is copied ahead; `rows_together` as a `Schedule` has it. Without rings: nothing is."""

    rings: tuple[StagedRing, ...] = ()
    rows_together: int = 1
    sum_words: int = 0  # of 32 bits, those of the largest product
    reasons: tuple[Reason, ...] = ()

    @property
    def depth(self) -> int:
        """Of the deepest ring."""
        return max((ring.depth for ring in self.rings), default=0)


def blocks_at_once(stages: Stages, warps: int, shared_bytes: int, target: Target) -> int | None:
    """How many blocks are to be on a multiprocessor, by shared memory and by registers; None: more
    than two, and the assembler may weigh registers against that.

    Left alone, it spills to have more blocks than shared memory has room for. What fills rings
    through registers it schedules better if it is.
    """
    if not stages.rings or any(ring.fill == REGISTERS for ring in stages.rings):
        return None
    by_memory = target.smem_per_sm_bytes // (shared_bytes + target.smem_of_block_bytes)
    threads = warps * target.threads_per_warp
    is_ahead = any(ring.rotates for ring in stages.rings)
    limits = target.stages
    other = limits.other_registers + limits.ahead_registers * is_ahead
    by_registers = target.registers_per_sm // (stages.sum_words + threads * other)
    blocks = max(1, min(by_memory, by_registers))
    return blocks if blocks <= limits.few_blocks else None


class _UnfitError(Exception):
    """Why a load stays as it is."""


def plan_stages(
    function: ir.OpView,
    hints: Hints,
    target: Target,
    placing: Placing,
    fitting: int | None = None,
) -> Stages:
    """What is copied ahead in a function with access facts, and why not more.

    `fitting`: the most slots that left room for the rest of the kernel, if that is known.
    """
    names = argument_names(function)
    loads: dict[ir.Operation, StagedLoad] = {}
    reasons: list[Reason] = []
    products: list[ir.OpView] = []
    for op in operations(function):
        if rules()[op.operation.name].multiplied(op) is None:
            continue
        for factor in list(op.operands)[:2]:
            load = _load_of(factor)
            try:
                if not is_in_loop((load or op).operation.block):
                    continue
                if load is None:
                    raise _UnfitError("it is computed, or comes from elsewhere")
                found = loads.get(load.operation) or _staged(load, placing, names)
            except _UnfitError as error:
                reasons.append(Reason(_not_copied(op), str(error)))
                continue
            loads[load.operation] = found
            products.append(op)
    if not loads:
        return Stages(reasons=tuple(dict.fromkeys(reasons)))
    grouped = _by_loop(
        [loads[op.operation] for op in operations(function) if op.operation in loads]
    )
    depth, why = _depth(grouped, hints, target, fitting)
    reasons.insert(0, why)
    if depth < _LEAST_DEPTH:
        return Stages(reasons=tuple(dict.fromkeys(reasons)))
    rings = tuple(
        StagedRing(
            loop,
            tuple(held),
            depth if fill == ASYNC else _LEAST_DEPTH,
            fill,
            fill == ASYNC and _rotates(loop, held, grouped),
        )
        for (loop, fill), held in grouped.items()
    )
    if any(ring.fill == REGISTERS for ring in rings):
        what = "filled through registers"
        reasons.insert(1, Reason(what, "elements are less aligned than the 4 bytes of a copy"))
    words, largest = max(map(_sums, products), key=lambda one: one[0])
    rows = _rows_together(largest, target)
    why_order = (
        f"{target.multiprocessors} programs run at once, which read least if they are a square"
    )
    reasons.insert(1, Reason(f"{rows} row{'s' * (rows > 1)} of programs at a time", why_order))
    return Stages(rings, rows, words, tuple(dict.fromkeys(reasons)))


def _rotates(loop: ir.OpView, loads: Sequence[StagedLoad], grouped: _Grouped) -> bool:
    """Whether one product of the loop's own body, by `mma` in several steps, is all that reads the
    ring; no other one is filled in the loop."""
    if sum(other == loop for other, _ in grouped) > 1:
        return False
    [body] = loop.regions[0].blocks
    users = {use for one in loads for use in _users(one.load.results[0])}
    if len(users) != 1 or len(loads) != 2:
        return False
    [product] = users
    op = product.opview
    elements = rules()[op.operation.name].multiplied(op)
    if elements is None or product.block != body or "f64" in elements:
        return False
    if any(_load_of(factor) is None for factor in list(op.operands)[:2]):
        return False
    k = shape_of(op.operands[0])[-1]
    mma = mma_for(str(ir.RankedTensorType(op.operands[0].type).element_type), k)
    return mma is not None and k % mma.k == 0 and k >= 2 * mma.k


def _users(value: ir.Value) -> Iterator[ir.Operation]:
    """Who uses a tile, as it is or with its axes moved."""
    for use in value.uses:
        user = use.owner.operation
        if rules()[user.name].moved_axes(user.opview) is None:
            yield user
        else:
            yield from _users(user.results[0])


def _sums(product: ir.OpView) -> tuple[int, tuple[int, int]]:
    """How many words of 32 bits the sums of a product are; their rows and columns."""
    tile = product.results[0]
    bits = bit_width(ir.RankedTensorType(tile.type).element_type)
    rows, columns = shape_of(tile)[-2:]
    return prod(shape_of(tile)) * bits // 32, (rows, columns)


def _not_copied(product: ir.OpView) -> str:
    place = place_of(product.location)
    where = f" at {Path(place.file).name}:{place.line}:{place.column}" if place.file else ""
    return f"no copies ahead of a factor of the product{where}"


def _load_of(value: ir.Value) -> ir.OpView | None:
    """The load that a factor is, but for moved axes."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.opview
        rule = rules()[op.operation.name]
        access = rule.access(op)
        if access is not None:
            return op if access.tile == value else None
        if rule.moved_axes(op) is None:
            return None
        value = op.operands[0]
    return None


def _staged(load: ir.OpView, placing: Placing, names: Mapping[ir.Value, str]) -> StagedLoad:
    access = rules()[load.operation.name].access(load)
    assert access is not None, "what was found is a load"
    if load.operation.parent.name != "scf.for":
        raise _UnfitError("it is loaded in a branch, or by a `while`")
    if view_facts(access.view.type).own != "shared":
        raise _UnfitError("the kernel may write to its tensor")
    if len(load.operands) > 1 + len(access.indices):
        raise _UnfitError("it has other elements than zero outside of its tensor")
    contiguous = contiguous_axis(access.view)
    if contiguous is None:
        raise _UnfitError("no axis of its tensor is contiguous")
    _expect_known_ahead(load)
    rank = len(access.shape)
    order = [axis for axis in range(rank) if axis != contiguous] + [contiguous]
    element = ir.MemRefType(access.view.type).element_type
    shape = tuple(access.shape[axis] for axis in order)
    tile = SwizzledTile.of(shape, bit_width(element) // 8)
    axes = tuple(order.index(axis) for axis in range(rank))
    if tile is None or not StagedTile(tile, access.shape, axes).is_linear:
        raise _UnfitError("its rows do not fill pieces of 32 bytes")
    param = _parameter(access.view, names)
    return StagedLoad(load, param, element, tile, axes, _fill_of(load, access, placing))


def _fill_of(load: ir.OpView, access: AccessShape, placing: Placing) -> str:
    size = bit_width(ir.MemRefType(access.view.type).element_type) // 8
    bounds = bounds_of(load)
    layout = memory_layout(access, bounds, placing)
    contiguous = contiguous_axis(access.view)
    width = vector_width(layout, contiguous, size, bounds, placing.vector_bytes)
    if width * size in COPY_BYTES:
        return ASYNC
    if width > 1:
        raise _UnfitError(f"it is accessed in pieces of {width * size} bytes")
    return REGISTERS


def _parameter(view: ir.Value, names: Mapping[ir.Value, str]) -> str:
    while view not in names:
        view = view.owner.opview.operands[0]
    return names[view]


def _expect_known_ahead(load: ir.OpView) -> None:
    """That what a later turn loads is known in this one."""
    loop = load.operation.parent.opview
    step = loop.operands[2].owner
    if isinstance(step, ir.Block) or step.name != "arith.constant":
        raise _UnfitError("the step of its loop is not constant")
    [body] = loop.regions[0].blocks
    left, seen = list(load.operands), set()
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, ir.Block):
            if value.owner == body and value.arg_number > 0:
                raise _UnfitError("where it is depends on what its loop carries")
            continue
        if value.owner.operation.block != body:
            continue
        op = value.owner.opview
        if len(op.regions) or not computes_numbers(op):
            raise _UnfitError(f"where it is depends on what `{op.operation.name}` gives")
        left += op.operands


# ---- rings ---------------------------------------------------------------------------------------


_Grouped = dict[tuple[ir.OpView, str], list[StagedLoad]]


def _by_loop(loads: Sequence[StagedLoad]) -> _Grouped:
    found: _Grouped = {}
    loops: dict[ir.Operation, ir.OpView] = {}
    for one in loads:
        parent = one.load.operation.parent
        loop = loops.setdefault(parent.operation, parent.opview)
        found.setdefault((loop, one.fill), []).append(one)
    return found


def _slot_bytes(loads: Sequence[StagedLoad]) -> int:
    return Slot(tuple(one.tile for one in loads)).bytes


def _depth(
    grouped: _Grouped, hints: Hints, target: Target, fitting: int | None
) -> tuple[int, Reason]:
    """How many slots rings have that are filled by copies; fewer than two: there are none."""
    room = target.smem_per_block_bytes - target.stages.rest_bytes
    most = target.stages.depth
    turning = max(_bytes_at_once(grouped, loop) for loop, _ in grouped)
    limits = {
        room // turning: f"{room} bytes of room, {turning} for a slot of each",
        most: "no more than that hides anything",
    }
    if hints.stages is not None:
        limits.pop(most, None)
        limits[hints.stages] = f"asked for by `stages = {hints.stages}`"
    if fitting is not None:
        limits[fitting] = "with more, the rest of the kernel does not fit in shared memory"
    depth = min(limits)
    what = f"depth {depth}" if depth >= _LEAST_DEPTH else "no copies ahead"
    return depth, Reason(what, limits[depth])


def _bytes_at_once(grouped: _Grouped, loop: ir.OpView) -> int:
    """Those of one slot of each ring that is there while a loop turns."""
    around = list(_around(loop.operation))
    return sum(_slot_bytes(held) for (other, _), held in grouped.items() if other in around)


def _around(op: ir.Operation) -> Iterator[ir.OpView]:
    while op.name != "func.func":
        yield op.opview
        op = op.parent


def _rows_together(shape: tuple[int, int], target: Target) -> int:
    """As of roles: programs that run at once are about a square of elements."""
    rows, columns = shape
    side = (target.multiprocessors * columns / rows) ** 0.5
    return 1 << max(0, round(log2(side)))
