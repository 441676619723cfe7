"""Splits loops where their masks are known, so that most iterations have none.

Before:   for j in l..u { m = r >= 64 j + c; … select m, s, x … }
After:    for j in l..e { … s … }              all of m is true: 64 j + max c <= min r
          for j in e..u { m = r >= 64 j + c; … select m, s, x … }

Algorithm:
1. A mask is a comparison in the body whose operands are linear functions of the loop's index and
   of scalars from outside (`ops/linear.py`). It is true in each element where some such functions
   are 0 or more, and nothing wraps.
2. Each of these holds from one iteration on, or up to one, or in none, by the sign of its
   coefficient. All masks together hold in one range of iterations, which may be empty.
3. The loop is split into what is before that range, the range, and what is after it, in this order.

Sound: the parts run the same iterations in the same order, and only a mask that is true is
replaced. Facts of accesses hold in fewer iterations, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from mlir import ir

from tilec.ir.dialects import arith
from tilec.ir.types import is_tile
from tilec.ir.walk import operations
from tilec.ops.build import constant, known_integer
from tilec.ops.facts import KnownFacts
from tilec.ops.linear import Linear, LinearForms
from tilec.ops.registry import rules
from tilec.schedule.reason import Reason, at
from tilec.schedule.walk import element_bytes
from tilec.schedule.work import thread_cycles
from tilec.target.description import Rates
from tilec.transforms.simplify import simplify_function
from tilec.types import BOOL

# Of the threads' work in an iteration, that masks must be: splitting doubles the loop's code.
_LEAST_SHARE = 0.03
_MOST_OPERATIONS = 1000
# What is computed to find the range must not overflow 64 bits.
_LARGEST = 1 << 62


def split_loops(function: ir.OpView, rates: Rates) -> list[Reason]:
    """Splits the innermost loops of a function whose masks cost enough; says which.

    Needs a current location.
    """
    found: list[Reason] = []
    for loop, masks in list(_to_split(function, rates)):
        count = _split(loop, masks)
        why = "in the steady one, all elements of its masks are true"
        found.append(Reason(f"{count} loops in place of one{at(loop)}", why))
    if found:
        simplify_function(function)
    return found


def masked_operations(function: ir.OpView, rates: Rates) -> set[ir.OpView]:
    """What `split_loops` spares the steady iterations of a function."""
    every = [mask.op for _, masks in _to_split(function, rates) for mask in masks]
    return _masked(every)


def _to_split(function: ir.OpView, rates: Rates) -> Iterator[tuple[ir.OpView, list[_Mask]]]:
    """The loops to be split, and the masks that decide where."""
    forms = LinearForms(KnownFacts.of(function))
    for loop in [op for op in operations(function) if op.operation.name == "scf.for"]:
        masks = list(_masks_of(loop, forms))
        if masks and _pays(loop, [mask.op for mask in masks], rates):
            yield loop, masks


@dataclass(frozen=True)
class _Mask:
    """A comparison in a loop body, and what is 0 or more where it is true throughout."""

    op: ir.OpView
    conditions: tuple[Linear, ...]


# ---- which masks ---------------------------------------------------------------------------------


def _masks_of(loop: ir.OpView, forms: LinearForms) -> Iterator[_Mask]:
    inside = list(operations(loop))
    if len(inside) > _MOST_OPERATIONS or any(rules()[op.operation.name].loop for op in inside):
        return
    index, step = loop.regions[0].blocks[0].arguments[0], known_integer(loop.operands[2])
    if step is None or forms.range_of(index) is None:
        return
    own = {result for op in inside for result in op.results}
    own |= {argument for b in _blocks_of((loop, *inside)) for argument in b.arguments}
    for op in inside:
        if len(op.results) != 1 or not _is_mask(op.results[0]):
            continue
        of_operands = [forms.of(operand) for operand in op.operands]
        found = rules()[op.operation.name].true_where(op, of_operands)
        if found is None:
            continue
        conditions = tuple(one for one in found if forms.bounds(_least(one))[0] < 0)
        terms = {value for one in conditions for value in one.terms}
        is_known = index in terms and own.isdisjoint(terms - {index})
        if is_known and all(_is_small(one, forms) for one in conditions):
            yield _Mask(op, conditions)


def _blocks_of(ops: Iterable[ir.OpView]) -> Iterator[ir.Block]:
    return (block for op in ops for region in op.regions for block in region.blocks)


def _is_mask(value: ir.Value) -> bool:
    return is_tile(value) and str(ir.RankedTensorType(value.type).element_type) == "i1"


def _least(form: Linear) -> Linear:
    """The least element."""
    return Linear(form.terms, form.low, form.low)


def _is_small(form: Linear, forms: LinearForms) -> bool:
    """Whether neither the form nor a part of it overflows 64 bits."""
    sizes = [max(map(abs, forms.bounds(Linear({v: n})))) for v, n in form.terms.items()]
    return sum(sizes) + abs(form.low) < _LARGEST


def _pays(loop: ir.OpView, masks: Sequence[ir.OpView], rates: Rates) -> bool:
    """Whether masks are a part of what threads do that counts, and memory is not what they wait
    for."""
    inside = list(operations(loop))
    saved = sum(thread_cycles(op, rates) for op in _masked(masks))
    threads = sum(thread_cycles(op, rates) for op in inside)
    moved = sum(_moved_bytes(op) for op in inside)
    return saved >= _LEAST_SHARE * threads and moved / rates.l2_bytes <= threads


def _masked(masks: Sequence[ir.OpView]) -> set[ir.OpView]:
    """The comparisons, what is computed of their masks, and what selects by them."""
    found, waiting = set[ir.OpView](), list(masks)
    while waiting:
        op = waiting.pop()
        if op in found:
            continue
        found.add(op)
        if any(map(_is_mask, op.results)):
            waiting += [use.owner.opview for value in op.results for use in value.uses]
    return found


def _moved_bytes(op: ir.OpView) -> int:
    access = rules()[op.operation.name].access(op)
    return 0 if access is None else prod(access.shape) * element_bytes(access.view.type)


# ---- the rewrite ---------------------------------------------------------------------------------


def _split(loop: ir.OpView, masks: Sequence[_Mask]) -> int:
    """Splits a loop; gives the number of loops."""
    with loop.location, ir.InsertionPoint(loop):
        first, end = _range_of(loop, [one for mask in masks for one in mask.conditions])
    places = [number for number, op in enumerate(operations(loop)) if _is_among(op, masks)]
    if first is not None:
        before = loop.operation.clone(ip=ir.InsertionPoint(loop)).opview
        before.operands[1] = first
        _continue(loop, before, first)
    if end is not None:
        steady = loop.operation.clone(ip=ir.InsertionPoint(loop)).opview
        steady.operands[1] = end
        _continue(loop, steady, end)
    else:
        steady = loop
    inside = list(operations(steady))
    for number in places:
        _fold(inside[number])
    return 1 + (first is not None) + (end is not None)


def _is_among(op: ir.OpView, masks: Sequence[_Mask]) -> bool:
    return any(op == mask.op for mask in masks)


def _continue(loop: ir.OpView, before: ir.OpView, start: ir.Value) -> None:
    """Has a loop go on from here, where another one ends."""
    loop.operands[0] = start
    for number, result in enumerate(before.results):
        loop.operands[3 + number] = result


def _fold(mask: ir.OpView) -> None:
    with mask.location, ir.InsertionPoint(mask):
        true = constant(BOOL, True, ir.RankedTensorType(mask.results[0].type).shape)
    mask.results[0].replace_all_uses_with(true)


def _range_of(
    loop: ir.OpView, conditions: Sequence[Linear]
) -> tuple[ir.Value | None, ir.Value | None]:
    """The iterations in which all conditions hold, from the first one to before the end (index);
    None: the loop's own."""
    index = loop.regions[0].blocks[0].arguments[0]
    lower, upper = list(loop.operands)[:2]
    firsts: list[ir.Value] = []
    ends: list[ir.Value] = []
    guards: list[ir.Value] = []
    for one in dict.fromkeys((tuple(c.terms.items()), c.low) for c in conditions):
        terms, number = dict(one[0]), one[1]
        coefficient = terms.pop(index, 0)
        if coefficient > 0:
            firsts.append(_ceiling(_sum(terms, number, -1), coefficient))
        elif coefficient < 0:
            ends.append(_ceiling(_sum(terms, number + 1, 1), -coefficient))
        else:
            guards.append(arith.cmpi(arith.CmpIPredicate.sge, _sum(terms, number, 1), _index(0)))
    first, end = None, None
    if firsts:
        first = _within(loop, reduce(arith.maxsi, firsts), lower, upper)
    if ends or guards:
        from_here = lower if first is None else first
        end = _within(loop, reduce(arith.minsi, ends), from_here, upper) if ends else upper
        for guard in guards:
            end = arith.select(guard, end, from_here)
    return first, end


def _sum(terms: dict[ir.Value, int], number: int, sign: int) -> ir.Value:
    """The sum times `sign` (index)."""
    total = _index(sign * number)
    for value, coefficient in terms.items():
        wide = value if str(value.type) == "index" else arith.index_cast(ir.IndexType.get(), value)
        total = arith.addi(total, arith.muli(wide, _index(sign * coefficient)))
    return total


def _ceiling(number: ir.Value, divisor: int) -> ir.Value:
    return number if divisor == 1 else arith.ceildivsi(number, _index(divisor))


def _within(loop: ir.OpView, index: ir.Value, lower: ir.Value, upper: ir.Value) -> ir.Value:
    """The first iteration from `index` on, no earlier than `lower`, which is one; or the end."""
    step = known_integer(loop.operands[2])
    assert step is not None, "its step is a constant"
    start = arith.maxsi(index, lower)
    if step != 1:
        turns = arith.ceildivsi(arith.subi(start, lower), _index(step))
        start = arith.addi(lower, arith.muli(turns, _index(step)))
    return arith.minsi(start, upper)


def _index(number: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), number)
