"""A schedule: what is copied ahead, by whom, how far, and who computes. All of it is data.

`find_products` says what could be done so; `plan` decides, by what fits the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

from mlir import ir

from tilec.layout.wgmma import ROWS, WARPGROUP_WARPS, fits
from tilec.schedule.products import Copied, Product, find_products
from tilec.target.description import KIB, Target

_THREADS_OF_GROUP = 128
# Of the 32-bit registers of a thread, those that sums may take: what is around them needs some.
_SUMS_PER_THREAD = 200
_MOST_GROUPS = 2
_MOST_DEPTH = 8
_LEAST_DEPTH = 2
# Units: bytes. What is left for the rest of the kernel, such as its results on their way out; for
# barriers; and what alignment may cost.
_REST = 33 * KIB
_BARRIERS = KIB
# Registers of a thread of each role, where the block has more warpgroups than registers for all:
# together no more than there are. Multiples of 8 (PTX ISA, "setmaxnreg").
_LOADER_REGISTERS = 40
_MATH_REGISTERS = 232


@dataclass(frozen=True)
class Channel:
    """Tiles that are copied together, in a ring of `depth` slots; `loads` in program order."""

    loads: tuple[Copied, ...]
    depth: int

    @property
    def slot_bytes(self) -> int:
        return sum(load.tile.bytes for load in self.loads)


@dataclass(frozen=True)
class Schedule:
    """What a kernel is made into. `rows_together` rows of programs are walked at a time.

    Units:    `math_groups` are warpgroups of 128 threads; registers are those of a thread, 0 for
              what the launch gives
    """

    channels: tuple[Channel, ...]
    products: tuple[Product, ...]
    math_groups: int
    rows_together: int
    loader_registers: int
    math_registers: int

    @property
    def math_warps(self) -> int:
        return WARPGROUP_WARPS * self.math_groups

    @property
    def warps(self) -> int:
        """Those of the block: a warpgroup beside the math ones loads."""
        return self.math_warps + WARPGROUP_WARPS


def plan(function: ir.OpView, hints: Mapping[str, Any], target: Target) -> Schedule | None:
    """How to overlap copies and products of a kernel; None where nothing is to gain or it cannot.

    Shapes:   the products that are scheduled are those whose factors are loads of tensors
    """
    if not target.has_async_products:
        return None
    products = find_products(function)
    groups = _math_groups(products, hints)
    products = [product for product in products if _fits(product, groups)]
    if not products:
        return None
    rings = _rings(products)
    depth = _depth(rings, hints, target)
    if depth is None:
        return None
    channels = tuple(Channel(ring, depth if _in_loop(ring[0]) else 1) for ring in rings)
    shares = groups > 1
    return Schedule(
        channels,
        tuple(products),
        groups,
        _rows_together(products, target),
        _LOADER_REGISTERS if shares else 0,
        _MATH_REGISTERS if shares else 0,
    )


def _math_groups(products: Sequence[Product], hints: Mapping[str, Any]) -> int:
    """As many as split the rows of every product."""
    most = max(1, int(hints["warps"]) // WARPGROUP_WARPS) if "warps" in hints else _MOST_GROUPS
    groups = min(most, _MOST_GROUPS)
    if all(product.shape[0] % (groups * ROWS) == 0 for product in products):
        return groups
    return 1


def _fits(product: Product, groups: int) -> bool:
    rows, columns = product.shape
    sums = rows * columns // (groups * _THREADS_OF_GROUP)
    return bool(fits(product.shape, groups)) and sums <= _SUMS_PER_THREAD


def _rows_together(products: Sequence[Product], target: Target) -> int:
    """How many rows of programs are walked together: those that run at once are then about square.

    Programs of a square of `m` by `n` tiles read m + n of them, which is least for a given number
    of programs where both sides are as long, in elements.
    """
    rows, columns = products[0].shape
    side = (target.multiprocessors * columns / rows) ** 0.5
    return 1 << max(0, round(log2(side)))


def _rings(products: Sequence[Product]) -> list[tuple[Copied, ...]]:
    """Loads of one block that meet in products are copied together, in program order."""
    rings: list[list[Copied]] = []
    for product in products:
        mine = [product.a.copied, product.b.copied]
        met = [ring for ring in rings if any(one in ring for one in mine)]
        for one in mine:
            near = [ring for ring in met if ring[0].block == one.block]
            if any(one in ring for ring in rings):
                continue
            if near:
                near[0].append(one)
                continue
            ring = [one]
            rings.append(ring)
            met.append(ring)
    return [part for ring in rings for part in _in_program_order(ring)]


def _in_program_order(ring: Sequence[Copied]) -> list[tuple[Copied, ...]]:
    """Loads of one block, apart where control flow stands between them.

    Were they copied together, those who compute would wait there for all of them, and the loader,
    in what is between, for them.
    """
    found: list[list[Copied]] = [[]]
    for op in ring[0].block.operations:
        if len(op.regions) and found[-1]:
            found.append([])
        found[-1] += [copied for copied in ring if copied.load == op]
    return [tuple(part) for part in found if part]


def _depth(
    rings: Sequence[Sequence[Copied]], hints: Mapping[str, Any], target: Target
) -> int | None:
    """How many slots the rings in loops have."""
    room = target.smem_per_block_bytes - _REST - _BARRIERS
    turning = 0
    for ring in rings:
        size = sum(one.tile.bytes for one in ring)
        if _in_loop(ring[0]):
            turning += size
        else:
            room -= size
    if turning == 0:
        return None  # nothing to overlap with
    depth = min(room // turning, _MOST_DEPTH, int(hints.get("stages", _MOST_DEPTH)))
    return depth if depth >= _LEAST_DEPTH else None


def _in_loop(copied: Copied) -> bool:
    around = copied.load.operation.parent
    while around is not None and around.name not in ("scf.for", "scf.while"):
        around = around.parent
    return around is not None
