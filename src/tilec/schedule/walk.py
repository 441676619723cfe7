"""What the operations of a function on tiles take, loop by loop: what costs are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from mlir import ir

from tilec.artifact.expression import Expression
from tilec.artifact.family import Part
from tilec.layout.swizzled import SwizzledTile
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import shape_of
from tilec.ops.staged import REGISTERS
from tilec.schedule.bound import busy
from tilec.schedule.plan import NoSchedule, Schedule
from tilec.schedule.products import Copied
from tilec.schedule.rings import is_in_loop
from tilec.schedule.stages import StagedLoad, Stages
from tilec.schedule.turn_cost import Turn, parts_of, slot_cycles
from tilec.schedule.turns import turns_of
from tilec.schedule.work import thread_cycles
from tilec.target.description import Rates

_EXCHANGES = ("linalg.reduce", "tile.scan")
_FMA = ("f32", "f64")  # factors that no tensor core multiplies as exactly
_SECTOR_BYTES = 32  # moved for an element that an index chooses
# Instructions of threads that move elements one by one, for each: to a slot, where addresses and
# masks are computed, and of a result that leaves by rows. Measured (docs/notes.md).
_INTO_SLOT = 16
_BY_ROWS = 10
_COPY_ALIGNMENT = 16  # rows of copies begin at multiples of so many bytes (PTX ISA)


@dataclass(frozen=True)
class Launch:
    """What callers know: the extents of the grid of programs, and those of each tensor.

    `read` is how much of each axis is read, of tensors of which it is not all.
    """

    grid: tuple[Expression, ...]
    dims: tuple[str, ...]
    tensors: Mapping[str, tuple[str | int, ...]]
    read: Mapping[str, tuple[Expression, ...]] = field(default_factory=dict)

    def read_of(self, param: str) -> tuple[Expression, ...]:
        return self.read.get(param, self.tensors[param])


class Walk:
    """Sums up what stands in a function, loop by loop; what is in none comes first."""

    def __init__(
        self,
        schedule: Schedule | NoSchedule,
        rates: Rates,
        launch: Launch,
        stages: Stages | None = None,
    ) -> None:
        self.turns = [Turn(1)]
        self._copied: list[tuple[Copied, Turn]] = []
        self._rates = rates
        self._launch = launch
        planned = schedule if isinstance(schedule, Schedule) else None
        self._split = planned.split if planned else None
        self._products = {one.op.operation: one for one in planned.products} if planned else {}
        channels = planned.channels if planned else ()
        filled = [(one, c.depth) for c in channels for fill in c.fills for one in fill]
        self._copies = {one.load.operation: one for one, _ in filled}
        self._depths = {one.load.operation: depth for one, depth in filled}
        rings = stages.rings if stages else ()
        self._staged = {one.load.operation: one for ring in rings for one in ring.loads}
        # What the blocks of a cluster share, each reads a part of.
        self._blocks = {
            one.load.operation: sharers.blocks
            for channel in channels
            for one, sharers in channel.shared
        }
        if planned and planned.results_by == "rows":
            stored = sum(prod(shape_of(one.op.operands[1])) for one in planned.results)
            self.turns[0].threads += stored * _BY_ROWS / rates.lanes

    def parts(self, warps: int) -> tuple[Part, ...]:
        """What is done once a program, then the loops in which anything takes time."""
        [first], *loops = [list(parts_of(turn, warps, self._rates)) for turn in self.turns]
        inner = [part for loop in loops for part in loop]
        return (first, *(one for one in inner if one.alone_cycles or one.memory_cycles))

    def read_bytes(self) -> Expression:
        """Of the tensors that are copied, what is read of each, once."""
        found: Expression = 0
        sizes = {
            one.param: element_bytes(one.load.results[0].type) for one in self._copies.values()
        }
        for param, size in sizes.items():
            whole: Expression = size
            for extent in self._launch.read_of(param):
                whole = times(whole, extent)
            found = whole if found == 0 else ("add", found, whole)
        return found

    def first_cycles(self) -> Expression:
        """Waits for slots with a tile that nobody read before: of the tensor that has most."""
        found: Expression = 0
        for copied, turn in self._copied:
            extents = self._launch.read_of(copied.param)
            if len(extents) > len(copied.tile.shape):
                extents = tuple(extent for extent in extents if extent != 1)
            if not turn.overlaps or len(extents) != len(copied.tile.shape):
                continue
            waits: Expression = round(slot_cycles(turn, self._rates, self._rates.memory_latency))
            for extent, side in zip(extents, copied.tile.shape, strict=True):
                waits = times(waits, quotient(extent, side))
            found = waits if found == 0 else ("max", found, waits)
        return found

    def into(self, block: ir.Block, turn: Turn) -> None:
        for op in block.operations:
            rule = rules()[op.operation.name]
            if not rule.control:
                self._count(op, turn)
                continue
            inner = turn
            if rule.loop:
                turns = turns_of(op, self._launch.grid, self._launch.dims)
                if self._split is not None and op == self._split.loop:
                    turns = quotient(turns, self._split.blocks)
                inner = Turn(times(turn.turns, turns))
                self.turns.append(inner)
            for region in op.regions:
                for inside in region.blocks:
                    self.into(inside, inner)

    def _count(self, op: ir.OpView, turn: Turn) -> None:
        rule, operation = rules()[op.operation.name], op.operation
        access, indexed = rule.access(op), rule.indexed(op)
        if operation in self._copies:
            self._copy(self._copies[operation], turn)
        elif operation in self._staged:
            self._stage(self._staged[operation], turn)
        elif operation in self._products:
            took = busy([self._products[operation]], 0, self._rates)
            turn.tensor += took.tensor
            turn.shared += took.shared
            self._hand_over(op)
        elif access is not None:
            turn.moved_bytes += prod(access.shape) * element_bytes(access.view.type)
            turn.loads |= access.tile in list(op.results)
        elif indexed is not None:
            count = prod(shape_of(indexed.tile)) if _is_tile(indexed.tile) else 1
            turn.moved_bytes += count * _SECTOR_BYTES
            turn.loads |= indexed.tile in list(op.results)
        elif rule.multiplied(op) is not None:
            self._multiply(op, turn)
        else:
            self._compute(op, turn)

    def _copy(self, copied: Copied, turn: Turn) -> None:
        tile = copied.tile
        # L2 gives whole lines, however short rows are; to shared memory the rest is lost by half.
        lines = tile.bytes // tile.swizzle * max(tile.swizzle, self._rates.line_bytes)
        share = lines / self._blocks.get(copied.load.operation, 1)
        turn.copied_bytes += share
        turn.shared += (tile.bytes + lines) / 2 / self._rates.shared_bytes
        turn.overlaps |= is_in_loop(copied.block)
        turn.depth = self._depths[copied.load.operation]
        self._copied.append((copied, turn))
        crossing = self._crosses(copied.param, tile)
        if crossing is not False:
            two = max(0, tile.swizzle - _COPY_ALIGNMENT) / self._rates.line_bytes
            turn.crossing[crossing] = turn.crossing.get(crossing, 0.0) + two * share

    def _crosses(self, param: str, tile: SwizzledTile) -> Expression:
        """Whether rows of a packed tensor begin anywhere in lines of L2."""
        extents = self._launch.tensors[param]
        if len(extents) < 2 or tile.rows == 1:
            return False
        size, line = tile.element_bytes, self._rates.line_bytes
        row = extents[-1]
        if isinstance(row, int):
            return row * size % line != 0
        return ("ne", ("rem", row, max(1, line // size)), 0)

    def _stage(self, staged: StagedLoad, turn: Turn) -> None:
        tile = staged.tile
        turn.copied_bytes += tile.bytes
        turn.shared += tile.bytes / self._rates.shared_bytes
        turn.overlaps = True
        if staged.fill == REGISTERS:
            turn.threads += tile.bytes // tile.element_bytes * _INTO_SLOT / self._rates.lanes
            turn.waits = max(turn.waits, self._rates.load_latency)

    def _multiply(self, op: ir.OpView, turn: Turn) -> None:
        elements = rules()[op.operation.name].multiplied(op)
        assert elements is not None, "it is a product"
        left = op.operands[0]
        products = prod(shape_of(op.results[0])) * shape_of(left)[-1]
        if elements[0] in _FMA:
            turn.threads += products / self._rates.lanes
            return
        size = element_bytes(left.type)
        turn.tensor += (
            products * size * 100 / (self._rates.product_bytes * self._rates.fragment_percent)
        )
        read = sum(prod(shape_of(one)) * size for one in list(op.operands)[:2])
        turn.shared += 2 * read / self._rates.shared_bytes  # written, and read at least once
        turn.waits += self._rates.exchange_latency
        self._hand_over(op)

    def _hand_over(self, op: ir.OpView) -> None:
        """Sums are waited for, and change hands in shared memory, before anybody stores them."""
        moved = 2 * prod(shape_of(op.results[0])) * element_bytes(op.results[0].type)
        self.turns[0].shared += moved / self._rates.shared_bytes
        self.turns[0].waits += self._rates.load_latency

    def _compute(self, op: ir.OpView, turn: Turn) -> None:
        turn.threads += thread_cycles(op, self._rates)
        if op.operation.name in _EXCHANGES:
            turn.waits += self._rates.exchange_latency


def times(outer: Expression, inner: Expression) -> Expression:
    if isinstance(outer, int) and isinstance(inner, int):
        return outer * inner
    return inner if outer == 1 else ("mul", outer, inner)


def quotient(turns: Expression, blocks: int) -> Expression:
    return -(-turns // blocks) if isinstance(turns, int) else ("ceildiv", turns, blocks)


def _is_tile(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def element_bytes(kind: ir.Type) -> int:
    return max(1, bit_width(ir.ShapedType(kind).element_type) // 8)
