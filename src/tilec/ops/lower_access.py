"""Loads and stores of tiles as instructions of one thread: the two halves of one scheme.

Whole groups go under a vector mask. Where the tensor's end may fall inside a group, a branch that
one program takes or not as a whole handles the elements of the group that is cut, one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from tilec.ir.dialects import arith, scf
from tilec.ops.fragments import pack, unpack
from tilec.ops.global_memory import (
    Use,
    load,
    load_masked,
    store,
    store_masked,
    words_of,
)
from tilec.ops.thread_access import Access, Group

_PLAIN = Use()


def lower_load(access: Access, fill: ir.Value, *, is_last: bool = False) -> list[ir.Value]:
    """The registers of the access's layout, loaded; they and `fill` are as in memory.

    `is_last`: nobody needs what is read in the cache.
    """
    access.note("load")
    registers: list[ir.Value] = [fill] * access.layout.registers
    use = Use(is_read_only=access.view.read_only, is_last=is_last)
    fills = [fill] * access.width
    words = words_of(fills) if access.masked else ()
    for group in access.groups:
        mask = access.mask(group)
        pointer = access.address(group)
        if mask is None:
            loaded = load(pointer, access.element, len(group.registers), use)
        else:
            loaded = load_masked(pointer, mask, fills, use, words)
        for register, value in zip(group.registers, loaded, strict=True):
            registers[register] = value
    if access.ragged is not None:
        registers = _load_cut_groups(access, registers, access.ragged, use)
    return [registers[first] for first in access.duplicates]


def _load_cut_groups(
    access: Access, registers: Sequence[ir.Value], ragged: ir.Value, use: Use
) -> list[ir.Value]:
    whole = pack(registers)
    branch = scf.IfOp(ragged, [whole.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        found = list(registers)
        for group in access.groups:
            for element, register in enumerate(group.registers[:-1]):
                mask = _in_cut_group(access, group, element)
                pointer = access.address(group, element)
                [found[register]] = load_masked(pointer, mask, [found[register]], use)
        scf.yield_([pack(found)])
    with ir.InsertionPoint(branch.else_block):
        scf.yield_([whole])
    return unpack(branch.results[0])


def lower_store(access: Access, registers: Sequence[ir.Value], use: Use = _PLAIN) -> None:
    """Write the registers, as in memory; of threads that hold the same element, one writes it."""
    access.note("store")
    unique = access.lowering.holds_unique(access.layout)
    for group in access.groups:
        mask = _both(access.mask(group), unique)
        elements = [registers[r] for r in group.registers]
        if mask is None:
            store(access.address(group), elements, use)
        else:
            store_masked(access.address(group), mask, elements, use)
    if access.ragged is None:
        return
    branch = scf.IfOp(access.ragged)
    with ir.InsertionPoint(branch.then_block):
        for group in access.groups:
            for element, register in enumerate(group.registers[:-1]):
                mask = _both(_in_cut_group(access, group, element), unique)
                assert mask is not None, "an element of a cut group is masked"
                pointer = access.address(group, element)
                store_masked(pointer, mask, [registers[register]], use)
        scf.yield_([])


def _in_cut_group(access: Access, group: Group, element: int) -> ir.Value:
    """Whether this element is inside, but not its whole group (i1)."""
    inside = access.element_mask(group, element)
    whole = access.mask(group)
    assert inside is not None and whole is not None, "only masked accesses have cut groups"
    true = arith.constant(ir.IntegerType.get_signless(1), 1)
    return arith.andi(inside, arith.xori(whole, true))


def _both(left: ir.Value | None, right: ir.Value | None) -> ir.Value | None:
    if left is None or right is None:
        return left if right is None else right
    return arith.andi(left, right)
