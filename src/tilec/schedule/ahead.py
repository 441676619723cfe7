"""Loads that follow products, of tensors that nobody writes: begun before the products.

What stands behind a loop of products waits for memory with nothing to hide that. So tiles that take
few registers of a thread, such as a bias or scales, are loaded before the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir

from tilec.ir.walk import argument_names
from tilec.ops.fragments import bit_width
from tilec.ops.registry import rules
from tilec.ops.rules import AccessShape, shape_of
from tilec.schedule.made_of import made_of
from tilec.schedule.products import Product
from tilec.schedule.results import parameter_of
from tilec.target.description import Roles

_WORD_BITS = 32
# Elements. A thread has one in four of the columns that it has sums of, and few of the rows.
_MOST_ELEMENTS = 512
_THREADS_OF_A_ROW = 4


@dataclass(frozen=True)
class Ahead:
    """A load that is begun before a loop which it follows; `moved` goes with it, in order."""

    op: ir.OpView
    loop: ir.OpView
    param: str
    moved: tuple[ir.OpView, ...]


def find_ahead(
    function: ir.OpView,
    products: Sequence[Product],
    threads: int,
    limits: Roles,
    *,
    is_aligned: bool,
) -> list[Ahead]:
    """The loads that are begun early, in program order; `threads` do a program.

    `is_aligned`: tiles are loaded by words, not by elements.
    """
    names = argument_names(function)
    left = limits.ahead_registers - sum(one.held_words for one in products) // threads
    found: list[Ahead] = []
    for op, loop in _after_loops(products):
        access = rules()[op.operation.name].access(op)
        assert access is not None, "it loads"
        moved = made_of(op, _from(loop))
        words = _words(access, is_aligned=is_aligned)
        if moved is not None and prod(access.shape) <= _MOST_ELEMENTS and words <= left:
            left -= words
            found.append(Ahead(op, loop, parameter_of(access.view, names), moved))
    return found


def _after_loops(products: Sequence[Product]) -> Iterator[tuple[ir.OpView, ir.OpView]]:
    """Loads behind loops of products, in the same block, and the last such loop before each."""
    inside = {product.op.operation.block for product in products}
    copied = {one.load.operation for product in products for one in product.copied}
    loops = {block.owner.operation for block in inside if block.owner.name == "scf.for"}
    for block in dict.fromkeys(loop.block for loop in loops):
        last: ir.OpView | None = None
        for op in block.operations:
            if op.operation in loops:
                last = op
            elif last is not None and op.operation not in copied and _may_move(op):
                yield op, last


def _may_move(op: ir.OpView) -> bool:
    rule = rules()[op.operation.name]
    access = rule.access(op)
    return access is not None and access.tile in list(op.results) and rule.may_wait(op)


def _from(loop: ir.OpView) -> list[ir.OpView]:
    """A loop and what stands behind it."""
    operations = list(loop.operation.block.operations)
    return operations[operations.index(loop) :]


def _words(access: AccessShape, *, is_aligned: bool) -> int:
    """At most so many 32-bit registers of a thread, where it meets sums."""
    bits = bit_width(ir.RankedTensorType(access.tile.type).element_type)
    elements = max(1, prod(shape_of(access.tile)) // _THREADS_OF_A_ROW)
    return -(-elements * (bits if is_aligned else max(bits, _WORD_BITS)) // _WORD_BITS)
