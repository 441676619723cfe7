"""A reduction on a GPU: in the thread, between lanes, between warps, as its plan says.

Several values can be reduced together (`argmax` carries a value and an index): one plan serves
them all, since they have one layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from tilec.layout.reduction import ReductionPlan
from tilec.layout.traffic import of_reduction
from tilec.ops.between_threads import from_memory, read_shared, shuffle_xor, to_memory, write_shared
from tilec.ops.fragments import bit_width, in_memory
from tilec.ops.lowering import Lowering
from tilec.ops.notes import Moved

# One register of each reduced value.
Row = tuple[ir.Value, ...]
Combine = Callable[[Row, Row], Row]


def lower_reduce(
    plan: ReductionPlan, sources: Sequence[Sequence[ir.Value]], combine: Combine, lowering: Lowering
) -> list[list[ir.Value]]:
    """The registers of each result.

    Shapes:   `sources[i]` are the registers of value i, in the plan's source layout; a result is
              in the plan's result layout
    """
    rows = list(zip(*sources, strict=True))
    elements = [v.type for v in rows[0]]
    moved = of_reduction(plan, tuple(map(_bytes, elements)))
    named = tuple(map(str, elements))
    lowering.note(Moved("reduction", named, plan.source, plan.result, moved))
    folded = [_balanced([rows[r] for r in fold], combine) for fold in plan.folds]
    for step in plan.butterflies:
        partners = [folded[r ^ step.register_xor] for r in range(len(folded))]
        folded = [
            combine(mine, tuple(shuffle_xor(v, step.lane_mask) for v in theirs))
            for mine, theirs in zip(folded, partners, strict=True)
        ]
    return [
        list(column) for column in zip(*_exchanged(plan, folded, combine, lowering), strict=True)
    ]


def _balanced(rows: Sequence[Row], combine: Combine) -> Row:
    """Combined as a tree: short dependences, and rounding errors that grow with the logarithm."""
    level = list(rows)
    while len(level) > 1:
        pairs = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(level) & ~1 :]
    return level[0]


def _exchanged(
    plan: ReductionPlan, folded: Sequence[Row], combine: Combine, lowering: Lowering
) -> Sequence[Row]:
    """The rows after the exchange between warps: each value has a buffer of its own."""
    elements = [v.type for v in folded[0]]
    exchanges = [e for e in map(plan.exchange, map(_bytes, elements)) if e is not None]
    if not exchanges:
        return folded
    buffers = [
        lowering.shared_bytes(exchange.elements * _bytes(element))
        for exchange, element in zip(exchanges, elements, strict=True)
    ]
    for number, (exchange, buffer) in enumerate(zip(exchanges, buffers, strict=True)):
        column = [to_memory(row[number]) for row in folded]
        write_shared(buffer, exchange.write, column, lowering)
    partials = [
        read_shared(buffer, exchange.read, in_memory(element), lowering)
        for exchange, buffer, element in zip(exchanges, buffers, elements, strict=True)
    ]
    result = []
    for register in range(len(folded)):
        columns = [
            [from_memory(v, element) for v in read[register]]
            for read, element in zip(partials, elements, strict=True)
        ]
        result.append(_balanced(list(zip(*columns, strict=True)), combine))
    return result


def _bytes(element: ir.Type) -> int:
    return bit_width(element) // 8
