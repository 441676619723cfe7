"""Loads and stores of tiles as instructions of one thread: the two halves of one scheme.

Whole groups go under a vector mask. Where the tensor's end may fall inside a group, a branch that
one program takes or not as a whole handles the elements of the group that is cut, one by one. A
thread holds at most one such group in each row, so there is one set of instructions for it, and
which of the row's groups it stands for is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from mlir import ir

from tilec.ir.dialects import arith, scf
from tilec.ops.between_threads import from_memory
from tilec.ops.fragments import element_offset, i32, in_registers, pack, unpack
from tilec.ops.global_memory import (
    Use,
    keep_together,
    load,
    load_masked,
    select_elements,
    store,
    store_masked,
    words_of,
)
from tilec.ops.pending import Pending
from tilec.ops.thread_access import Access, Group

_PLAIN = Use()


def lower_load(access: Access, fill: ir.Value, *, is_last: bool = False) -> list[ir.Value]:
    """The registers of the access's layout, loaded; they and `fill` are as in memory.

    `is_last`: nobody needs what is read in the cache.
    """
    access.note("load")
    registers: list[ir.Value] = [fill] * access.layout.registers
    use = Use(is_read_only=access.view.read_only, is_last=is_last)
    load_group = _group_loader(access, fill, use)
    for group in access.groups:
        for register, value in zip(group.registers, load_group(group), strict=True):
            registers[register] = value
    if access.ragged is not None:
        registers = _load_cut_groups(access, registers, fill, access.ragged, use)
    elif access.lowering.is_in_loop and len(access.groups) > 1:
        keep_together()
    return [registers[first] for first in access.duplicates]


def _group_loader(
    access: Access, fill: ir.Value, use: Use
) -> Callable[[Group], Sequence[ir.Value]]:
    """What loads one group; what they share is emitted now."""
    fills = [fill] * access.width
    words = words_of(fills) if access.masked else ()

    def load_group(group: Group) -> Sequence[ir.Value]:
        mask = access.mask(group)
        pointer = access.address(group)
        if mask is None:
            return load(pointer, access.element, len(group.registers), use)
        return load_masked(pointer, mask, fills, use, words)

    return load_group


def load_later(access: Access, fill: ir.Value, *, is_last: bool = False) -> Pending:
    """As `lower_load`, when registers are asked for; nobody writes to the tensor.

    Assumes:  the view's end lies inside of no group
    """
    assert not access.may_be_ragged, "a group that is cut takes a branch"
    access.note("load")
    load_group = _group_loader(access, fill, Use(access.view.read_only, is_last))
    group_of = {register: group for group in access.groups for register in group.registers}
    loaded: dict[int, ir.Value] = {}

    def begin(registers: Sequence[int]) -> None:
        for first in dict.fromkeys(access.duplicates[register] for register in registers):
            if first not in loaded:
                group = group_of[first]
                loaded.update(zip(group.registers, load_group(group), strict=True))

    def make(registers: Sequence[int]) -> ir.Value:
        begin(registers)
        held = in_registers(access.view.element)
        return pack([from_memory(loaded[access.duplicates[r]], held) for r in registers])

    return Pending(make, begin)


def _load_cut_groups(
    access: Access, registers: Sequence[ir.Value], fill: ir.Value, ragged: ir.Value, use: Use
) -> list[ir.Value]:
    whole = pack(registers)
    branch = scf.IfOp(ragged, [whole.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        found = list(registers)
        for row in access.rows:
            cut = _cut_group(access, row)
            loaded = [fill] * access.width
            for element, (pointer, mask) in enumerate(_elements_inside(access, row, cut, None)):
                [loaded[element]] = load_masked(pointer, mask, [fill], use)
            for group, is_cut in zip(row, cut, strict=True):
                before = [registers[r] for r in group.registers]
                chosen = select_elements(is_cut, loaded, before)
                for register, value in zip(group.registers, chosen, strict=True):
                    found[register] = value
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
        for row in access.rows:
            cut = _cut_group(access, row)
            elements = [registers[r] for r in row[0].registers]
            for group, is_cut in zip(row[1:], cut[1:], strict=True):
                own = [registers[r] for r in group.registers]
                elements = select_elements(is_cut, own, elements)
            for element, (pointer, mask) in enumerate(_elements_inside(access, row, cut, unique)):
                store_masked(pointer, mask, [elements[element]], use)
        scf.yield_([])


def _cut_group(access: Access, row: Sequence[Group]) -> list[ir.Value]:
    """Of each group of a row, whether its first element is inside, but not all of it (i1).

    That is so of one at most.
    """
    true = arith.constant(ir.IntegerType.get_signless(1), 1)
    found = []
    for group in row:
        inside, whole = access.element_mask(group, 0), access.mask(group)
        assert inside is not None and whole is not None, "only masked accesses have cut groups"
        found.append(arith.andi(inside, arith.xori(whole, true)))
    return found


def _elements_inside(
    access: Access, row: Sequence[Group], cut: Sequence[ir.Value], also: ir.Value | None
) -> Iterator[tuple[ir.Value, ir.Value]]:
    """The address of each element of the group of a row that is cut, but the last, which is never
    inside; and whether it is (i1), and `also` holds."""
    is_any = reduce(arith.ori, cut)
    if also is not None:
        is_any = arith.andi(is_any, also)
    start, place = access.address_along(row[0]), i32(access.along(row[0]))
    for group, is_cut in zip(row[1:], cut[1:], strict=True):
        place = arith.select(is_cut, i32(access.along(group)), place)
    start = element_offset(start, place, access.element)
    for element in range(access.width - 1):
        pointer = element_offset(start, i32(element), access.element) if element else start
        is_inside = arith.cmpi(arith.CmpIPredicate.sgt, access.elements_of_cut_group, i32(element))
        yield pointer, arith.andi(is_any, is_inside)


def _both(left: ir.Value | None, right: ir.Value | None) -> ir.Value | None:
    if left is None or right is None:
        return left if right is None else right
    return arith.andi(left, right)
